"""Readers that have earned no weight are asked on trial alone; the encoder reads the rest if it has earned some, and an
auditor agrees.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from htfi.domain.decision import Decision, encode_decision
from htfi.domain.events import Bar, FeedItem, News
from htfi.domain.news import Route
from htfi.domain.news_view import NewsView
from htfi.domain.plan import LadderInputs, PlanReason, Rung
from htfi.domain.time import NS_PER_S
from htfi.forecasting.track_record import NarratorTrackRecords
from htfi.governance.control.entries import StopCause, Stopped, encode_governance
from htfi.narrative.question import Question
from htfi.narrative.readers import TemplateReader
from htfi.pipeline.audit.readings import ReadingAuditor, ReadingSettings
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.entry import decode_entry
from htfi.scheduling.fidelity import is_encoder_trial, is_trial
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import Settings, load_settings, override
from late_network import START_NS, ListFeed, ListOutlet

BAR_NS = 3_600 * NS_PER_S
NUM_BARS, FIRST_NEWS = 60, 25
TRIALS = [name for number in range(400) if is_trial(name := f"n{number}")][:2]
OTHERS = [name for number in range(400) if not is_trial(name := f"n{number}") and not is_encoder_trial(name)][
    :2
]
HEADLINES = (
    "ACME raises its full-year forecast after record orders",
    "Regulators open an inquiry into the accounts of ACME",
    "ACME cuts a third of its workforce as demand collapses",
    "ACME wins a contract worth 2 billion dollars from the ministry of defence",
)


class Counting:
    """A reader with an opinion, which counts what it is asked."""

    speculation_stats = None

    def __init__(self, name: str) -> None:
        self.version = f"{name}@0001"
        self.asked: list[str] = []
        self._inner = TemplateReader()

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        self.asked += [question.items[0].id for question in questions]
        views = self._inner.read(questions, deadline_ms)
        return [
            replace(view, direction=1.0, size_sigmas=1.0, confidence=0.5, reader=self.version)
            for view in views
        ]


def feed() -> list[FeedItem]:
    """Hourly bars; an item every eight hours, the second and the fourth of them trials."""
    dice = random.Random(3)
    names = iter((OTHERS[0], TRIALS[0], OTHERS[1], TRIALS[1]))
    items: list[FeedItem] = []
    for hour in range(NUM_BARS):
        end_ns = START_NS + hour * BAR_NS
        if hour >= FIRST_NEWS and (hour - FIRST_NEWS) % 8 == 0 and (name := next(names, "")):
            at_ns = end_ns - NS_PER_S
            headline = HEADLINES[(hour - FIRST_NEWS) // 8]
            items.append(News(at_ns, at_ns, "wire", hour, name, headline, ("ACME",)))
        close = 100.0 + dice.gauss(0, 1)
        items.append(
            Bar(end_ns, end_ns, "bars", hour + 1, "ACME", "1h", end_ns - BAR_NS, end_ns, close, close + 1,
                close - 1, close)
        )  # fmt: skip
    return items


def settings() -> Settings:
    return override(
        override(load_settings(environment={}), "encoding", model="heads"), "pipeline", group_ms=3.6e6
    )


def run(
    folder: Path, entries: Sequence[bytes] = (), governance: RunGovernance | None = None
) -> tuple[list[bytes], Counting, Counting]:
    draft, target = Counting("draft"), Counting("target")
    readers = {Rung.TEMPLATE: TemplateReader(), Rung.EDGE: draft, Rung.SPECULATIVE: target}
    ledger = open_ledger(folder, origin="test.run", durable=False)
    if entries:
        ledger.append(list(entries))
    loop = build_loop(
        settings(), ListFeed(feed()), ledger, ListOutlet(entries), readers=readers, governance=governance
    )
    loop.run(lambda: None)
    found = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    return found, draft, target


def encoder_alone(_: NarratorTrackRecords, narrator: str) -> float:
    """What only the encoder has earned."""
    return 0.5 if narrator.startswith("encoder ") else 0.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], Counting, Counting]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NarratorTrackRecords, "potential", encoder_alone)
        return run(tmp_path_factory.mktemp("run"))


def with_news(entries: Sequence[bytes]) -> list[Decision]:
    found = [decode_entry(entry) for entry in entries]
    return [one for one in found if one.news_context is not None]


def test_only_trials_are_read_and_the_encoder_reads_the_rest(
    made: tuple[list[bytes], Counting, Counting],
) -> None:
    entries, draft, target = made
    assert (draft.asked, target.asked) == ([], TRIALS)
    found = with_news(entries)
    low = [one for one in found if PlanReason.LOW_INFLUENCE in one.plan.reasons]
    assert len(low) >= 16
    for one in low:
        assert one.plan.rung is Rung.TEMPLATE
        assert one.news_context is not None
        assert {item.route for item in one.news_context.considered} == {Route.ENCODER}
        assert one.view is not None
        assert [part.cited[0] for part in one.view.parts] == [item.id for item in one.news_context.considered]
        assert one.view.reader.startswith("encoder ")
        assert one.forecast.tilt is not None
    trials = [one for one in found if PlanReason.TRIAL in one.plan.reasons]
    assert {one.view.reader for one in trials if one.view is not None} == {"target@0001"}


def problems_of(entries: Sequence[bytes]) -> list[str]:
    """What an auditor finds; that stand-ins for models record no tokens is left out."""
    known = settings()
    amendments = AmendmentAuditor(entries.__getitem__)
    readings = ReadingAuditor(ReadingSettings(known.narrative, 0), lambda _: None)
    return [
        problem
        for entry in entries
        for problem in check_entry(
            entry, decode_entry(entry).settings_digest, known.policy, amendments, known.routing,
            known.suspicion, readings, known.sanitiser, known.scheduling,
        )
        if "generation of its view" not in problem
    ]  # fmt: skip


def test_an_auditor_derives_each_plan_route_and_view_again(
    made: tuple[list[bytes], Counting, Counting],
) -> None:
    entries, _, _ = made
    assert len(entries) >= NUM_BARS // 2
    assert problems_of(entries) == []
    place = next(
        place
        for place, entry in enumerate(entries)
        if PlanReason.LOW_INFLUENCE in decode_entry(entry).plan.reasons
    )
    low = decode_entry(entries[place])
    assert isinstance(low.plan.inputs, LadderInputs)
    loud = replace(low.plan.inputs, speculative_influence=1.0)
    forged = encode_decision(replace(low, plan=replace(low.plan, inputs=loud)))
    changed = [*entries[:place], forged, *entries[place + 1 :]]
    assert any("the rung template does not follow" in one for one in problems_of(changed))


def test_where_nobody_has_earned_a_weight_news_is_cited_and_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NarratorTrackRecords, "potential", lambda *_: 0.0)
    entries, _, target = run(tmp_path)
    assert target.asked == TRIALS
    silent = [one for one in with_news(entries) if PlanReason.NO_INFLUENCE in one.plan.reasons]
    assert len(silent) >= 16
    for one in silent:
        assert one.news_context is not None
        assert {item.route for item in one.news_context.considered} == {Route.TEMPLATE}
        assert one.forecast.tilt is None
        assert one.view is not None
        assert (one.view.confidence, one.view.parts) == (0.0, ())
        assert one.rationale.cited
    assert problems_of(entries) == []


@pytest.mark.parametrize("cut", [0.5, pytest.param(0.8, marks=pytest.mark.slow)])
def test_a_run_that_was_cut_goes_on_to_the_same_entries(
    made: tuple[list[bytes], Counting, Counting], cut: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NarratorTrackRecords, "potential", encoder_alone)
    entries, _, _ = made
    again, _, _ = run(tmp_path, entries[: round(cut * len(entries))])
    assert again == entries


def test_a_reader_that_has_earned_its_weight_is_asked_for_every_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NarratorTrackRecords, "potential", lambda *_: 0.5)
    entries, _, target = run(tmp_path)
    assert target.asked == [OTHERS[0], TRIALS[0], OTHERS[1], TRIALS[1]]
    assert not any(PlanReason.LOW_INFLUENCE in one.plan.reasons for one in with_news(entries))


def test_where_both_readers_are_held_the_encoders_readings_count(tmp_path: Path) -> None:
    log = NoGovernanceLog(
        [
            (
                encode_governance(Stopped(1, 0, f"model:{name}", "Ann", "a drill", StopCause.COMMAND, name)),
                "leaf",
            )
            for name in ("reader.edge", "reader.speculative")
        ]
    )
    entries, draft, target = run(tmp_path, governance=RunGovernance(settings().policy, log))
    assert (draft.asked, target.asked) == ([], [])
    held = [one for one in with_news(entries) if PlanReason.HELD in one.plan.reasons]
    assert len(held) >= 16
    for one in held:
        assert one.plan.rung is Rung.TEMPLATE
        assert one.news_context is not None
        assert {item.route for item in one.news_context.considered} == {Route.ENCODER}
        assert one.view is not None
        assert one.view.reader.startswith("encoder ")
        assert one.forecast.tilt is not None
    assert problems_of(entries) == []
