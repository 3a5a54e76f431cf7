"""Failed attempts to be identified, by address: who guesses must wait. Memory is bounded, the oldest goes."""

import ipaddress
from collections import OrderedDict

from htfi.domain.time import NS_PER_S
from htfi.tenancy.quotas import Rate

_RATE = Rate(6 * NS_PER_S, 10)  # ten at once, then ten a minute
_MAX_ADDRESSES = 10_000
_PREFIX_BITS = 64  # of IPv6: what one customer has


class FailedAttempts:
    """What failed lately, and from where which key was right, which no neighbour's guesses shut out."""

    def __init__(self, max_addresses: int = _MAX_ADDRESSES) -> None:
        self._max = max_addresses
        self._all_sent_ns: OrderedDict[str, int] = OrderedDict()
        self._right: OrderedDict[tuple[str, str], None] = OrderedDict()

    def wait_ns(self, address: str, key: str, now_ns: int) -> int:
        """Until this address may try again; 0 for now, and for a key that was right from there."""
        if not self._all_sent_ns:
            return 0
        sent_ns = self._all_sent_ns.get(group_of(address))
        if sent_ns is None or (address, key) in self._right:
            return 0
        return _RATE.wait_ns(sent_ns, now_ns)

    def fail(self, address: str, now_ns: int) -> None:
        group = group_of(address)
        self._all_sent_ns[group] = _RATE.after(self._all_sent_ns.get(group, 0), now_ns)
        self._all_sent_ns.move_to_end(group)
        while len(self._all_sent_ns) > self._max:
            self._all_sent_ns.popitem(last=False)

    def succeed(self, address: str, key: str) -> None:
        where = (address, key)
        if where not in self._right:
            self._right[where] = None
            if len(self._right) > self._max:
                self._right.popitem(last=False)

    def __len__(self) -> int:
        return len(self._all_sent_ns) + len(self._right)


def group_of(address: str) -> str:
    """The address, of IPv6 its network."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], _PREFIX_BITS), strict=False))
    except ValueError:
        return address
