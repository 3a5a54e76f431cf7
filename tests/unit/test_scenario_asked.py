"""Shocks, positions, stresses and files of scenarios, as people write them, well and badly."""

import math

import numpy as np
import pytest

from checks import nonempty
from htfi import sample
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.positions import equal_positions, read_positions
from htfi.forecasting.scenarios.requests import (
    PriceShock,
    ScenarioKind,
    ShockUnit,
    check_requests,
    find_series,
    parse_requests,
    parse_shocks,
    require_series,
    resolve_names,
    to_log_return,
)
from htfi.forecasting.scenarios.stresses import (
    factors_by_symbol,
    find_stress,
    is_tradable_symbol,
    stress_factors,
    stress_library,
    window_days,
)

SERIES = ("SPX/1d", "VIX/1d", "EUR/USD/1d", "aapl/1d")


def told(call, *arguments, **named) -> str:
    with pytest.raises(InvalidInput) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "shocks"),
    [
        ("SPX -5%", [PriceShock("SPX", -5.0, ShockUnit.PERCENT)]),
        ("SPX −5 %", [PriceShock("SPX", -5.0, ShockUnit.PERCENT)]),
        ("ＳＰＸ　－３sd", [PriceShock("SPX", -3.0, ShockUnit.SIGMAS)]),
        ("VIX=+5", [PriceShock("VIX", 5.0, ShockUnit.POINTS)]),
        ("US10Y: 25bps", [PriceShock("US10Y", 25.0, ShockUnit.BASIS_POINTS)]),
        (
            "EUR/USD -.5%, VIX 3σ",
            [PriceShock("EUR/USD", -0.5, ShockUnit.PERCENT), PriceShock("VIX", 3.0, ShockUnit.SIGMAS)],
        ),
        ("^GSPC -2sigmas", [PriceShock("^GSPC", -2.0, ShockUnit.SIGMAS)]),
        ("S&P 500 -1.5%", [PriceShock("S&P 500", -1.5, ShockUnit.PERCENT)]),
    ],
)
def test_a_shock_is_read_however_it_is_written(text, shocks):
    assert parse_shocks(text) == shocks


@pytest.mark.parametrize(
    "text",
    ["", " ", "SPX", "-5%", "SPX five", "SPX -5%%", "SPX -5%,", ",", "SPX --5%", "SPX nan%", "SPX inf", "SPX 1e9%",
     "SPX -100%", "SPX -250 %", "SPX 101sd", "SPX -5%\nVIX 3", "SPX\x00 -5%", "SPX -5%, spx -2%", "SPX -5% VIX",
     "💥", "x" * 9_000, ", ".join(f"A{k} 1%" for k in range(60))],
)  # fmt: skip
def test_a_shock_that_cannot_be_read_is_refused_in_one_line(text):
    told(parse_shocks, text)


def test_a_shock_means_a_log_return():
    assert to_log_return(PriceShock("A", -5.0, ShockUnit.PERCENT), 80.0, 0.0, 0.01) == pytest.approx(
        math.log(0.95)
    )
    assert to_log_return(PriceShock("A", 5.0, ShockUnit.POINTS), 20.0, 0.0, 0.01) == pytest.approx(
        math.log(25 / 20)
    )
    assert to_log_return(PriceShock("A", -3.0, ShockUnit.SIGMAS), 20.0, 0.001, 0.01) == pytest.approx(-0.029)
    assert to_log_return(PriceShock("A", 25.0, ShockUnit.BASIS_POINTS), 4.0, 0.0, 0.01) == pytest.approx(
        math.log(4.25 / 4)
    )
    assert "above zero" in told(to_log_return, PriceShock("A", -30.0, ShockUnit.POINTS), 20.0, 0.0, 0.01)
    assert "factor of 20" in told(to_log_return, PriceShock("A", 9_000.0, ShockUnit.PERCENT), 20.0, 0.0, 0.01)


