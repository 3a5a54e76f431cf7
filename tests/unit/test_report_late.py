"""A run with amendments is scored, drawn and read as the run without them; what was late is told beside."""

import numpy as np
import pytest
from msgspec import structs

from htfi.apps.cli.report.amendments import MAX_PLACES, amended_id
from htfi.apps.cli.report.survey import take_survey
from htfi.apps.cli.report.tables import readings_html
from htfi.apps.cli.report.tracks import choose_tracks, collect_tracks
from htfi.domain.decision import PolicyOutcome, amendment_id
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import NewsView
from htfi.wiring.outputs import ReleasedLine, WithheldLine

SUMS = ("crps", "num", "below", "pit", "regime_within", "regime_num")


def as_lines(decisions):
    lines = []
    for index, d in enumerate(decisions):
        if d.verdict.outcome is PolicyOutcome.WITHHOLD:
            about = (d.id, d.symbol, d.interval, d.as_of_ns, d.last_price, d.regime, d.verdict.reasons)
            lines.append(WithheldLine(index, "00" * 32, True, *about))
        else:
            lines.append(ReleasedLine(index, "00" * 32, d))
    return lines


def survey_of(decisions):
    survey = take_survey(as_lines(decisions), len(decisions))
    assert survey is not None
    return survey


def read(decision, reader, place, direction=1.0, provisional=False):
    trace = GenerationTrace("t@1", "d@1", "chain", 0, 0.0, 1, (1,), (2,), (), place, 3 if provisional else -1)
    at_ns = decision.as_of_ns
    return NewsView(
        direction, 2.0, 1.5, 0.8, (), at_ns, 1, reader=reader, trace=trace, provisional=provisional
    )


def late(decision, direction=1.0):
    """A provisional decision of the draft's, and the target's amendment of it."""
    first = structs.replace(decision, view=read(decision, "d@1", "edge alone", direction, provisional=True))
    template = "+".join([decision.rationale.template, "confirming" if direction > 0 else "amending"])
    told = structs.replace(decision.rationale, template=template, text=f"Heard late: {decision.id}.")
    view = read(decision, "t@1", "cloud1, plain")
    return first, structs.replace(
        first, id=amendment_id(first.id), amends=first.id, view=view, rationale=told
    )


def amended_after(decisions, places, delay):
    """The run in which the decisions at `places` were provisional, their amendments coming `delay` decisions later."""
    run, due = [], {}
    for n, decision in enumerate(decisions):
        if n in places:
            decision, due[n + delay] = late(decision, direction=-1.0 if n % 2 else 1.0)
        run.append(decision)
        if n in due:
            run.append(due.pop(n))
    return run + list(due.values())


@pytest.mark.parametrize("delay", [0, 1, 7, 30])
def test_scores_and_series_are_those_of_the_run_without_amendments(make_decisions, delay):
    decisions = make_decisions(60, ("SPX", "VIX"), withhold_every=9)
    plain, amended = survey_of(decisions), survey_of(amended_after(decisions, range(20, 80, 4), delay))
    for name in SUMS:
        axis = (0,) if name in ("crps", "num") else ()
        assert np.allclose(getattr(plain, name).sum(axis=axis), getattr(amended, name).sum(axis=axis))
    assert amended.series == plain.series
    assert (amended.num_lines, amended.num_events, amended.withheld) == (
        120,
        plain.num_events,
        plain.withheld,
    )
    assert amended.num_weights.sum() == plain.num_weights.sum()


def test_an_amendment_of_what_was_kept_back_is_no_decision_of_its_own(make_decisions):
    decisions = make_decisions(12, withhold_every=5)
    kept_back = decisions[4]
    amendment = structs.replace(kept_back, id=amendment_id(kept_back.id), amends=kept_back.id)
    survey = survey_of([*decisions[:5], amendment, *decisions[5:]])
    assert (survey.num_lines, survey.withheld) == (12, {"too wide": 2})
    (line,) = as_lines([amendment])
    assert amended_id(line) == kept_back.id


def test_of_a_reading_and_its_amendment_the_one_that_stood_at_the_next_bar_counts(make_decisions):
    decisions = make_decisions(10)
    in_time = survey_of(amended_after(decisions, [3], 0)).readings.readers
    assert {name: tally.num_views for name, tally in in_time.items()} == {"t@1": 1}
    too_late = survey_of(amended_after(decisions, [3], 1)).readings.readers
    assert {name: tally.num_views for name, tally in too_late.items()} == {"d@1": 1}


def test_what_was_late_is_counted_by_place_and_the_page_tells_it(make_decisions):
    decisions = make_decisions(30)
    run = amended_after(decisions, [3, 4, 6, 8], 1)[:-1]
    run += [late(decisions[-1])[0]]  # never amended
    on_time = structs.replace(decisions[12], view=read(decisions[12], "t@1", "cloud1, in flight"))
    survey = survey_of([on_time if decision.id == on_time.id else decision for decision in run])
    tally = survey.amendments
    assert (tally.num_provisional, tally.num_amended, tally.num_confirmed) == (5, 4, 3)
    counts = {
        place: (at.num_answers, at.num_provisional, at.num_amendments) for place, at in tally.places.items()
    }
    assert counts == {"edge alone": (5, 5, 0), "cloud1, plain": (4, 0, 4), "cloud1, in flight": (1, 0, 0)}
    html = readings_html(survey)
    assert "5 readings were provisional" in html
    assert "The target amended 4, 3 of them to the same answer; 1 still await the target" in html
    assert "<th>cloud1, in flight</th><td>1</td><td>0</td><td>0</td>" in html


def test_reasons_for_being_alone_and_names_without_end_do_not_fill_the_table(make_decisions):
    decisions = make_decisions(200)
    places = [f"edge alone, {k} ms were left" if k % 2 else f"cloud{k}, plain" for k in range(200)]
    run = [
        structs.replace(d, view=read(d, "t@1", place, provisional=k % 2 == 1))
        for k, (d, place) in enumerate(zip(decisions, places, strict=True))
    ]
    tally = survey_of(run).amendments
    assert tally.places["edge alone"].num_answers == 100
    assert len(tally.places) <= MAX_PLACES + 2
    assert sum(at.num_answers for at in tally.places.values()) == 200


def test_a_view_that_is_carried_on_is_counted_once(make_decisions):
    first, second = make_decisions(2)
    first, _ = late(first)
    survey = survey_of([first, structs.replace(second, view=first.view)])
    assert survey.amendments.num_provisional == 1


def test_a_run_that_read_at_home_and_in_time_says_nothing_of_places(make_decisions):
    decisions = make_decisions(5)
    decisions[2] = structs.replace(decisions[2], view=read(decisions[2], "t@1", ""))
    survey = survey_of(decisions)
    assert "t@1" in readings_html(survey)
    assert "Where readings were generated" not in readings_html(survey)


def test_tracks_hold_each_bar_once_with_the_words_of_its_amendment(make_decisions):
    decisions = make_decisions(40)
    plain_run, amended_run = as_lines(decisions), as_lines(amended_after(decisions, [5, 10], 2))
    tracks = []
    for run in (plain_run, amended_run):
        survey = take_survey(run, len(run))
        assert survey is not None
        (track,) = collect_tracks(run, survey, choose_tracks(survey))
        tracks.append(track)
    before, after = tracks
    assert {**after, "texts": before["texts"]} == before
    changed = [k for k, (a, b) in enumerate(zip(before["texts"], after["texts"], strict=True)) if a != b]
    assert changed == [5, 10]
    assert after["texts"][5] == f"Heard late: {decisions[5].id}."
