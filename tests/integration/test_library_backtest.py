"""`htfi.backtest` and `htfi.scenario`: forecasts as a run would have made them, and what scenarios do to them."""

import copy
import os
import pickle
import pkgutil
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest

import htfi

DAYS = pd.bdate_range("2020-01-01", periods=60)
STEPS = np.random.default_rng(2).standard_normal((60, 3)) @ np.array([[1, 0.8, 0], [0, 0.6, 0], [0, 0, 1]])
PRICES = pd.DataFrame(100.0 * np.exp(np.cumsum(0.01 * STEPS, axis=0)), DAYS, ["AAA", "BBB", "CCC"])


@pytest.fixture(scope="module")
def walked():
    return htfi.backtest(PRICES)


def test_the_last_forecasts_are_those_of_the_live_forecaster(walked):
    table = walked.forecasts
    newest = table[table["as_of"] == table["as_of"].max()].set_index(["symbol", "horizon"])
    live = htfi.forecast(PRICES).quantiles
    live = live[live["measure"] == "log_return"].set_index(["symbol", "horizon"])
    levels = live.filter(regex=r"^0\.").columns
    pd.testing.assert_frame_equal(newest[levels], live[levels])


def test_no_forecast_knows_what_came_after(walked):
    changed = PRICES.copy()
    changed.iloc[45:] *= 3.0
    before = walked.as_of_ns < int(DAYS[45].value)
    assert before.sum() > 60
    np.testing.assert_array_equal(htfi.backtest(changed).log_returns[before], walked.log_returns[before])


def test_outcomes_and_scores_are_of_the_forecasts_since_the_start(walked):
    since = htfi.backtest(PRICES, start="2020-02-20")
    table = since.forecasts
    assert table["as_of"].min() >= pd.Timestamp("2020-02-20", tz="UTC")
    both = walked.forecasts.merge(table[["symbol", "as_of", "horizon"]])
    pd.testing.assert_frame_equal(both, table)
    first = table[(table["horizon"] == 5) & (table["symbol"] == "BBB")].iloc[0]
    row = int(np.flatnonzero(PRICES["BBB"] == first["last_price"])[0])
    assert first["outcome"] == pytest.approx(np.log(PRICES["BBB"].iloc[row + 5] / first["last_price"]))
    scores = since.scores.set_index(["name", "horizon"])["num"]
    assert 0 < scores["fused", 1] < walked.scores.set_index(["name", "horizon"])["num"]["fused", 1]


def test_a_start_after_the_prices_is_said_in_one_line():
    with pytest.raises(htfi.HtfiError, match="the prices end on 2020-03-25"):
        htfi.backtest(PRICES, start="2021-01-01")


def test_a_walk_comes_back_in_the_frame_that_was_put_in_and_can_be_pickled(walked):
    frame = pl.from_pandas(PRICES.reset_index(names="day"))
    assert isinstance(htfi.backtest(frame, horizons=[1]).forecasts, pl.DataFrame)
    for other in (copy.deepcopy(walked), pickle.loads(pickle.dumps(walked))):
        pd.testing.assert_frame_equal(other.forecasts, walked.forecasts)


def test_draws_have_the_quantiles_and_move_together():
    result = htfi.forecast(PRICES)
    draws = result.sample(2_000, seed=5)
    assert draws.equals(result.sample(2_000, seed=5))
    moves = draws[draws["horizon"] == 1].pivot(index="draw", columns="symbol", values="log_return")
    table = result.quantiles
    stated = table[(table["measure"] == "log_return") & (table["horizon"] == 1)].set_index("symbol")
    low, high = moves.quantile(0.05), moves.quantile(0.95)
    width = (stated["0.95"] - stated["0.05"]).astype(float)
    assert (abs(low - stated["0.05"]) < 0.08 * width).all()  # four standard errors of 2,000 draws
    assert (abs(high - stated["0.95"]) < 0.08 * width).all()
    together = moves.corr()
    assert together.loc["AAA", "BBB"] > together.loc["AAA", "CCC"] + 0.2


