"""The report scores decisions between bars against the standing ones; bars are scored as if there were none."""

import math

import numpy as np
import pytest
from msgspec import structs

from htfi.apps.cli.report.news_answers import MIN_INSTANTS, PairedScore
from htfi.apps.cli.report.survey import take_survey
from htfi.apps.cli.report.tables import answers_html
from htfi.apps.cli.report.tracks import choose_tracks, collect_tracks
from htfi.apps.cli.view.state import RunCounters, ViewModel
from htfi.domain.decision import (
    DecisionTrigger,
    NewsTrigger,
    PolicyOutcome,
    PolicyVerdict,
    TriggerItem,
    amendment_id,
    encode_decision,
    news_decision_id,
)
from htfi.domain.time import NS_PER_S
from htfi.forecasting.scores import crps
from htfi.pipeline.decided import DecidedSeries
from htfi.wiring.outputs import ReleasedLine, WithheldLine

SUMS = ("crps", "num", "below", "pit", "regime_within", "regime_num", "weights", "num_weights")


def as_lines(decisions):
    lines = []
    for index, d in enumerate(decisions):
        if d.verdict.outcome is PolicyOutcome.WITHHOLD:
            about = (d.id, d.symbol, d.interval, d.as_of_ns, d.last_price, d.regime, d.verdict.reasons)
            lines.append(WithheldLine(index, "00" * 32, True, *about, trigger=d.trigger))
        else:
            lines.append(ReleasedLine(index, "00" * 32, d))
    return lines


def answer_to(standing, shift, price=None, num_suppressed=0):
    """A decision an hour after a standing one, its quantiles moved by `shift`."""
    at_ns = standing.as_of_ns + 3600 * NS_PER_S
    forecast = structs.replace(
        standing.forecast, quantiles=[[q + shift for q in row] for row in standing.forecast.quantiles]
    )
    return structs.replace(
        standing,
        id=news_decision_id(standing.series, at_ns),
        as_of_ns=at_ns,
        last_price=price or standing.last_price,
        forecast=forecast,
        trigger=DecisionTrigger.NEWS,
        news_trigger=NewsTrigger((TriggerItem("n1", ("event",)),), standing.id, 0.0, num_suppressed),
    )


def with_answers(decisions, every=2, shift=0.004):
    found = []
    for place, decision in enumerate(decisions):
        found.append(decision)
        if place % every == 0:
            found.append(answer_to(decision, shift))
    return found


def survey_of(decisions):
    survey = take_survey(as_lines(decisions), len(decisions))
    assert survey is not None
    return survey


@pytest.mark.parametrize("horizon", [1, 5])
def test_pairs_are_scored_by_the_prices_that_end_the_horizons_of_both(make_decisions, horizon):
    decisions = make_decisions(120)
    pairs = survey_of(with_answers(decisions)).answers.scores[horizon]
    h, levels = decisions[0].forecast.horizons.index(horizon), np.array(decisions[0].forecast.levels)
    standing, answer = [], []
    for place in range(0, 120 - horizon, 2):
        outcome = np.array([math.log(decisions[place + horizon].last_price / decisions[place].last_price)])
        row = np.array([decisions[place].forecast.quantiles[h]])
        standing.append(float(crps(row, outcome, levels)[0]))
        answer.append(float(crps(row + 0.004, outcome, levels)[0]))
    assert pairs.num == len(standing) > 50
    assert pairs.standing == pytest.approx(sum(standing), rel=1e-5)
    assert pairs.answer == pytest.approx(sum(answer), rel=1e-5)
    difference = np.array(answer) - np.array(standing)
    expected = 1.96 * difference.std(ddof=1) * math.sqrt(len(difference)) / sum(standing)
    assert pairs.half_width == pytest.approx(expected, rel=1e-3)


def test_bars_are_scored_weighed_and_drawn_as_without_answers(make_decisions):
    decisions = make_decisions(120, symbols=("SPX", "VIX"))
    plain, answered = survey_of(decisions), survey_of(with_answers(decisions))
    for name in SUMS:
        both = [np.nansum(getattr(survey, name), axis=0) for survey in (plain, answered)]
        assert np.allclose(*both), name
    assert {name: tally.num for name, tally in plain.series.items()} == {
        name: tally.num for name, tally in answered.series.items()
    }
    choice = choose_tracks(plain)
    tracks = [collect_tracks(as_lines(run), plain, choice) for run in (decisions, with_answers(decisions))]
    assert tracks[0] == tracks[1]


