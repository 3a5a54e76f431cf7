"""Prices with decimal commas are read where they can mean nothing else; an ambiguous file keeps its rejections."""

import random
from pathlib import Path

import pytest

from htfi.adapters.feeds.text_files import TextFileReader
from htfi.domain.events import Bar, QuarantinedRow, Trade
from htfi.pipeline.intake.spec import SourceSpec


def read_items(folder: Path, text: str) -> list[object]:
    path = folder / "prices.csv"
    path.write_text(text)
    reader = TextFileReader(path, SourceSpec(name="prices", path=str(path), format="csv"), "prices", 1000)
    reader.start(None)
    found: list[object] = []
    while (block := reader.read()) is not None:
        found += block.items
    reader.close()
    return found


def trades(*prices: str, separator: str = ";") -> str:
    rows = (
        f"2024-01-{day:02}T21:00:00Z{separator}DAX{separator}{price}" for day, price in enumerate(prices, 1)
    )
    return "\n".join([f"ts{separator}symbol{separator}price", *rows, ""])


def prices_of(items: list[object]) -> list[float | str]:
    return [item.price if isinstance(item, Trade) else getattr(item, "detail", "") for item in items]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_prices_with_decimal_commas_equal_those_with_points(tmp_path: Path, separator: str) -> None:
    rng = random.Random(7)
    written = [f"{rng.uniform(1, 20_000):.2f}" for _ in range(28)]
    with_commas = trades(*(price.replace(".", ",") for price in written), separator=separator)
    assert prices_of(read_items(tmp_path, with_commas)) == [float(price) for price in written]


def test_bars_with_decimal_commas_have_their_range_and_volume(tmp_path: Path) -> None:
    items = read_items(
        tmp_path,
        "date;symbol;open;high;low;close;volume\n"
        "2024-01-02;DAX;16828,67;16963,51;16656;16769,36;1500,5\n"
        "2024-01-03;DAX;16750,41;16780,19;16480,74;16538,39;0\n",
    )
    bars = [item for item in items if isinstance(item, Bar)]
    assert [(bar.open, bar.high, bar.low, bar.close, bar.volume) for bar in bars] == [
        (16828.67, 16963.51, 16656.0, 16769.36, 1500.5),
        (16750.41, 16780.19, 16480.74, 16538.39, 0.0),
    ]


@pytest.mark.parametrize(
    "prices",
    [("1,234", "12,500", "999,125"), ("1234,5", "1.234,5"), ("1234,5", "1234.5"), ("1,234,567", "1234,5")],
    ids=["may be grouped", "both signs in a price", "points elsewhere", "two commas"],
)
def test_ambiguous_commas_are_rejected(tmp_path: Path, prices: tuple[str, ...]) -> None:
    items = read_items(tmp_path, trades(*prices))
    rejected = [item.reason for item in items if isinstance(item, QuarantinedRow)]
    assert rejected == ["bad_number"] * sum("," in price for price in prices)


def test_a_comma_between_cells_is_never_a_decimal_comma(tmp_path: Path) -> None:
    items = read_items(tmp_path, 'ts,symbol,price\n2024-01-02T21:00:00Z,DAX,"16769,36"\n')
    assert prices_of(items) == ["price '16769,36' is not a number"]


def test_a_later_price_with_a_point_is_rejected_and_not_guessed(tmp_path: Path) -> None:
    days = [f"2024-01-02T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z;DAX;16769,36" for n in range(250)]
    text = "\n".join(["ts;symbol;price", *days, "2024-01-03T21:00:00Z;DAX;16.769", ""])
    found = prices_of(read_items(tmp_path, text))
    assert found[:-1] == [16769.36] * 250
    assert found[-1] == "price '16.769' has a point, but prices of this file have decimal commas"
