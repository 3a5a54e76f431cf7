"""The link between edge and cloud: frames and their bounds, the edge's client and the cloud's server."""