def test_a_price_of_its_own_is_where_the_outcome_of_an_answer_begins(make_decisions):
    decisions = make_decisions(40)
    price = decisions[10].last_price * 1.01
    run = [*decisions[:11], answer_to(decisions[10], -math.log(1.01), price), *decisions[11:]]
    pairs = survey_of(run).answers.scores[1]
    assert pairs.num == 1
    assert pairs.answer == pytest.approx(pairs.standing, rel=1e-4)  # the same forecast of the price


def test_an_amendment_takes_the_place_of_its_answer_until_a_bar_closes(make_decisions):
    decisions = make_decisions(40)
    first = answer_to(decisions[10], 0.05)
    amended = structs.replace(answer_to(decisions[10], 0.0), id=amendment_id(first.id), amends=first.id)
    at_once = survey_of([*decisions[:11], first, amended, *decisions[11:]]).answers.scores[1]
    late = survey_of([*decisions[:11], first, decisions[11], amended, *decisions[12:]]).answers.scores[1]
    assert at_once.answer == pytest.approx(at_once.standing)
    assert late.answer > 2.0 * late.standing


def test_a_withheld_standing_decision_is_not_compared_and_a_withheld_answer_is_counted(make_decisions):
    decisions = make_decisions(40)
    withheld = PolicyVerdict(PolicyOutcome.WITHHOLD, ["price-jump: too far"])
    kept_back = structs.replace(decisions[10], verdict=withheld)
    run = [*decisions[:10], kept_back, answer_to(decisions[10], 0.01), *decisions[11:]]
    assert survey_of(run).answers.scores == {}
    run = [
        *decisions[:11],
        structs.replace(answer_to(decisions[10], 0.01), verdict=withheld),
        *decisions[11:],
    ]
    survey = survey_of(run)
    assert (survey.answers.num, survey.answers.num_withheld) == (0, 1)
    assert survey.series["SPX/1d"].num_withheld == 0
    assert survey.withheld == {"price-jump: too far": 1}
    assert "1 more were withheld" in answers_html(survey.answers)


def test_the_page_says_nothing_of_too_few_and_names_what_was_left_to_the_bars(make_decisions):
    decisions = make_decisions(120)
    few = [*decisions[:10], answer_to(decisions[9], 0.01, num_suppressed=3), *decisions[10:]]
    page = answers_html(survey_of(few).answers)
    assert "1 decision answered 1 item of news" in page
    assert "3 items that mattered were left to the bars" in page
    assert page.count("too few") == 3
    assert "±" in answers_html(survey_of(with_answers(decisions)).answers)
    assert answers_html(survey_of(decisions).answers) == ""


def test_the_interval_counts_outcomes_of_one_instant_as_one():
    rng = np.random.Generator(np.random.PCG64(3))
    alone, together = PairedScore(), PairedScore()
    for instant, difference in enumerate(rng.standard_normal(400)):
        alone.add(1.0, 1.0 + difference / 10, instant)
        for _ in range(5):  # five series with the same outcome tell no more than one
            together.add(1.0, 1.0 + difference / 10, instant)
    assert alone.half_width is not None
    assert together.half_width == pytest.approx(alone.half_width)
    assert together.change == pytest.approx(alone.change)
    few = PairedScore()
    for instant in range(MIN_INSTANTS - 1):
        few.add(1.0, 1.1, instant)
    assert few.half_width is None


def test_the_view_shows_an_answer_beside_the_closes(make_decisions):
    decisions = make_decisions(30)
    model = ViewModel("run")
    for decision in decisions:
        model.record(DecidedSeries.of(decision))
    model.record(DecidedSeries.of(answer_to(decisions[-1], 0.01, price=decisions[-1].last_price * 1.5)))
    (shown,) = model.snapshot(RunCounters()).series
    assert shown.last_price == pytest.approx(decisions[-1].last_price * 1.5)
    assert shown.history[-1] == decisions[-1].last_price


def test_a_decision_on_a_bar_has_neither_field_as_json(make_decisions):
    (decision,) = make_decisions(1)
    assert b"trigger" not in encode_decision(decision)
    assert b'"trigger":"news","news_trigger":{"items"' in encode_decision(answer_to(decision, 0.0))
