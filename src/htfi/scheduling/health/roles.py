"""The roles that a node leads or seeks, and its vote where it is a voter. `watch` owns one and carries its messages."""

from collections.abc import Iterator

from htfi.domain.errors import InvalidInput
from htfi.scheduling.health import leases
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import MAX_NAME, Ask, Grant, Release


class Roles:
    """Bids and ballot of one life of a node. Messages go out with their receiver's name."""

    def __init__(self, node: str, life: int, config: HealthConfig, now_s: float) -> None:
        self._node = node
        self._life = life
        self._config = config
        self._ballot = leases.Ballot(now_s)
        self._bids: dict[str, leases.Bid] = {}
        self._sought: set[str] = set()
        self._led: dict[str, bool] = {}

    def seek(self, role: str) -> None:
        """Raises: InvalidInput where no voters are named."""
        if not self._config.voters:
            raise InvalidInput("health.voters is empty: name the clouds whose grants make a leader")
        if not 0 < len(role) <= MAX_NAME:
            raise InvalidInput(f"a role's name must have 1 to {MAX_NAME} characters, not {len(role)}")
        # The number goes on if the role was led before: a late grant must not pass for one of a new ask.
        self._bids.setdefault(role, leases.Bid(role, self._life))
        self._sought.add(role)

    def resign(self, role: str, now_s: float) -> list[tuple[str, Ask | Release]]:
        """At once: whoever reads `leads` from now on reads False, whether or not releases arrive."""
        if role not in self._sought:
            return []
        self._sought.remove(role)
        self._bids[role], release = leases.resign(self._bids[role])
        return list(self._to_voters(release, now_s))

    def leads(self, role: str, now_s: float) -> bool:
        bid = self._bids.get(role)
        return bid is not None and leases.leads(bid, now_s, self._config)

    def left_ms(self, role: str, now_s: float) -> float:
        bid = self._bids.get(role)
        return max(0.0, (leases.until_s(bid, self._config) - now_s) * 1e3) if bid is not None else 0.0

    def tick(self, now_s: float, dice: float) -> Iterator[tuple[str, Ask | Release]]:
        for role in sorted(self._sought):
            self._bids[role], message = leases.pursue(self._bids[role], now_s, dice, self._config)
            if message is not None:
                yield from self._to_voters(message, now_s)

    def heard(
        self, peer: str, message: Ask | Grant | Release, now_s: float
    ) -> Iterator[tuple[str, Grant | Release]]:
        if isinstance(message, Grant):
            bid = self._bids.get(message.role)
            if bid is not None:
                self._bids[message.role], release = leases.answered(bid, peer, message, now_s, self._config)
                if release is not None:
                    yield peer, release
        elif self._node not in self._config.voters:
            return
        elif isinstance(message, Release):
            self._ballot = leases.free(self._ballot, peer, message)
        else:
            self._ballot, grant = leases.vote(self._ballot, peer, message, now_s, self._config)
            yield peer, grant

    def turns(self, now_s: float) -> Iterator[tuple[str, bool, str]]:
        """Roles that this node has begun or ceased to lead since the last call, and who holds them as far as told."""
        for role, bid in self._bids.items():
            is_leading = leases.leads(bid, now_s, self._config)
            if is_leading != self._led.get(role, False):
                self._led[role] = is_leading
                yield role, is_leading, bid.holder

    def _to_voters(self, message: Ask | Release, now_s: float) -> Iterator[tuple[str, Ask | Release]]:
        for voter in self._config.voters:
            if voter != self._node:
                yield voter, message
            elif isinstance(message, Release):
                self._ballot = leases.free(self._ballot, voter, message)
            else:
                self._ballot, grant = leases.vote(self._ballot, voter, message, now_s, self._config)
                self._bids[message.role], _ = leases.answered(
                    self._bids[message.role], voter, grant, now_s, self._config
                )