def test_a_name_finds_its_series_in_any_case_and_never_one_of_two():
    assert [find_series(name, SERIES) for name in ("SPX", "spx/1D", "AAPL", "eur/usd", "EUR", "")] == [
        0, 0, 3, 2, None, None,
    ]  # fmt: skip
    both = ("IBM/1d", "ibm/1d")
    assert find_series("ibm", both) == 1
    assert find_series("Ibm", both) is None
    assert "did you mean SPX" in told(require_series, "SPXX", SERIES, "shock 'SPXX -5%'")
    assert "no series 'SPXX'" in told(require_series, "SPXX", SERIES, "here")
    assert "and 92 more" in told(require_series, "?", [f"A{k}/1d" for k in range(100)], "here")
    assert resolve_names(parse_shocks("vix +1, spx -1%"), SERIES) == [1, 0]
    assert "second time" in told(resolve_names, parse_shocks("SPX -1%, SPX/1d -2%"), SERIES)


def test_positions_are_read_by_any_size_and_rows_of_one_symbol_add_up():
    prices = [1000.0, 20.0, 1.1, 50.0]
    rows = [["\ufeffTicker", "Shares"], ["SPX", "2"], ["aapl", "-10"], [], ["SPX", "1"]]
    found = read_positions(rows, SERIES, prices, origin="b.csv")
    assert found.portfolio.notionals.tolist() == [3000.0, 0.0, 0.0, -500.0]
    assert found.in_money
    assert (found.gross, found.net) == (3500.0, 2500.0)
    weights = read_positions(
        [["symbol", "weight"], ["SPX", "60%"], ["VIX", "−0.1"]], SERIES, prices, origin="b.csv"
    )
    assert weights.portfolio.notionals.tolist() == pytest.approx([0.6, -0.1, 0.0, 0.0])
    assert not weights.in_money
    skipped = read_positions(
        [["symbol", "notional"], ["GONE", "5"], ["SPX", "7"]],
        SERIES,
        prices,
        origin="b.csv",
        skip_unknown=True,
    )
    assert skipped.portfolio.notionals.tolist() == [7.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([], "no position"),
        ([["symbol", "notional"]], "no position"),
        ([["symbol", "notional"], ["SPX", "nan"]], "row 2: notional 'nan'"),
        ([["symbol", "notional"], ["SPX", "inf"]], "row 2"),
        ([["symbol", "notional"], ["SPX", "1"], ["SPX", "1e99"]], "row 3"),
        ([["symbol", "notional"], ["SPX", ""]], "is not a number"),
        ([["symbol", "notional"], ["SPX"]], "row 2: 1 columns"),
        ([["symbol", "notional"], ["SPX", "0"]], "no position of any size"),
        ([["symbol", "notional"], ["SPX", "1"], ["SPX", "-1"]], "no position of any size"),
        ([["symbol", "notional"], ["GONE", "1"]], "no series 'GONE'"),
        ([["symbol", "notional", "weight"], ["SPX", "1", "1"]], "name one symbol and one of"),
        ([["name", "notional"], ["SPX", "1"]], "name one symbol"),
        ([["symbol", "notional"]] + [["SPX", "1"]] * 100_001, "at most 100,000"),
    ],
)
def test_positions_that_cannot_be_used_are_refused_with_their_row(rows, word):
    assert word in told(read_positions, rows, SERIES, [1.0] * 4, origin="b.csv")


def test_a_book_of_nothing_named_holds_what_can_be_held():
    held = [is_tradable_symbol(symbol) for symbol in ("SPX", "VIX", "EURUSD", "aapl", "us10y")]
    assert held == [True, False, True, True, False]
    assert equal_positions(SERIES, [True, False, True, False]).portfolio.notionals.tolist() == [
        0.5,
        0.0,
        0.5,
        0.0,
    ]
    assert equal_positions(("VIX/1d",), [False]).portfolio.notionals.tolist() == [1.0]


