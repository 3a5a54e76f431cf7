"""Prices on a grid: what a bar of it holds, what a cut keeps, and what a person's file may look like."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi_eval.eval.price_grid import on_grid
from htfi_eval.eval.prices import NAMES, Prices, data_folder, load_prices

STAGED = Path(__file__).parents[3] / "shared" / "data"


def _prices(closes: list[list[float]]) -> Prices:
    grid = np.array(closes)
    ends_ns = (np.arange(len(grid)) + 20_000) * NS_PER_DAY
    rows, columns = np.indices(grid.shape)
    values = grid.reshape(-1)
    fields = {"open": values * 1.01, "high": values, "low": values * 0.99, "close": values}
    names = np.array(["B", "A", "C"])[columns.reshape(-1)]
    when = ends_ns[rows.reshape(-1)]
    return on_grid("made", names, when, when + 5, fields, ())


def test_bars_leave_out_what_is_absent_and_span_their_prices() -> None:
    prices = _prices([[10.0, 20.0, np.nan], [11.0, 0.0, 5.0]])
    assert prices.symbols == ("A", "B", "C")
    first, second = prices.bars(0), prices.bars(1)
    assert [bar.symbol for bar in first] == ["A", "B"]
    assert [bar.symbol for bar in second] == ["B", "C"]  # a price of 0 is no price
    bar = first[0]
    assert bar.high == pytest.approx(20.0 * 1.01)  # the open lay above the high that was given
    assert bar.low == pytest.approx(20.0 * 0.99)
    assert bar.available_at_ns == bar.end_ns + 5
    assert bar.end_ns - bar.start_ns == NS_PER_DAY


def test_of_two_rows_in_one_place_the_later_stands() -> None:
    values = np.array([1.0, 2.0])
    fields = dict.fromkeys(("open", "high", "low", "close"), values)
    prices = on_grid("twice", np.array(["A", "A"]), np.array([9, 9]), np.array([9, 9]), fields, ())
    assert prices.close.tolist() == [[2.0]]


def test_a_cut_keeps_both_ends_and_the_order_asked_for() -> None:
    prices = _prices([[1.0, 2.0, 3.0]] * 10)
    days = prices.dates()
    part = prices.cut(["C", "A"], days[2], days[4])
    assert part.symbols == ("C", "A")
    assert part.dates() == days[2:5]
    assert part.close[0].tolist() == [3.0, 2.0]
    with pytest.raises(InvalidInput, match="has no ZZ"):
        prices.cut(["ZZ"])


def test_a_file_of_closes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("date,close\n2020-01-02,10\n2020-01-03,\n2020-01-06,11\n")
    prices = load_prices(file)
    assert prices.close[:, 0].tolist() == [10.0, 11.0]
    assert any("1 rows were unusable" in note for note in prices.notes)


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("none.csv", None, "does not exist"),
        ("news.jsonl", '{"published_at":"2020-01-01T00:00:00Z","headline":"x"}\n', "no bars"),
    ],
)
def test_a_file_without_bars_is_refused_in_one_line(
    tmp_path: Path, name: str, text: str | None, what: str
) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    with pytest.raises(InvalidInput, match=what):
        load_prices(file)


def test_a_staged_set_without_its_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--data"):
        load_prices("us_equities", tmp_path)


def test_the_sample_ends_its_sessions_in_new_york() -> None:
    prices = load_prices("sample")
    assert prices.symbols == ("SPX", "VIX")
    last = datetime.fromtimestamp(prices.available_ns[-1] / 1e9, UTC)
    assert last.isoformat() == "2009-12-31T21:15:00+00:00"


@pytest.mark.skipif(data_folder(STAGED) is None, reason="no staged data beside the project")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "us_equities"])
def test_staged_sets_rise_in_time_and_hold_no_price_that_is_none(name: str) -> None:
    prices = load_prices(name, STAGED)
    assert (np.diff(prices.ends_ns) > 0).all()
    assert (prices.available_ns >= prices.ends_ns).all()
    assert (prices.close[np.isfinite(prices.close)] > 0).all()
    moves = np.abs(np.diff(np.log(prices.close), axis=0))
    assert np.nanmax(moves) < 1.0  # no split, and no other company under the same ticker
