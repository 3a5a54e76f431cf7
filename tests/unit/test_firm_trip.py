"""A firm-wide trip reaches the other nodes before it is logged, and a person alone ends it."""

import pytest
from test_breaker_audit import NUM_BARS, frozen_after
from test_governed_loop import GovernedRun

from htfi.domain.decision import PolicyOutcome
from htfi.domain.events import FeedItem
from htfi.domain.governance import BreakerState
from htfi.governance.breakers.config import MEANINGS, BreakerConfig, BreakerLimits
from htfi.governance.bundles.bundle import BundleHead, BundleKind, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.control.entries import BreakerMoved, decode_governance
from htfi.governance.control.requests import BundleOffer, ReenableRequest, StopRequest
from htfi.pipeline.governance_ports import NoGovernanceLog, RequestQueue
from htfi.pipeline.record.entry import decode_entry


class Killed(BaseException):
    """The process ends here."""


class KilledAtTrip(NoGovernanceLog):
    """Ends the process where a trip is to be logged."""

    def append(self, entry: bytes):
        if b'"kind":"breaker"' in entry:
            raise Killed
        return super().append(entry)


class SharingQueue(RequestQueue):
    def __init__(self) -> None:
        super().__init__()
        self.shared: list[StopRequest] = []

    def share(self, request: StopRequest) -> None:
        self.shared.append(request)


def feeds(num_live: int) -> list[FeedItem]:
    """Daily bars of six symbols, of which all after `num_live` are the same."""
    items = [one for place, symbol in enumerate("ABCDEF") for one in frozen_after(symbol, num_live, place)]
    return sorted(items, key=lambda one: one.available_at_ns)


def frozen_run(log: NoGovernanceLog, before: GovernedRun | None = None) -> tuple[GovernedRun, SharingQueue]:
    """A run over feeds that freeze on day 30, under a bundle with a breaker of the firm that cools down at once."""
    run, queue = GovernedRun(log, None if before is None else before.ledger), SharingQueue()
    run.governance._requests = run.queue = queue  # type: ignore[assignment]
    run.loop.feed.items = feeds(30)  # type: ignore[attr-defined]
    others = {name: BreakerLimits(is_on=False) for name in MEANINGS}
    limits = BreakerLimits(("firm",), cool_down_minutes=0.0, half_open_observations=1)
    tables = BundleTables(breakers=BreakerConfig(**others | {"frozen_feed": limits}))
    text = write_bundle(BundleHead(1, "", BundleKind.QUORUM, "ann", 0), tables)
    queue.push(BundleOffer("b", 7, "aa" * 32, 1, text))
    return run, queue


def test_a_run_that_ends_between_the_two_has_stopped_the_others_and_trips_again() -> None:
    log = KilledAtTrip()
    run, queue = frozen_run(log)
    with pytest.raises(Killed):
        run.go()
    (stop,) = queue.shared
    assert (stop.scope, stop.by) == ("firm", "the breaker frozen_feed")
    num = run.ledger.size
    kept = NoGovernanceLog(log.recorded())
    again, queue = frozen_run(kept, run)
    decisions = again.go()
    assert [one.scope for one in queue.shared] == ["firm"]
    moved = [decode_governance(entry) for entry, _ in kept.recorded()]
    (trip,) = [one for one in moved if isinstance(one, BreakerMoved)]
    assert (trip.before, trip.state) == (num, BreakerState.OPEN)
    outcomes = [one.verdict.outcome is PolicyOutcome.WITHHOLD for one in decisions]
    assert outcomes == [place >= num for place in range(len(outcomes))]
    assert len(run.outlet.released) == num


def test_it_stays_open_however_calm_what_follows_until_a_named_person_re_enables_it() -> None:
    run, _ = frozen_run(NoGovernanceLog())
    run.loop.feed.items = [*feeds(30)[:360], *feeds(NUM_BARS)[360:]]  # type: ignore[attr-defined]
    decisions = run.go({360: ReenableRequest("r", 9, "firm", "Bob", "the feed was repaired")})
    moved = [
        one for entry, _ in run.log.recorded() if isinstance(one := decode_governance(entry), BreakerMoved)
    ]
    first = moved[0].before
    assert [one.state for one in moved if one.before < 360] == [BreakerState.OPEN]
    assert first < 300
    held = [place for place, one in enumerate(decisions) if one.verdict.outcome is PolicyOutcome.WITHHOLD]
    assert set(range(first, 360)) <= set(held)
    assert max(held) < 372
    assert decode_entry(run.ledger.entries[-1]).verdict.outcome is not PolicyOutcome.WITHHOLD
