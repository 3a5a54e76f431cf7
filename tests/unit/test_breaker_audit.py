"""Changes of circuit breakers derived again from the ledger: what was removed, added or altered is named."""

from functools import lru_cache

import msgspec
import pytest
from test_governed_loop import GovernedRun
from test_pipeline_loop import bar

from htfi.domain.events import Bar
from htfi.domain.governance import BreakerState
from htfi.governance.breakers.config import BreakerConfig, BreakerLimits
from htfi.governance.bundles.bundle import BundleHead, BundleKind, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import BreakerMoved, decode_governance, encode_governance
from htfi.governance.control.requests import BundleOffer
from htfi.pipeline.audit.breakers import BreakerAuditor
from htfi.pipeline.record.entry import decode_entry

NUM_BARS, NUM_LIVE = 90, 40
Entries = list[tuple[bytes, str]]


def frozen_after(symbol: str, num_live: int, place: int) -> list[Bar]:
    """Daily bars, of which all after `num_live` are the same."""
    return [
        bar(symbol, day, 100.0 + (min(day, num_live) * 7919 % 13) / 10, row=2 * day + place)
        for day in range(NUM_BARS)
    ]


def bundle_text() -> str:
    limits = BreakerLimits(("series",), cool_down_minutes=3 * 1440.0, half_open_observations=3)
    tables = BundleTables(breakers=BreakerConfig(frozen_feed=limits))
    return write_bundle(BundleHead(1, "", BundleKind.QUORUM, "ann", 0), tables)


@lru_cache(maxsize=1)
def frozen_run() -> GovernedRun:
    """A run in which the feed of A freezes for good and that of B goes on."""
    run = GovernedRun()
    items = sorted(
        [*frozen_after("A", NUM_LIVE, 1), *frozen_after("B", NUM_BARS, 2)],
        key=lambda one: one.available_at_ns,
    )
    run.loop.feed.items = items  # type: ignore[attr-defined]
    run.queue.push(BundleOffer("b", 7, "aa" * 32, 1, bundle_text()))
    run.go()
    return run


def moves(entries: Entries) -> list[BreakerMoved]:
    return [one for entry, _ in entries if isinstance(one := decode_governance(entry), BreakerMoved)]


def audit(entries: Entries) -> list[str]:
    auditor = BreakerAuditor(PolicyConfig(), entries)
    for entry in frozen_run().ledger.entries:
        if found := auditor.problems(decode_entry(entry)):
            return found
    return auditor.finish()


def altered(entries: Entries, **changes: object) -> Entries:
    """The log with its first breaker change altered."""
    place = next(place for place, (entry, _) in enumerate(entries) if b'"kind":"breaker"' in entry)
    entry = decode_governance(entries[place][0])
    made = encode_governance(msgspec.structs.replace(entry, **changes))
    return [*entries[:place], (made, "00"), *entries[place + 1 :]]


def test_what_the_breakers_did_follows_from_the_ledger_to_the_last_bit() -> None:
    recorded = list(frozen_run().log.recorded())
    found = moves(recorded)
    assert (found[0].breaker, found[0].scope) == ("frozen_feed", "series:A/1d")
    assert BreakerState.HALF_OPEN in {one.state for one in found}
    assert audit(recorded) == []
    auditor = BreakerAuditor(PolicyConfig(), recorded)
    assert [auditor.problems(decode_entry(entry)) for entry in frozen_run().ledger.entries].count([]) > 90
    assert auditor.finish() == []
    assert (auditor.num_derived, auditor.num_after) == (len(found), 0)


def test_a_change_that_was_removed_is_named() -> None:
    recorded = list(frozen_run().log.recorded())
    without = [one for one in recorded if b'"kind":"breaker"' not in one[0]]
    (problem,) = audit(without)
    first = moves(recorded)[0]
    assert problem == (
        f"breaker frozen_feed of series:A/1d becomes open before decision {first.before} by the decisions, "
        "but the governance log does not hold it"
    )


def test_a_change_that_was_added_is_named() -> None:
    recorded = list(frozen_run().log.recorded())
    made = encode_governance(
        BreakerMoved(9, 20, "bands_left", "series:B/1d", BreakerState.OPEN, 9e9, 1e5, "made up")
    )
    (problem,) = audit([recorded[0], (made, "00"), *recorded[1:]])
    assert problem == (
        "it holds that breaker bands_left of series:B/1d becomes open before decision 20, which does not follow from "
        "the decisions"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"statistic": 5.0}, "its statistic is"),
        ({"threshold": 5.0}, "its threshold is"),
        ({"evidence": "nothing of note"}, "its evidence is"),
        ({"at_ns": 5}, "its at_ns is"),
        ({"scope": "series:B/1d"}, "but the governance log holds that breaker frozen_feed of series:B/1d"),
        ({"state": BreakerState.HALF_OPEN}, "but the governance log holds that"),
    ],
    ids=["statistic", "threshold", "evidence", "time", "scope", "state"],
)
def test_a_change_that_was_altered_is_named(changes: dict[str, object], words: str) -> None:
    (problem,) = audit(altered(list(frozen_run().log.recorded()), **changes))
    assert words in problem
    assert "frozen_feed of series:A/1d" in problem


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([(BreakerState.OPEN, 0, 5e6, 2e6)], None),
        ([(BreakerState.OPEN, 0, 1e6, 2e6)], "its statistic is 1e+06, below its threshold"),
        ([(BreakerState.OPEN, 0, 5e6, 1e6)], "its threshold is 2e+06 by the bundle, but 1e+06"),
        ([(BreakerState.HALF_OPEN, 0, 0.0, 0.0)], "it was not open"),
        (
            [(BreakerState.OPEN, 0, 5e6, 2e6), (BreakerState.CLOSED, 9e18, 0.0, 0.0)],
            "a person alone closes it",
        ),
    ],
    ids=["sound", "low", "threshold", "half_open", "closed"],
)
def test_breakers_that_watch_items_are_compared_with_their_limits(
    steps: list[tuple[BreakerState, float, float, float]], words: str | None
) -> None:
    made = [
        BreakerMoved(int(at_ns), 500, "quarantine_swells", "firm", state, statistic, threshold, "news")
        for state, at_ns, statistic, threshold in steps
    ]
    recorded = list(frozen_run().log.recorded())
    found = audit([*recorded, *((encode_governance(one), "00") for one in made)])
    assert found == [] if words is None else words in found[0]