def test_a_shock_reaches_the_series_that_move_with_it(walked):
    result = htfi.scenario(walked, shock={"AAA": -0.05}, positions={"AAA": 1e6, "BBB": 1e6})
    table = result.table.set_index("series")
    assert table.loc["AAA/1d", "then median"] == pytest.approx(-0.05)
    assert table.loc["AAA/1d", "profit"] == pytest.approx(-5e4, rel=0.05)
    assert table.loc["BBB/1d", "profit"] < -5e3
    assert result.book["scenario"].tolist() == ["today", "AAA -5%"]
    assert "AAA/1d −5.00%" in str(result)


def test_a_book_may_be_a_frame_and_a_stress_a_name(walked):
    book = pd.DataFrame({"symbol": ["AAA"], "quantity": [10.0]})
    result = htfi.scenario(walked, shock=["AAA -2sd", "CCC +1%"], positions=book)
    assert len(result.figures["scenarios"]) == 2
    assert result.figures["book"]["gross"] == pytest.approx(10.0 * PRICES["AAA"].iloc[-1])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "no scenario: give a shock"),
        ({"shock": {"XXX": -0.1}}, "no series 'XXX'"),
        ({"on": "AAA"}, "give a headline"),
        ({"shock": "AAA -5%", "models": "best"}, "say 'default'"),
    ],
)
def test_a_scenario_that_cannot_be_answered_is_one_line(walked, asked, says):
    with pytest.raises(htfi.HtfiError, match=says):
        htfi.scenario(walked, **asked)


def test_a_book_may_be_a_series_and_may_name_what_has_no_forecast(walked):
    book = {"AAA": 10.0, "ELSEWHERE": 5.0}
    with pytest.raises(htfi.HtfiError, match="no series 'ELSEWHERE'"):
        htfi.scenario(walked, shock="AAA -5%", positions=book)
    held = htfi.scenario(walked, shock="AAA -5%", positions=pd.Series(book), skip_unknown=True)
    alone = htfi.scenario(walked, shock="AAA -5%", positions={"AAA": 10.0})
    assert held.figures["book"] == alone.figures["book"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"shock": 5}, "shock=5: give one scenario"),
        ({"shock": [5]}, "shock=5: give a text such as 'SPX -5%'"),
        ({"shock": {"AAA": "x"}}, "shock of AAA='x': give a number"),
        ({"shock": "AAA -5%", "draws": 0}, "draws=0: give a whole number of at least 1"),
        ({"shock": "AAA -5%", "seed": -1}, "seed=-1"),
        ({"shock": "AAA -5%", "positions": {"AAA": "x"}}, "position in AAA='x': give a number"),
        ({"headline": "AAA cuts outlook", "models": None}, "a headline is read by language models"),
        ({"headline": 5}, "headline=5: give one scenario"),
    ],
)
def test_an_argument_of_a_scenario_of_the_wrong_kind_is_one_line(walked, asked, says):
    with pytest.raises(htfi.HtfiError, match=f"^{says}"):
        htfi.scenario(walked, **asked)


@pytest.mark.parametrize("start", [2020, "2020", "soon"])
def test_a_start_that_is_no_date_is_one_line(start):
    with pytest.raises(htfi.HtfiError, match=f"^start='?{start}'?: give a date"):
        htfi.backtest(PRICES, start=start)


def test_two_forecasts_at_once_are_each_as_alone():
    few = PRICES.iloc[:30]
    alone = {name: htfi.forecast(few[[name]]).quantiles for name in ("AAA", "CCC")}
    found = {}

    def ask(name):
        found[name] = htfi.forecast(few[[name]]).quantiles

    threads = [threading.Thread(target=ask, args=(name,)) for name in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[name].equals(alone[name]) for name in alone)


