"""The report's scores are those that the decisions' own later prices give."""

import msgspec
import numpy as np
import pytest
from msgspec import structs

from htfi.apps.cli.report.notable import NUM_LISTED
from htfi.apps.cli.report.run_survey import NUM_INTERVALS
from htfi.apps.cli.report.survey import take_survey
from htfi.domain.decision import PolicyOutcome
from htfi.forecasting.scores import crps
from htfi.wiring.outputs import ReleasedLine, WithheldLine


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


def expected_crps(decisions, horizon, name):
    """The plain way: every pair of decisions `horizon` bars apart."""
    h = decisions[0].forecast.horizons.index(horizon)
    scores = []
    for origin, later in zip(decisions, decisions[horizon:], strict=False):
        forecast = origin.forecast
        row = forecast.quantiles[h] if name == "fused" else forecast.experts[name][h]
        outcome = np.log(later.last_price / origin.last_price)
        scores.append(float(crps(np.array([row]), np.array([outcome]), np.array(forecast.levels))[0]))
    return np.array(scores)


@pytest.mark.parametrize("horizon", [1, 5, 22])
@pytest.mark.parametrize("name", ["fused", "random_walk"])
def test_crps_is_that_of_every_pair_of_prices(make_decisions, horizon, name):
    decisions = make_decisions(120)
    survey = survey_of(decisions)
    h, k = survey.axes.horizons.index(horizon), survey.axes.names.index(name)
    expected = expected_crps(decisions, horizon, name)
    assert survey.num[:, h].sum() == len(expected) == 120 - horizon
    assert survey.crps[:, h, k].sum() == pytest.approx(expected.sum(), rel=1e-5)


def test_a_withheld_bar_still_counts_as_an_outcome_but_is_not_scored(make_decisions):
    decisions = make_decisions(60, withhold_every=10)
    survey = survey_of(decisions)
    released = [n for n, d in enumerate(decisions) if d.verdict.outcome is PolicyOutcome.RELEASE]
    assert survey.num[:, 1].sum() == sum(n + 5 < 60 for n in released)
    assert survey.withheld == {"too wide": 6}
    spx = survey.series["SPX/1d"]
    assert (spx.num, spx.num_withheld) == (60, 6)


def test_series_are_scored_by_their_own_prices_alone(make_decisions):
    alone = make_decisions(80, ("SPX",))
    both = [d for pair in zip(alone, make_decisions(80, ("VIX",), seed=5), strict=True) for d in pair]
    survey, expected = survey_of(both), expected_crps(alone, 1, "fused")
    spx = survey.series["SPX/1d"]
    assert spx.crps["fused"] == pytest.approx(expected.sum(), rel=1e-5)
    assert spx.num_scored == 79


def test_honest_forecasts_are_found_honest_and_narrow_ones_narrow(make_decisions):
    """90% of 3,999 outcomes lie inside, ±4 standard errors (false alarm: 6 in 100,000)."""
    symbols = tuple(f"S{k}" for k in range(20))

    def within90(sigma_ratio):
        survey = survey_of(make_decisions(200, symbols, sigma_ratio=sigma_ratio))
        return survey.regime_within[:, 0].sum() / survey.regime_num[:, 0].sum()

    # the spread in make_decisions is that of the day itself, so tomorrow's may differ on two days in fifty
    assert within90(1.0) == pytest.approx(0.9, abs=0.03)
    assert within90(0.5) < 0.7


def test_pit_counts_every_outcome_once_and_is_flat_for_honest_forecasts(make_decisions):
    """Each tenth holds 398 ± 5 standard deviations of 19."""
    survey = survey_of(make_decisions(200, tuple(f"S{k}" for k in range(20))))
    assert survey.pit[0].sum() == 20 * 199
    assert np.abs(survey.pit[0] - 398).max() < 5 * 19 + 40  # 40: the two days in fifty whose spread changes


def test_stretches_cover_the_whole_run_evenly(make_decisions):
    decisions = make_decisions(3 * NUM_INTERVALS)
    survey = survey_of(decisions)
    assert survey.num_weights.tolist() == [3] * NUM_INTERVALS
    assert survey.times_ns == [decision.as_of_ns for decision in decisions[2::3]]
    assert (survey.start_ns, survey.end_ns) == (decisions[0].as_of_ns, decisions[-1].as_of_ns)


def test_events_read_for_several_series_at_once_are_counted_once(make_decisions):
    assert survey_of(make_decisions(1, ("SPX", "VIX"))).num_events == 3


def test_the_worst_surprise_is_listed_first_and_one_stretch_counts_once(make_decisions):
    decisions = make_decisions(150)
    for place, jump in ((80, 1.30), (83, 1.20)):
        for n in range(place, 150):
            moved = decisions[n].last_price * jump
            decisions[n] = structs.replace(decisions[n], last_price=moved)
    worst = survey_of(decisions).surprises
    assert worst[0].as_of_ns == decisions[79].as_of_ns
    assert all(abs(noted.as_of_ns - worst[0].as_of_ns) > 3 * 86_400 * 10**9 for noted in worst[1:])
    assert len(worst) <= NUM_LISTED


def test_scores_begin_once_every_expert_takes_part(make_decisions):
    decisions = make_decisions(80)
    for n in range(30):
        forecast = decisions[n].forecast
        alone = {"ewma": forecast.expert_ticks["ewma"]}
        early = structs.replace(forecast, expert_ticks=alone, weights={"ewma": [[1.0] * 3] * 3})
        decisions[n] = structs.replace(decisions[n], forecast=early)
    survey = survey_of(decisions)
    assert survey.axes.names == ("fused", "ewma", "random_walk")
    assert survey.num[:, 0].sum() == 80 - 30 - 1
    assert survey.crps[:, 0, 2].sum() == pytest.approx(
        expected_crps(decisions[30:], 1, "random_walk").sum(), rel=1e-5
    )
    assert survey.num_weights.sum() == 80
    assert survey.weights[0, 0].tolist() == [survey.num_weights[0], 0.0]


def test_a_run_that_kept_everything_back_has_no_survey(make_decisions):
    lines = as_lines(make_decisions(10, withhold_every=1))
    assert take_survey(lines, len(lines)) is None


def test_views_are_counted_once_and_held_against_the_next_bar(make_decisions) -> None:
    from htfi.apps.cli.report.readings import ReadingScores, fresh_reading
    from htfi.domain.news_view import NewsView

    first, second = make_decisions(num=2)
    view = NewsView(
        1.0, 2.0, 1.5, 0.8, ("n",), first.as_of_ns, 10**15, "earnings", "unmoved", "beats", "mini@1"
    )
    flat = msgspec.structs.replace(view, direction=0.0, size_sigmas=0.0, as_of_ns=second.as_of_ns)
    tally = ReadingScores()
    taken = fresh_reading(msgspec.structs.replace(first, view=view))
    assert taken is not None
    tally.add(taken, 0.01)
    tally.add(taken, -0.01)
    assert fresh_reading(msgspec.structs.replace(second, view=view)) is None  # taken a bar ago
    assert fresh_reading(second) is None
    no_direction = fresh_reading(msgspec.structs.replace(second, view=flat))
    assert no_direction is not None
    tally.add(no_direction, 0.01)
    counted = tally.readers["mini@1"]
    assert (counted.num_views, counted.num_called, counted.num_right) == (3, 2, 1)
    assert {read.outcome for read in tally.strongest()} == {0.01, -0.01}
