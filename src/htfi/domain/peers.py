"""What is known of other nodes: their state, and the changes that people should see. Scheduling makes them, apps show
them.
"""

from enum import StrEnum

import msgspec


class PeerState(StrEnum):
    """From healthy to dead. A slow peer is degraded before it is dead."""

    UNKNOWN = "unknown"  # no heartbeat so far
    HEALTHY = "well"
    DEGRADED = "ill"  # answers, but slower than is usual for it, or is hot or throttled
    DRAINING = "draining"  # finishes what it has and takes nothing new
    SUSPECT = "suspect"  # no heartbeat for longer than is usual
    DEAD = "dead"


class PeerChange(msgspec.Struct, frozen=True, gc=False):
    """A line for the terminal view: what happened to a peer, or what was done about it.

    `what` is a state, or 'reroute', 'refused', 'leads', 'follows', 'joined', 'stale', 'reconnect'.
    """

    at_ns: int  # UTC of the node that reports
    peer: str
    what: str
    words: str