def test_a_forked_worker_forecasts_as_its_parent(tmp_path):
    few = PRICES[["AAA"]].iloc[:30]
    expected = htfi.forecast(few).quantiles
    child = os.fork()
    if child == 0:
        try:
            htfi.forecast(few).quantiles.to_pickle(tmp_path / "child.pkl")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert pd.read_pickle(tmp_path / "child.pkl").equals(expected)


@pytest.mark.parametrize(
    ("path", "name", "call", "num_on_disk"),
    [
        ("htfi.wiring.in_memory_run", "open_feed", 1, 0),
        ("htfi.pipeline.loop.DecisionLoop", "step", 40, 1),
    ],
)
def test_an_interrupted_walk_leaves_nothing_behind_and_can_be_repeated(
    walked, tmp_path, monkeypatch, path, name, call, num_on_disk
):
    """Ctrl-C before the first bar, and in the middle of a file that was sorted on disk: a signal that comes then."""
    stacked = PRICES.rename_axis(index="ts", columns="symbol").unstack().rename("close")
    stacked.to_csv(tmp_path / "stacked.csv")  # symbol after symbol: in no order of time
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    reached = []

    def interrupted(*args, **kwargs):
        reached.append(len(list(folder.iterdir())))
        if len(reached) == call:
            signal.raise_signal(signal.SIGALRM)
        return function(*args, **kwargs)

    owner = pkgutil.resolve_name(path)
    function = getattr(owner, name)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    monkeypatch.setattr(owner, name, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            htfi.backtest(tmp_path / "stacked.csv")
    finally:
        signal.signal(signal.SIGALRM, before)
        monkeypatch.setattr(owner, name, function)
    assert (len(reached), reached[-1]) == (call, num_on_disk)
    assert list(folder.iterdir()) == []
    np.testing.assert_array_equal(htfi.backtest(PRICES).log_returns, walked.log_returns)


def test_a_progress_bar_is_shown_only_where_it_is_asked_for(capfd):
    htfi.backtest(PRICES.iloc[:25])
    assert capfd.readouterr() == ("", "")
    htfi.backtest(PRICES, progress=True)
    assert capfd.readouterr().out == ""


def test_a_wide_file_and_a_frame_have_the_same_scenarios(tmp_path):
    PRICES.to_csv(tmp_path / "prices.csv")
    of_file, of_frame = (
        htfi.scenario(source, shock="AAA -5%").figures for source in (tmp_path / "prices.csv", PRICES)
    )
    assert of_file["scenarios"] == of_frame["scenarios"]


def test_a_headline_is_read_by_the_models_that_are_named(walked, tmp_path):
    with pytest.raises(htfi.HtfiError, match="nowhere"):
        htfi.scenario(
            walked, headline="AAA cuts its outlook", models=(tmp_path / "nowhere", tmp_path / "nowhere")
        )


def test_scenarios_show_how_far_prices_are_read_and_scenarios_answered(walked, tmp_path, monkeypatch):
    steps = []

    @contextmanager
    def bar(title, *, is_shown):
        yield lambda share: steps.append((title, share)) if is_shown else None

    for module in ("forecast", "scenarios.scenario"):
        monkeypatch.setattr(f"htfi.library.{module}.progress_bar", bar)
    monkeypatch.setattr("htfi.library.progress._ITEMS_PER_STEP", 20)
    shocks = ["AAA -5%", "BBB +2%"]
    htfi.scenario(PRICES, shock=shocks, progress=True)
    assert steps[0][0] == "forecast"
    assert steps[-2:] == [("scenarios", 0.5), ("scenarios", 1.0)]
    assert [share for _, share in steps[:-2]] == sorted(share for _, share in steps[:-2])
    steps.clear()
    PRICES.to_csv(tmp_path / "prices.csv")
    htfi.scenario(tmp_path / "prices.csv", shock=shocks, progress=True)
    assert {title for title, _ in steps} == {"forecast", "scenarios"}
    steps.clear()
    htfi.scenario(walked, shock=shocks)
    assert steps == []
