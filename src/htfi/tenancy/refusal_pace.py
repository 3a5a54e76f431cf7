"""When a connection is read again after a request over its quota: those of one tenant one after another. Pure.

They are read again as often as the quota lets a request through, however many connections there are. So a tenant that
asks without end over many connections gets what its quota gives, and costs the others little more than that.
"""

from dataclasses import dataclass, field

from htfi.domain.time import NS_PER_MS, NS_PER_S

MIN_PAUSE_NS, MAX_PAUSE_NS = NS_PER_MS, NS_PER_S  # nobody waits longer than the least Retry-After


@dataclass(slots=True)
class RefusalPace:
    """Of all tenants: until when connections of each are spoken for."""

    _taken_ns: dict[str, int] = field(default_factory=dict[str, int])

    def pause_ns(self, tenant: str, every_ns: int, now_ns: int) -> int:
        """How long not to read a connection of a tenant whose quota lets a request through `every_ns`."""
        latest_ns = now_ns + MAX_PAUSE_NS
        due_ns = max(self._taken_ns.get(tenant, 0), now_ns) + max(every_ns, MIN_PAUSE_NS)
        self._taken_ns[tenant] = min(due_ns, latest_ns)
        return self._taken_ns[tenant] - now_ns
