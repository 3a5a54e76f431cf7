"""Charts of pages: plain values in `specs`, drawn as SVG without a library."""
