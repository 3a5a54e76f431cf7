"""Early warning of stress: events by hand, scores against scikit-learn, and nothing known before its time."""

from dataclasses import replace

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput, ShapeMismatch
from htfi.forecasting.evaluation.leak import find_leaks
from htfi.forecasting.warning import features, scores
from htfi.forecasting.warning.events import drawdown_events, level_events
from htfi.forecasting.warning.walk_forward import (
    WalkForwardConfig,
    WalkForwardResult,
    fit_logistic,
    raise_alerts,
    training_sessions,
    walk_forward_chances,
)

SEED = 20_240
CONFIG = WalkForwardConfig(embargo=5, least_sessions=120)


def _dice() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(SEED))


def _prices(num: int = 1500) -> np.ndarray:
    """A walk with calm and wild stretches, so that falls of 8% in 22 sessions happen."""
    dice = _dice()
    sigma = np.where((np.arange(num) // 90) % 3 == 2, 0.025, 0.006)
    return 100 * np.exp(np.cumsum(sigma * dice.standard_normal(num)))


def _years(num: int) -> np.ndarray:
    return 2000 + np.arange(num) // 250


def test_a_fall_is_seen_by_the_sessions_before_it_and_by_no_other():
    close = np.full(40, 100.0)
    close[20:] = 91.0
    events = drawdown_events(close, 0.08, 5)
    assert events.onsets.tolist() == [20]
    assert np.flatnonzero(events.label == 1.0).tolist() == [15, 16, 17, 18, 19]
    assert set(events.onset[15:20].tolist()) == {20}
    assert np.flatnonzero(events.in_stress).tolist() == [
        20,
        21,
        22,
        23,
        24,
    ]  # below the high of five sessions
    assert np.flatnonzero(~events.at_risk[5:]).tolist() == [
        15,
        16,
        17,
        18,
        19,
        20,
        21,
        22,
        23,
    ]  # and five more
    assert np.isnan(events.label[35:]).all()  # the future will tell
    assert np.isfinite(events.label).sum() > 5


def test_stress_within_the_horizon_of_stress_is_one_event():
    close = np.full(60, 100.0)
    close[20:23], close[25:30], close[50:] = 91.0, 82.0, 70.0
    assert drawdown_events(close, 0.08, 5).onsets.tolist() == [20, 50]


def test_a_fall_slower_than_the_horizon_is_no_event():
    close = 100 * 0.99 ** np.arange(60)
    assert len(drawdown_events(close, 0.08, 5).onsets) == 0
    assert len(drawdown_events(close, 0.08, 10).onsets) == 1


def test_a_rise_counts_from_below_and_every_label_knows_its_end():
    level = np.full(40, 15.0)
    level[12:15], level[30] = 27.0, 31.0
    events = level_events(level, 30.0, 25.0, 4)
    assert np.flatnonzero(events.label == 1.0).tolist() == [26, 27, 28, 29]
    assert not events.at_risk[12:15].any()
    known = np.isfinite(events.label)
    assert (events.decided[known] == np.flatnonzero(known) + 4).all()


def test_sessions_without_a_close_are_passed_over():
    close = np.full(40, 100.0)
    close[20:] = 91.0
    holes = np.insert(close, [10, 18, 18, 33], np.nan)
    events = drawdown_events(holes, 0.08, 5)
    whole = drawdown_events(close, 0.08, 5)
    there = np.flatnonzero(np.isfinite(holes))
    np.testing.assert_array_equal(events.label[there], whole.label)
    assert events.onsets.tolist() == there[whole.onsets].tolist()
    assert events.decided[there[15]] == there[20]
    assert np.isnan(events.label[10])


@pytest.mark.parametrize("num", [0, 1, 5, 22, 23])
def test_short_or_constant_series_have_no_events(num):
    events = drawdown_events(np.full(num, 5.0), 0.08, 22)
    assert len(events.onsets) == 0
    assert len(events.label) == num


def test_impossible_events_are_refused():
    for depth, horizon in ((0.0, 5), (1.0, 5), (0.1, 0)):
        with pytest.raises(InvalidInput):
            drawdown_events(np.ones(10), depth, horizon)
    with pytest.raises(InvalidInput):
        level_events(np.ones(10), 20.0, 30.0, 5)


def test_the_regression_is_the_penalised_maximum_of_likelihood():
    from sklearn.linear_model import LogisticRegression

    dice = _dice()
    x = dice.standard_normal((400, 3)) * [1.0, 5.0, 0.1] + [0.0, 2.0, 7.0]
    x = x[(np.abs(x - x.mean(0)) < 3.5 * x.std(0)).all(axis=1)]  # scikit-learn cuts no tails
    label = (dice.random(len(x)) < 1 / (1 + np.exp(2 - x[:, 0]))).astype(float)
    ours = fit_logistic(x, label, np.ones(len(x)), ridge=4.0, prior_rate=0.2)
    standard = (x - x.mean(0)) / x.std(0)
    # An intercept with a normal prior is a fourth coefficient about an offset that scikit-learn does not have.
    theirs = LogisticRegression(C=0.25, tol=1e-10, max_iter=1000).fit(standard, label)
    near = fit_logistic(x, label, np.full(len(x), 1.0), ridge=4.0, prior_rate=float(label.mean()))
    assert near.coefficients == pytest.approx(theirs.coef_[0], abs=0.01)
    assert ours.probability(x) == pytest.approx(theirs.predict_proba(standard)[:, 1], abs=0.01)


def test_without_events_the_chance_falls_below_the_prior_and_stays_above_zero():
    x = _dice().standard_normal((200, 2))
    model = fit_logistic(x, np.zeros(200), np.full(200, 1 / 22), ridge=2.0, prior_rate=0.05)
    chance = model.probability(x)
    assert 0.001 < chance.min() <= chance.max() < 0.05
    none = fit_logistic(np.empty((200, 0)), np.zeros(200), np.full(200, 1 / 22), ridge=1.0, prior_rate=0.05)
    assert len(np.unique(none.probability(np.empty((9, 0))))) == 1


def test_a_feature_that_is_not_known_or_never_varies_says_nothing():
    x = _dice().standard_normal((300, 3))
    x[:, 1], x[:, 2] = np.nan, 4.0
    label = (x[:, 0] > 0.5).astype(float)
    model = fit_logistic(x, label, np.ones(300), ridge=1.0, prior_rate=0.1)
    assert model.coefficients[1:].tolist() == [0.0, 0.0]
    assert np.isfinite(model.probability(np.array([[np.nan, np.nan, np.nan], [1e12, 0.0, 0.0]]))).all()
    with pytest.raises(ShapeMismatch):
        fit_logistic(x, label[:-1], np.ones(300), ridge=1.0, prior_rate=0.1)


def test_scores_are_those_of_scikit_learn_with_and_without_ties():
    from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score, roc_curve

    dice = _dice()
    for digits in (1, 8):
        chance = np.round(dice.random(500), digits)
        label = (dice.random(500) < chance**2).astype(float)
        assert scores.roc_auc(chance, label) == pytest.approx(roc_auc_score(label, chance))
        assert scores.average_precision(chance, label) == pytest.approx(
            average_precision_score(label, chance)
        )
        assert scores.brier(chance, label) == pytest.approx(brier_score_loss(label, chance))
        x, y = scores.roc(chance, label)
        their_x, their_y, _ = roc_curve(label, chance, drop_intermediate=False)
        assert (x, y) == (pytest.approx(their_x), pytest.approx(their_y))
    assert np.isnan(scores.roc_auc(chance, np.zeros(500)))
    assert np.isnan(scores.average_precision(np.empty(0), np.empty(0)))


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    """95% of 60 intervals: fewer than 48 hits has a chance below 1e-5 were they right."""
    dice = _dice()
    hits = 0
    for _ in range(60):
        values = np.convolve(dice.standard_normal(404), np.ones(5) / 5, "valid")
        low, high = scores.interval95(lambda at, of=values: float(of[at].mean()), 400, 20, dice, 200)
        hits += low <= 0.0 <= high
    assert hits >= 48
    assert scores.share_interval95(9, 26) == pytest.approx((0.1941, 0.5378), abs=1e-3)


def _features(close: np.ndarray) -> dict[str, np.ndarray]:
    return features.index_features(close) | features.implied_volatility_features(20 + 0 * close, close)


def test_chances_are_fitted_on_what_was_known_and_a_planted_future_is_caught():
    close = _prices()
    years = _years(len(close))

    def said(fields):
        events = drawdown_events(fields["close"][:, 0], 0.08, 22)
        assert len(events.onsets) > 3
        known = _features(fields["close"][:, 0])
        honest = np.column_stack(list(known.values()))
        ahead = np.append(known["volatility 22"][11:], np.full(11, np.nan))
        unpurged = replace(events, decided=np.arange(len(close)))  # as if a label were known on its day
        return {
            "honest": walk_forward_chances(honest, events, years, CONFIG).chance,
            "planted": walk_forward_chances(np.column_stack([honest, ahead]), events, years, CONFIG).chance,
            "not purged": walk_forward_chances(honest, unpurged, years, replace(CONFIG, embargo=0)).chance,
        }

    # The cut lies a few sessions before a fit: labels that reach beyond it must not teach that fit.
    first_of_a_year = int(np.flatnonzero(np.diff(years))[3]) + 1
    found = find_leaks(said, {"close": close[:, None]}, [first_of_a_year + 3, 1300], _dice())
    assert set(found) == {"planted", "not purged"}


def test_no_label_that_teaches_reaches_into_the_embargo():
    close = _prices()
    events = drawdown_events(close, 0.08, 22)
    for start in (400, 750, 1250):
        taught = training_sessions(start, events, CONFIG)
        assert taught.max() + 22 < start - CONFIG.embargo
        assert taught.max() + 22 >= start - CONFIG.embargo - 60


def test_alerts_keep_to_a_budget_learnt_on_the_past_and_speak_once_a_horizon():
    dice = _dice()
    num = 4000
    close = 100 * np.exp(np.cumsum(0.012 * dice.standard_normal(num)))
    events = drawdown_events(close, 0.08, 22)
    noise = dice.random(num)  # the same law in every year, so that the past binds
    starts = np.arange(750, num, 250)
    walked = WalkForwardResult(noise, starts, [noise[:start] for start in starts], np.empty((len(starts), 0)))
    raised = raise_alerts(walked, events, (1.0, 3.0, 1000.0), CONFIG)
    for budget, places in raised.items():
        assert (np.diff(places) >= 22).all()
        assert events.at_risk[places].all()
        told = scores.score_alerts(places, events, 750, num - 1)
        assert told.false_alarms_a_year < budget + 1.0
    told = [scores.score_alerts(places, events, 750, num - 1) for places in raised.values()]
    assert told[0].num_alerts < told[1].num_alerts < told[2].num_alerts
    assert told[0].false_alarms_a_year > 0.3
    assert told[2].num_alerts == told[2].num_open + told[2].num_false + round(
        told[2].precision * (told[2].num_alerts - told[2].num_open)
    )


def test_an_event_is_caught_once_and_leads_count_from_its_first_true_alert():
    close = np.full(80, 100.0)
    close[30:] = 91.0
    events = drawdown_events(close, 0.08, 10)
    told = scores.score_alerts(np.array([12, 22, 27, 55]), events, 0, 79)
    assert (told.num_events, told.num_caught, told.lead_days) == (1, 1, (8,))
    assert (told.num_alerts, told.num_false) == (4, 2)
    assert told.precision == 0.5
    assert told.hit_rate == 1.0
    quiet = scores.score_alerts(np.array([], int), events, 40, 79)
    assert np.isnan([quiet.hit_rate, quiet.precision, quiet.median_lead_days]).all()


def test_correlation_is_the_mean_over_pairs():
    moves = _dice().standard_normal((120, 5)) + _dice().standard_normal((120, 1))
    pairs = np.corrcoef(moves[-66:].T)[np.triu_indices(5, 1)]
    assert features.mean_correlation(moves, 66)[-1] == pytest.approx(pairs.mean())
    moves[:, 3:] = np.nan
    assert np.isfinite(features.mean_correlation(moves, 66)[-1])
    moves[:, 2] = np.nan
    assert np.isnan(features.mean_correlation(moves, 66)).all()


def test_features_of_a_session_do_not_move_when_later_ones_do():
    close = _prices(600)
    panel = np.column_stack([close, close[::-1], np.sqrt(close) * 10])
    stressed, score = np.zeros_like(panel), np.ones_like(panel)
    whole = (
        _features(close)
        | features.panel_features(panel, stressed, score)
        | features.macro_features(close, close, close)
    )
    part = _features(close[:400]) | features.panel_features(panel[:400], stressed[:400], score[:400])
    part |= features.macro_features(close[:400], close[:400], close[:400])
    for name, values in nonempty(part.items()):
        np.testing.assert_array_equal(values, whole[name][:400], err_msg=name)
