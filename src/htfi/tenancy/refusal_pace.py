"""When a connection is read again after a request over a quota: those under one quota one after another. Pure.

They are read again as often as the quota lets a request through, however many connections there are. So a tenant that
asks without end over many connections gets what its quota gives, and costs the others little more than that.
"""

from htfi.domain.time import NS_PER_MS, NS_PER_S

MIN_PAUSE_NS, MAX_PAUSE_NS = NS_PER_MS, NS_PER_S  # nobody waits longer than the least Retry-After


def next_read_ns(latest_ns: int, every_ns: int, now_ns: int) -> int:
    """When to read a connection whose request was refused now.

    `latest_ns` is when the one that was refused before it is read, `every_ns` the time between two requests that the
    quota lets through.
    """
    due_ns = max(latest_ns, now_ns) + max(every_ns, MIN_PAUSE_NS)
    return min(due_ns, now_ns + MAX_PAUSE_NS)