def test_the_library_is_whole_and_its_sizes_are_plausible():
    assert {"lehman_2008", "flash_2010", "downgrade_2011", "china_2015", "brexit_2016", "covid_2020"} <= set(
        stress_library()
    )
    assert list(stress_library()) == sorted(stress_library(), key=lambda name: stress_library()[name].before)
    for stress in stress_library().values():
        assert set(stress.moves) <= set(stress_factors())
        assert "sp500" in stress.moves
        for factor, moves in stress.moves.items():
            assert all(math.isfinite(move) for move in moves)
            worst = {"vix": 300.0, "us10y": 200.0}.get(factor, 65.0)
            assert max(map(abs, moves)) < worst, (stress.id, factor)
            if stress_factors()[factor].unit is ShockUnit.PERCENT:
                assert min(moves) > -100.0
    factors = list(stress_factors().values())
    assert len(factors) > 1
    assert not any(one.symbols & other.symbols for one in factors for other in factors if other is not one)


def test_a_stress_is_found_by_name_and_its_window_by_the_horizon():
    assert find_stress(" Lehman-2008 ").id == "lehman_2008"
    assert "lehman_2008" in told(find_stress, "lehmann2008")
    assert "--stress list" in told(find_stress, "x" * 500)
    assert [window_days(days) for days in (0.1, 1, 2, 3, 5, 9, 15, 22, 250)] == [1, 1, 1, 5, 5, 5, 22, 22, 22]
    assert factors_by_symbol(["AAPL", "spx", "^VIX", "SPY"]) == {"sp500": (1, 3), "vix": (2,)}


def test_the_library_agrees_with_the_closes_in_the_sample():
    pq = pytest.importorskip("pyarrow.parquet")
    files = {"spx": sample.FILES[0], "vix": sample.FILES[1]}
    for name, file in nonempty(files.items()):
        table = pq.read_table(file).to_pydict()
        dates, closes = table["date"], np.array(table["close"], float)
        for stress in nonempty(stress_library().values()):
            start = [k for k, day in enumerate(dates) if day <= stress.before]
            if not start or (stress.before - dates[start[-1]]).days > 5 or start[-1] + 22 >= len(dates):
                continue
            moves = stress.moves["sp500" if name == "spx" else "vix"]
            for days, move in zip((1, 5, 22), moves, strict=True):
                real = 100.0 * (closes[start[-1] + days] / closes[start[-1]] - 1.0)
                assert move == pytest.approx(real, abs=0.6), (stress.id, name, days)


def test_a_file_names_scenarios_of_all_kinds():
    text = """
    [[scenario]]
    shock = "SPX -5%"
    name = "a bad day"
    [[scenario]]
    headline = "Fed cuts"
    on = "SPX"
    [[scenario]]
    stress = "lehman_2008"
    """
    asked = parse_requests(text, "s.toml")
    assert [one.kind for one in asked] == [ScenarioKind.SHOCK, ScenarioKind.HEADLINE, ScenarioKind.STRESS]
    assert (asked[0].name, asked[1].on) == ("a bad day", ("SPX",))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "[[scenario]]"),
        ("scenario = 3", "[[scenario]]"),
        ("[[scenario]]\nshock = 3", "must be text"),
        ("[[scenario]]\nname = 'x'", "name one of"),
        ("[[scenario]]\nshock = 'A 1%'\nstress = 'x'", "name one of"),
        ("[[scenario]]\nshock = 'A 1%'\nonn = 'x'", "unknown key 'onn'"),
        ("[[scenario]]\nshock = 'A 1%'\non = ['x']", "unknown key 'on'"),
        ("[[scenario]]\nheadline = 'x'\non = [3]", "'on' must be"),
        ("[[scenario]]\nshock = 'A 1%'\nname = '" + "n" * 99 + "'", "at most 60"),
        ("[[scenario", "not valid TOML"),
        ("scenario = [1]", "must be a table"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_place(text, word):
    assert word in told(parse_requests, text, "s.toml")


def test_no_scenario_and_too_many_are_refused():
    assert "--shock" in told(check_requests, [])
    assert "at most 1,000" in told(
        check_requests, parse_requests("[[scenario]]\nshock = 'A 1%'\n" * 1_001, "s.toml")
    )
