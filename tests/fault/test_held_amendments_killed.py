"""Readers that are held while their late answers are on the way: these change no forecast, however a run is killed."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from htfi.domain.decision import Decision, PolicyOutcome, Rung
from htfi.domain.governance import BreakerState, GovernanceFacts
from htfi.governance.control.entries import (
    BreakerMoved,
    Reenabled,
    StopCause,
    Stopped,
    decode_governance,
    encode_governance,
)
from htfi.governance.control.requests import ControlRequest, ReenableRequest, StopRequest
from htfi.governance.ledger.log import TransparencyLog
from htfi.governance.policy import judge
from htfi.pipeline.amendments import is_set_aside
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.governance_ports import NoGovernanceLog, RequestQueue
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.ledger import open_ledger
from htfi.wiring.settings import load_settings
from late_network import LateAuthor, ListOutlet, days, loop_over

SYMBOLS, NUM_DAYS = ("A", "B", "C"), 44
DEPTH, TARGET = "2 answers of target@7a26", "target@7a26"
POLICY = load_settings(environment={}).policy
ITEMS = days(NUM_DAYS, SYMBOLS)
EARLIEST, NUM_STOPPED = (len(ITEMS) * 5) // 10, (len(ITEMS) * 2) // 10  # in items


class Recorded(NamedTuple):
    """What a run leaves: its ledger's entries, its governance log, what it has released."""

    entries: list[bytes]
    log: NoGovernanceLog
    released: list[bytes]

    @property
    def decisions(self) -> list[Decision]:
        return [decode_entry(entry) for entry in self.entries]

    @property
    def held(self) -> range:
        """The entries while the reader was stopped."""
        changes = [decode_governance(entry) for entry, _ in self.log.recorded()]
        (begin,) = (one.before for one in changes if isinstance(one, Stopped))
        (end,) = (one.before for one in changes if isinstance(one, Reenabled))
        return range(begin, end)


class Asked:
    """A stop of a reader once some of its answers are on the way, the same item in every run, and its end."""

    def __init__(self, reader: str) -> None:
        self.scope, self.rung = f"model:{reader}", Rung.DEEP if " answers of " in reader else Rung.SPECULATIVE
        self.stopped_at = 0

    def after_item(self, number: int, loop: DecisionLoop) -> ControlRequest | None:
        """What people ask after the item of this number."""
        if not self.stopped_at and number >= EARLIEST and self.rung in loop.late.pending.questions:
            self.stopped_at = number
        if self.stopped_at and number == self.stopped_at:
            return StopRequest("stop-1", 5, self.scope, "Ann", "a drill")
        if self.stopped_at and number == self.stopped_at + NUM_STOPPED:
            return ReenableRequest("re-1", 6, self.scope, "Ann", "over")
        return None


def run(
    ledger: TransparencyLog, asked: Asked, seed: int, log: NoGovernanceLog, released: list[bytes]
) -> Recorded:
    """A run over all items, by readers whose answers in depth are late too."""
    queue, outlet, num_items = RequestQueue(), ListOutlet(released), 0
    known = {getattr(decode_governance(entry), "request", "") for entry, _ in log.recorded()}
    loop = loop_over(
        ITEMS, LateAuthor(seed), ledger, outlet, deep=LateAuthor(seed + 1), group_ms=0.0,
        govern=lambda policy: RunGovernance(policy, log, queue),
    )  # fmt: skip

    def ask() -> None:
        nonlocal num_items
        num_items += 1
        request = asked.after_item(num_items, loop)
        if request is not None and request.id not in known:
            queue.push(request)

    loop.run(ask)
    entries = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    return Recorded(entries, log, outlet.released)


def problems(recorded: Recorded) -> list[str]:
    auditor = GovernanceAuditor(POLICY, recorded.log.recorded(), max_group=8)
    amendments = AmendmentAuditor(recorded.entries.__getitem__)
    digest = recorded.decisions[0].settings_digest
    return [
        problem
        for entry in recorded.entries
        for problem in check_entry(entry, digest, POLICY, amendments, governance=auditor)
    ]


