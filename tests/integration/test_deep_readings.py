"""Where numbers and narrative disagree: a provisional answer, a reading in depth, an amendment; the same every time."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from htfi.apps.cli.report.survey import take_survey
from htfi.apps.cli.report.tables import readings_html
from htfi.domain.decision import Decision, PolicyOutcome, Rung, encode_decision
from htfi.domain.events import FeedItem
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.narrative.deep_reader import DeepReader
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.outputs import ReleasedLine
from htfi.wiring.settings import load_settings, override
from late_network import LateAuthor, ListFeed, ListOutlet, days

SYMBOLS = ("A", "B", "C")
NUM_DAYS = 50
ITEMS = days(NUM_DAYS, SYMBOLS)


class Deep(LateAuthor):
    """Says what it always says; counts what it was asked, and what had been released by then."""

    def __init__(self, outlet: ListOutlet) -> None:
        super().__init__(0, late_share=0.0)
        self.outlet = outlet
        self.refuses = False
        self.num_released: list[int] = []

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        self.num_released.append(len(self.outlet.released))
        return [RequestRefused("no room") for _ in requests] if self.refuses else super().write(requests)


def loop_over(
    items: Sequence[FeedItem],
    folder: Path,
    entries: Sequence[bytes] = (),
    released: int = 0,
    **changed: float,
) -> tuple[DecisionLoop, Deep, ListOutlet]:
    """A loop whose narrator is loud, and is read whatever it has earned; `changed` are settings of the ladder."""
    settings = override(load_settings(environment={}), "pipeline", deadline_ms=1e5, group_ms=3.6e6)
    settings = override(settings, "encoding", model="none")
    settings = override(settings, "scheduling", **{"high_divergence": 0.45, "min_influence": 0.0, **changed})
    outlet = ListOutlet(entries[:released])
    ledger = open_ledger(folder, origin="test.run", durable=False)
    if entries:
        ledger.append(list(entries))
    deep = Deep(outlet)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(LateAuthor(0, late_share=0.0), settings.narrative),
        Rung.DEEP: DeepReader(deep, settings.narrative),
    }
    return build_loop(settings, ListFeed(items), ledger, outlet, readers=readers), deep, outlet


def entries_of(loop: DecisionLoop) -> list[bytes]:
    ledger = loop.recorder.ledger
    found = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    return found


def check(entries: Sequence[bytes]) -> list[Decision]:
    found = [decode_entry(entry) for entry in entries]
    amendments, policy = AmendmentAuditor(entries.__getitem__), load_settings(environment={}).policy
    for decision, entry in zip(found, entries, strict=True):
        assert check_entry(entry, decision.settings_digest, policy, amendments) == []
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    loop, _, outlet = loop_over(ITEMS, tmp_path_factory.mktemp("whole"))
    loop.run(lambda: None)
    entries = entries_of(loop)
    assert outlet.released == entries
    return entries


def test_both_answers_are_kept_and_the_amendment_follows_its_moment(whole: list[bytes]) -> None:
    found = check(whole)
    amended = [one for one in found if one.amends]
    by_id = {one.id: place for place, one in enumerate(found)}
    assert len(amended) > 5
    assert [one.amends for one in amended] == [one.id for one in found if one.awaits_amendment]
    for one in amended:
        first = found[by_id[one.amends]]
        assert first.plan.rung_after_release is Rung.DEEP
        assert first.forecast.tilt is not None
        assert first.forecast.tilt.divergence_rank >= 0.45
        assert "The answer is provisional; a deeper reading follows" in first.rationale.text
        assert one.plan.rung is Rung.DEEP
        assert one.view is not None
        assert one.view.reader == "16 answers of target@7a26"
        assert one.view.trace is not None
        assert len(one.view.trace.paths) == 16
        assert "the deeper reading points" in one.rationale.text
        between = found[by_id[one.amends] : by_id[one.id]]
        assert all(other.as_of_ns == one.as_of_ns for other in between)
        assert one.forecast.experts == first.forecast.experts
    assert any(found[by_id[one.amends]].forecast.quantiles != one.forecast.quantiles for one in amended)


def test_later_decisions_keep_the_deeper_view_which_is_not_asked_for_again(whole: list[bytes]) -> None:
    found = check(whole)
    deep = {(one.series, one.as_of_ns): one.view for one in found if one.amends and one.view is not None}
    kept = 0
    for one in found:
        if one.view is None or one.amends or (one.series, one.view.as_of_ns) not in deep:
            continue
        if one.view.as_of_ns < one.as_of_ns:
            assert one.view == replace(deep[one.series, one.view.as_of_ns], trace=None)
            assert one.plan.rung_after_release is None
            kept += 1
    assert kept > 5


def test_the_report_scores_what_was_released_as_the_run_does(tmp_path: Path) -> None:
    loop, _, _ = loop_over(ITEMS, tmp_path)
    loop.run(lambda: None)
    found = check(entries_of(loop))
    assert all(one.verdict.outcome is not PolicyOutcome.WITHHOLD for one in found)
    lines = [ReleasedLine(place, "00" * 32, one) for place, one in enumerate(found)]
    survey = take_survey(lines, len(lines))
    assert survey is not None
    run = {(row.name, row.horizon): row for row in loop.components.forecaster.scores()}
    for h, horizon in enumerate(survey.axes.horizons):
        num = survey.num[:, h].sum()
        if num:
            fused = survey.crps[:, h, 0].sum() / num
            assert num == run["fused", horizon].num
            assert fused == pytest.approx(run["fused", horizon].crps, rel=1e-6)
    num_experts = max(len(one.forecast.expert_ticks) for one in found)
    narrators, same = loop.components.forecaster.track_records(), 0
    assert {row.narrator for row in narrators} == {"target@7a26", "16 answers of target@7a26"}
    for row in narrators:
        tally = survey.readings.weighed[row.narrator, row.horizon]
        young = sum(
            one.forecast.tilt is not None
            and one.forecast.tilt.narrator == row.narrator
            and len(one.forecast.expert_ticks) < num_experts
            for one in found
        )
        assert row.num - young <= tally.num <= row.num  # the page leaves out what an expert was too young for
        if tally.num == row.num:
            same += 1
            assert tally.numbers / tally.num == pytest.approx(row.plain_crps, rel=1e-6)
            assert tally.released / tally.num == pytest.approx(row.tilted_crps, rel=1e-6)
    assert same
    html = readings_html(survey)
    assert "What they were worth" in html
    assert f"{sum(bool(one.amends) for one in found)} decisions were amended by a reading in depth" in html


def test_the_same_inputs_give_the_same_entries(whole: list[bytes], tmp_path: Path) -> None:
    loop, _, _ = loop_over(ITEMS, tmp_path)
    loop.run(lambda: None)
    assert entries_of(loop) == whole


def test_the_first_answer_is_out_before_the_reading_in_depth_begins(
    whole: list[bytes], tmp_path: Path
) -> None:
    loop, deep, _ = loop_over(ITEMS, tmp_path)
    loop.run(lambda: None)
    found = check(entries_of(loop))
    moments = sorted({one.as_of_ns for one in found if one.awaits_amendment})
    last_first = [
        max(k for k, one in enumerate(found) if one.as_of_ns == at and not one.amends) for at in moments
    ]
    assert deep.num_released == [place + 1 for place in last_first]


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_entry_it_goes_on_to_the_same_entries(
    whole: list[bytes], tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    told = f"seed {seed}"
    loop, _, _ = loop_over(ITEMS, tmp_path / "saved")
    saved: list[tuple[int, int, bytes]] = []
    taken = 0

    def save() -> None:
        nonlocal taken
        taken += 1
        if dice.random() < 0.1:
            loop.recorder.commit(now=True)
            saved.append((taken, loop.recorder.num_recorded, encode_state(loop.state())))

    loop.run(save)
    loop.recorder.ledger.close()
    places = [place for place, entry in enumerate(whole) if decode_entry(entry).amends]
    cuts = [
        *dice.sample(places, 2),
        *(place + 1 for place in dice.sample(places, 1)),
        dice.randrange(len(whole)),
    ]
    for cut in cuts:
        states = [state for state in saved if state[1] <= cut]
        start, _, state = states[-1] if states and dice.random() < 0.7 else (0, 0, b"")
        again, _, outlet = loop_over(
            ITEMS[start:], tmp_path / f"cut{cut}", whole[:cut], dice.randrange(cut + 1)
        )
        if state:
            again.restore(decode_state(state))
        again.run(lambda: None)
        assert entries_of(again) == whole, f"{told}, cut {cut}"
        assert outlet.released == whole, f"{told}, cut {cut}"


def test_what_the_ledger_holds_of_a_reading_in_depth_is_not_read_again(
    whole: list[bytes], tmp_path: Path
) -> None:
    loop, deep, _ = loop_over(ITEMS, tmp_path, whole)
    loop.run(lambda: None)
    assert entries_of(loop) == whole
    assert deep.written == []


def test_within_a_moment_as_many_are_read_as_the_budget_allows_and_the_rest_counted(tmp_path: Path) -> None:
    loop, _, _ = loop_over(ITEMS, tmp_path, deep_ms=1_000.0, deep_budget_ms=1_500.0)
    loop.run(lambda: None)
    found = check(entries_of(loop))
    moments = [one.as_of_ns for one in found if one.awaits_amendment]
    assert moments
    assert len(set(moments)) == len(moments)
    assert loop.num_deep_reads_skipped > 0
    by_moment = {one.as_of_ns: one for one in found if one.awaits_amendment}
    for at, one in by_moment.items():
        others = [
            other.forecast.tilt.divergence_rank
            for other in found
            if other.as_of_ns == at and not other.amends and other.forecast.tilt is not None
            and other.view is not None and other.view.reader == "target@7a26"
        ]  # fmt: skip
        assert one.forecast.tilt is not None
        assert one.forecast.tilt.divergence_rank == max(others)


@pytest.mark.parametrize("changed", [{"deep_budget_ms": 0.0}, {"deep_ms": 3e6, "deep_budget_ms": 3e5}])
def test_without_a_budget_nothing_is_read_in_depth(tmp_path: Path, changed: dict[str, float]) -> None:
    loop, deep, _ = loop_over(ITEMS, tmp_path, **changed)
    loop.run(lambda: None)
    assert not any(one.awaits_amendment or one.amends for one in check(entries_of(loop)))
    assert deep.written == []
    assert loop.num_deep_reads_skipped > 5


def test_a_reading_in_depth_that_is_refused_leaves_the_first_answer(tmp_path: Path) -> None:
    loop, deep, _ = loop_over(ITEMS, tmp_path)
    deep.refuses = True
    loop.run(lambda: None)
    found = check(entries_of(loop))
    assert not any(one.amends for one in found)
    assert loop.late.pending.num_abandoned == sum(one.awaits_amendment for one in found) > 5


def test_what_was_changed_in_a_record_is_named(whole: list[bytes]) -> None:
    found = [decode_entry(entry) for entry in whole]
    place = next(k for k, one in enumerate(found) if one.amends and one.forecast.tilt is not None)
    one = found[place]
    tilt = one.forecast.tilt
    assert tilt is not None
    heavier = replace(tilt, weight=[1.0, 1.0, 1.0])
    shifted = replace(tilt, shift=[shift + 1e-4 for shift in tilt.shift])
    beyond = replace(tilt, weight=[1.5, 1.0, 1.0])
    cases = {
        "quantiles do not follow": replace(one, forecast=replace(one.forecast, tilt=heavier)),
        "change of the forecast does not follow": replace(one, forecast=replace(one.forecast, tilt=shifted)),
        "not between 0 and 1": replace(one, forecast=replace(one.forecast, tilt=beyond)),
        "whether the view is weighed": replace(one, forecast=replace(one.forecast, tilt=None)),
        "plan does not follow": replace(one, plan=found[place - 1].plan),
        "verdict does not follow": replace(one, verdict=replace(one.verdict, reasons=["because"])),
        "band and view weight": replace(
            one, rationale=replace(one.rationale, slots={**one.rationale.slots, "tilt_weight": "99%"})
        ),
    }
    policy = load_settings(environment={}).policy
    for told, altered in cases.items():
        entries = [*whole[:place], encode_decision(altered)]
        amendments = AmendmentAuditor(entries.__getitem__)
        problems: list[str] = []
        for entry in entries:
            problems = check_entry(entry, one.settings_digest, policy, amendments)
        assert any(told in problem for problem in problems), (told, problems)
