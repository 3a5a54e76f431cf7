"""The roles that a node leads or seeks, and its vote where it is a voter. `watch` owns one and carries its messages."""

from collections.abc import Iterator

from htfi.domain.errors import InvalidInput
from htfi.scheduling.health import leases
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import MAX_NAME, LeaseGrant, LeaseRelinquish, LeaseRequest


class RoleLeases:
    """Bids and ballot of one life of a node. Messages go out with their receiver's name."""

    def __init__(self, node: str, life: int, config: HealthConfig, now_s: float) -> None:
        self._node = node
        self._life = life
        self._config = config
        self._voter = leases.VoterState(now_s)
        self._bids: dict[str, leases.LeaseBid] = {}
        self._sought: set[str] = set()
        self._was_leading: dict[str, bool] = {}

    def seek(self, role: str) -> None:
        """Raises: InvalidInput where no voters are named."""
        if not self._config.voters:
            raise InvalidInput("health.voters is empty: name the clouds whose grants make a leader")
        if not 0 < len(role) <= MAX_NAME:
            raise InvalidInput(f"a role's name must have 1 to {MAX_NAME} characters, not {len(role)}")
        # The number continues if the role was led before: a late grant must not pass for one of a new ask.
        self._bids.setdefault(role, leases.LeaseBid(role, self._life))
        self._sought.add(role)

    def resign(self, role: str, now_s: float) -> list[tuple[str, LeaseRequest | LeaseRelinquish]]:
        """Effective at once: `leads` is False from now on, whether or not the messages arrive."""
        if role not in self._sought:
            return []
        self._sought.remove(role)
        self._bids[role], release = leases.resign_bid(self._bids[role])
        return list(self._to_voters(release, now_s))

    def leads(self, role: str, now_s: float) -> bool:
        bid = self._bids.get(role)
        return bid is not None and leases.holds_lease(bid, now_s, self._config)

    def remaining_ms(self, role: str, now_s: float) -> float:
        bid = self._bids.get(role)
        return max(0.0, (leases.lease_end_s(bid, self._config) - now_s) * 1e3) if bid is not None else 0.0

    def tick(self, now_s: float, jitter: float) -> Iterator[tuple[str, LeaseRequest | LeaseRelinquish]]:
        for role in sorted(self._sought):
            self._bids[role], message = leases.next_lease_message(
                self._bids[role], now_s, jitter, self._config
            )
            if message is not None:
                yield from self._to_voters(message, now_s)

    def receive(
        self, peer: str, message: LeaseRequest | LeaseGrant | LeaseRelinquish, now_s: float
    ) -> Iterator[tuple[str, LeaseGrant | LeaseRelinquish]]:
        if isinstance(message, LeaseGrant):
            bid = self._bids.get(message.role)
            if bid is not None:
                self._bids[message.role], release = leases.receive_grant(
                    bid, peer, message, now_s, self._config
                )
                if release is not None:
                    yield peer, release
        elif self._node not in self._config.voters:
            return
        elif isinstance(message, LeaseRelinquish):
            self._voter = leases.free_lease(self._voter, peer, message)
        else:
            self._voter, grant = leases.vote_on_request(self._voter, peer, message, now_s, self._config)
            yield peer, grant

    def leadership_changes(self, now_s: float) -> Iterator[tuple[str, bool, str]]:
        """Roles that this node has begun or ceased to lead since the last call, and their holder where known."""
        for role, bid in self._bids.items():
            is_leading = leases.holds_lease(bid, now_s, self._config)
            if is_leading != self._was_leading.get(role, False):
                self._was_leading[role] = is_leading
                yield role, is_leading, bid.holder

    def _to_voters(
        self, message: LeaseRequest | LeaseRelinquish, now_s: float
    ) -> Iterator[tuple[str, LeaseRequest | LeaseRelinquish]]:
        for voter in self._config.voters:
            if voter != self._node:
                yield voter, message
            elif isinstance(message, LeaseRelinquish):
                self._voter = leases.free_lease(self._voter, voter, message)
            else:
                self._voter, grant = leases.vote_on_request(self._voter, voter, message, now_s, self._config)
                self._bids[message.role], _ = leases.receive_grant(
                    self._bids[message.role], voter, grant, now_s, self._config
                )