def run_under(log: NoGovernanceLog, folder: Path, seed: int = 3) -> Recorded:
    """A run whose governance log holds entries from its start."""
    return run(open_ledger(folder, origin="test.run", durable=False), Asked("nobody"), seed, log, [])


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A run in which nothing is held."""
    return run_under(NoGovernanceLog(), tmp_path_factory.mktemp("free") / "run")


def moved(before: int, at_ns: int, state: BreakerState) -> bytes:
    """A change of the breaker of the reader in depth."""
    entry = BreakerMoved(at_ns, before, "views_shift", f"model:{DEPTH}", state, 9.0, 5.0, "views are others")
    return encode_governance(entry)


def deep_place(recorded: Recorded) -> int:
    """The index of a decision that is read again in depth."""
    return next(
        at
        for at, one in enumerate(recorded.decisions)
        if at > 20 and one.plan.rung_after_release is Rung.DEEP
    )


def point_of(recorded: Recorded, place: int) -> int:
    """The index of the first decision at the instant of one."""
    at_ns = recorded.decisions[place].as_of_ns
    return next(at for at, one in enumerate(recorded.decisions) if one.as_of_ns == at_ns and not one.amends)


def amended_by(recorded: Recorded, reader: str) -> list[Decision]:
    """The amendments with a view of this reader that came while it was held."""
    return [
        one
        for one in recorded.decisions[recorded.held.start : recorded.held.stop]
        if one.amends and one.view is not None and one.view.reader == reader
    ]


def check(recorded: Recorded, reader: str) -> None:
    """No amendment by the held reader is released, and nothing of it is weighed."""
    assert problems(recorded) == []
    released = {decode_entry(entry).id for entry in recorded.released}
    late = amended_by(recorded, reader)
    assert [one.id for one in late if one.verdict.outcome is not PolicyOutcome.WITHHOLD] == []
    assert all("stop of model:" in one.verdict.reasons[-1] for one in late)
    assert len(released) == len(recorded.entries)


@pytest.mark.parametrize(
    ("seed", "reader"),
    [
        (3, DEPTH),
        (0, TARGET),
        pytest.param(4, DEPTH, marks=pytest.mark.slow),
    ],
)
def test_what_a_reader_answers_while_it_is_held_changes_no_forecast_however_the_run_is_killed(
    tmp_path: Path, seed: int, reader: str
) -> None:
    asked, dice = Asked(reader), random.Random(seed)
    first = open_ledger(tmp_path / "whole", origin="test.run", durable=False)
    whole = run(first, asked, seed, NoGovernanceLog(), [])
    late = amended_by(whole, reader)
    assert len(late) > 0
    check(whole, reader)
    assert any(
        one.amends and one.view is not None and one.view.reader == reader and one.forecast.tilt is not None
        for one in whole.decisions[: whole.held.start] + whole.decisions[whole.held.stop :]
    )
    places = [whole.decisions.index(one) for one in late]
    for cut in {places[0], places[0] + 1, whole.held.start, dice.choice(whole.held)}:
        ledger = open_ledger(tmp_path / f"cut{cut}", origin="test.run", durable=False)
        ledger.append(whole.entries[:cut])
        logged = [pair for pair in whole.log.recorded() if decode_governance(pair[0]).before <= cut]
        again = run(
            ledger, asked, seed + 50, NoGovernanceLog(logged), whole.entries[: dice.randrange(cut + 1)]
        )
        assert again.entries[:cut] == whole.entries[:cut]
        check(again, reader)


def test_a_reader_in_depth_is_watched_on_new_news_while_its_breaker_is_half_open_and_changes_nothing(
    free: Recorded, tmp_path: Path
) -> None:
    place = deep_place(free)
    begin = point_of(free, place)
    at_ns = free.decisions[place].as_of_ns - 1
    log = NoGovernanceLog(
        [(moved(begin, at_ns, state), "leaf") for state in (BreakerState.OPEN, BreakerState.HALF_OPEN)]
    )
    found = run_under(log, tmp_path / "run")
    assert problems(found) == []
    after = found.decisions[begin:]
    watched = [one for one in after if one.plan.rung_after_release is Rung.DEEP]
    assert len(watched) > 0
    assert [one for one in watched if one.view is None or one.view.read_at_ns != one.as_of_ns] == []
    deep = [one for one in after if one.amends and one.view is not None and one.view.reader == DEPTH]
    assert len(deep) > 0
    assert {one.verdict.outcome for one in deep} == {PolicyOutcome.WITHHOLD}
    assert {one.forecast.tilt for one in deep} == {None}
    others = [one for one in after if one.view is not None and not one.amends]
    assert len(others) > len(deep)
    assert [one.id for one in others if one.view is not None and one.view.reader == DEPTH] == []


def test_an_auditor_finds_a_reading_in_depth_by_a_reader_that_is_held(free: Recorded, tmp_path: Path) -> None:
    place = deep_place(free)
    stop = Stopped(
        1, point_of(free, place - 16), f"model:{DEPTH}", "Ann", "a drill", StopCause.COMMAND, "stop-1"
    )
    found = run_under(NoGovernanceLog([(encode_governance(stop), "leaf")]), tmp_path / "run")
    assert problems(found) == []
    place = next(at for at, one in enumerate(found.decisions) if one.id == free.decisions[place].id)
    first = found.decisions[place]
    assert first.plan.rung_after_release is None
    forged = replace(first, plan=replace(first.plan, rung_after_release=Rung.DEEP))
    entries = [*found.entries[:place], encode_entry(forged), *found.entries[place + 1 :]]
    expected = "it is read again in depth by a reader that the governance log holds back"
    assert expected in problems(found._replace(entries=entries))


def test_an_amendment_that_an_earlier_version_let_count_is_told_as_such(
    free: Recorded, tmp_path: Path
) -> None:
    place = deep_place(free)
    begin, at_ns = point_of(free, place), free.decisions[place].as_of_ns - 1
    states = (BreakerState.OPEN, BreakerState.HALF_OPEN)
    log = NoGovernanceLog([(moved(begin, at_ns, state), "leaf") for state in states])
    found = run_under(log, tmp_path / "run")
    late = next(one for one in found.decisions if one.amends and is_set_aside(one))
    assert isinstance(late.governance, GovernanceFacts)
    older = replace(late, governance=replace(late.governance, holds=()))
    older = replace(older, verdict=judge(older, POLICY))
    at = found.decisions.index(late)
    entries = [*found.entries[:at], encode_entry(older), *found.entries[at + 1 :]]
    (told,) = problems(found._replace(entries=entries))
    assert "it amends by a view that is set aside and is not withheld, as by development versions" in told
    assert "\n" not in told
