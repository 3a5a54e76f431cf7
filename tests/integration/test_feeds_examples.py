"""The example mappings can be read, and read the sets that they are written for, where those lie beside the project."""

from itertools import islice
from pathlib import Path

import pytest

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.events import Bar, FeedItem, MacroAnnouncement, News, Quote, Trade
from htfi.domain.time import SystemClock, format_ns
from htfi.pipeline.intake.mapping import load_mapping
from htfi.wiring.feeds import open_feed, resolve

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
DATA = ROOT.parent / "shared" / "data"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_a_mapping(example: Path) -> None:
    assert load_mapping(example)


def first_items(
    folder: Path, example: str, num_items: int, *files: str
) -> tuple[list[FeedItem], dict[str, int]]:
    """`files` are NAME=PATH, the name of a source in the example and a path in the staged data."""
    named = dict(file.split("=") for file in files)
    if not all((DATA / path).exists() for path in named.values()):
        pytest.skip("the staged data is not beside the project")
    quarantine = QuarantineFile(folder / "q.jsonl")
    specs = resolve([f"{name}={DATA / path}" for name, path in named.items()], ROOT / "examples" / example)
    feed = open_feed(specs, inbox=folder / "inbox", quarantine=quarantine, clock=SystemClock())
    items = list(islice(feed, num_items))
    feed.close()
    quarantine.close()
    return items, quarantine.counts()


def test_ticks_of_two_files_are_one_stream(tmp_path: Path) -> None:
    week = "20131007_11.parquet"
    files = (f"trades=hf/us_equity_ticks_trades_{week}", f"quotes=hf/us_equity_ticks_quotes_{week}")
    items, counts = first_items(tmp_path, "us_equity_ticks.toml", 20_000, *files)
    assert {type(item) for item in items} == {Trade, Quote}
    assert {item.source for item in items if isinstance(item, (Trade, Quote))} == {"trades", "quotes"}
    times = [item.available_at_ns for item in items]
    assert times == sorted(times)
    assert counts == {}
    sides = [(item.bid is None) != (item.ask is None) for item in items if isinstance(item, Quote)]
    assert all(sides)


def test_daily_bars_come_day_by_day(tmp_path: Path) -> None:
    files = ("daily=text_price/kdd17_prices_daily.parquet",)
    items, counts = first_items(tmp_path, "us_equities_daily.toml", 100, *files)
    assert counts == {}
    assert len({item.symbol for item in items if isinstance(item, Bar)}) > 40
    assert format_ns(items[0].available_at_ns) == "2007-01-03T21:00:00Z"


def test_headlines_carry_their_symbols(tmp_path: Path) -> None:
    items, counts = first_items(
        tmp_path, "reuters_news.toml", 500, "reuters=text_price/reuters_news_2006_2013.parquet"
    )
    assert counts == {}
    news = [item for item in items if isinstance(item, News)]
    assert ("GOOG", "YHOO") in [item.symbols for item in news]
    assert all(item.available_at_ns == item.event_time_ns + 60 * 10**9 for item in news)


def test_one_series_is_taken_out_of_many(tmp_path: Path) -> None:
    items, counts = first_items(tmp_path, "macro_vix.toml", 300, "vix=macro/macro_daily_monthly.parquet")
    assert counts == {}
    values = [item for item in items if isinstance(item, MacroAnnouncement)]
    assert {item.series for item in values} == {"VIX_close"}
    assert [item.row for item in values] == list(range(1, 301))
    assert format_ns(values[0].available_at_ns).endswith("21:15:00Z")
