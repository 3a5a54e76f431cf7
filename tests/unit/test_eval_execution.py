"""`htfi eval execution`: which quotes count, what parents cost, how gains and their intervals are formed."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.events import Quote, Trade
from htfi.domain.time import NS_PER_S
from htfi_eval.eval.execution.assumed_venues import EQUAL_FEE
from htfi_eval.eval.execution.data import MarketDay, _Cleaner  # pyright: ignore[reportPrivateUsage]
from htfi_eval.eval.execution.judging import Costs, best_single, costs_of, gain_interval, mean_interval
from htfi_eval.eval.execution.runs import OrderWindow, ParentResult

S = NS_PER_S
NAN = float("nan")


def costs(shortfall: list[float], filled: float = 1.0) -> Costs:
    num = len(shortfall)
    ones = np.ones(num)
    return Costs(
        np.array(shortfall), ones, ones, 100 * ones, 100 * filled * ones, ones, ones, np.arange(num) // 2
    )  # fmt: skip


def test_a_quote_does_not_count_while_a_newer_one_elsewhere_locks_it() -> None:
    cleaner = _Cleaner("AAA", frozenset())
    cleaner.quote(1 * S, "N", 10.00, 100, 10.02, 100)
    cleaner.quote(2 * S, "Q", 10.02, 100, 10.03, 100)  # locks the older ask of N
    hidden = [one for one in cleaner.items if isinstance(one, Quote) and one.venue == "N"][-1]
    assert (hidden.ask, hidden.ask_size, hidden.bid) == (0.0, 0.0, None)
    assert cleaner.steps[-1] == (2 * S, 1002, 1003)
    cleaner.quote(3 * S, "Q", 10.01, 100, 10.03, 100)
    back = [one for one in cleaner.items if isinstance(one, Quote) and one.venue == "N"][-1]
    assert back.ask == pytest.approx(10.02)
    assert cleaner.steps[-1] == (3 * S, 1001, 1002)


def test_a_thinned_venues_quote_counts_for_a_second() -> None:
    cleaner = _Cleaner("AAA", frozenset({"Z"}))
    cleaner.quote(1 * S, "N", 10.00, 100, 10.03, 100)
    cleaner.quote(1 * S, "Z", 10.01, 100, 10.02, 100)
    assert cleaner.steps[-1][1:] == (1001, 1002)
    cleaner.quote(5 * S // 2, "N", 10.00, 200, 10.03, 100)
    assert cleaner.steps[-1][1:] == (1000, 1003)


def test_a_print_far_from_the_market_is_left_out() -> None:
    cleaner = _Cleaner("AAA", frozenset())
    cleaner.quote(1 * S, "N", 10.00, 100, 10.02, 100)
    cleaner.trade(2 * S, "N", 10.01, 50)
    cleaner.trade(2 * S, "N", 12.00, 50)
    assert [one.price for one in cleaner.items if isinstance(one, Trade)] == [10.01]


def test_the_cost_of_a_parent_by_hand() -> None:
    items = [Trade(110 * S, 110 * S, "t", 0, "AAA", 10.00, 100.0, "N")]
    steps = np.array([100 * S, 150 * S])
    day = MarketDay(
        "AAA", date(2013, 10, 9), 0, 1000 * S, ("N",), items, np.array([110 * S]), steps, np.array([999, 1001]),
        np.array([1001, 1003]),
    )  # fmt: skip
    result = ParentResult(
        OrderWindow(100 * S, 200 * S, 100), 1, 2_000, [(120 * S, 60, 999, True, "N")], fees=6.0
    )
    found = costs_of(day, [result], 0)
    # 60 at 999, 40 at the ask of 1003 and a full fee of 0.3 ticks, against 1000; 6 ticks × lots of fees.
    assert found.shortfall[0] == pytest.approx((60 * -1 + 40 * (3 + EQUAL_FEE * 100) + 6) / 100 / 1000 * 1e4)
    assert found.vwap[0] == pytest.approx(-10.0)
    assert found.adverse[0] == pytest.approx(0.0)
    assert found.fill_rate == 0.6


def test_gains_are_shares_of_the_naive_shortfall() -> None:
    naive, smart = costs([2.0, 4.0, 2.0, 4.0]), costs([1.0, 3.0, 1.0, 3.0])
    gain, low, high = gain_interval(smart, naive, 0)
    assert (gain, low, high) == (pytest.approx(1 / 3), pytest.approx(1 / 3), pytest.approx(1 / 3))
    rng = np.random.default_rng(0)
    noisy = costs((3 + rng.normal(0, 5, 40)).tolist())
    gain, low, high = gain_interval(noisy, costs([3.0] * 40), 0)
    assert low < gain < high


def test_the_best_single_venue_is_the_cheapest_of_those_that_fill() -> None:
    single = {"N": costs([3.0]), "Q": costs([2.0]), "C": costs([0.5], filled=0.1)}
    assert best_single(single, 0.95) == "Q"
    assert best_single({"C": costs([0.5], filled=0.1), "K": costs([9.0], filled=0.4)}, 0.95) == "K"


def test_what_is_not_known_is_left_out_of_a_mean() -> None:
    values = np.array([1.0, NAN, 3.0, NAN])
    assert mean_interval(values, np.arange(4), 0)[0] == pytest.approx(2.0)
    assert np.isnan(mean_interval(np.full(3, NAN), np.arange(3), 0)[0])


def test_without_staged_data_it_is_skipped_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["eval", "execution"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "skipped, since ../shared/data is missing" in done.output
