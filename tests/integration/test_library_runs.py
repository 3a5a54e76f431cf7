"""Runs that a program pushes events into, and their ledgers."""

import asyncio
import copy
import pickle
import sqlite3
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htfi
from archives import unpack
from htfi.domain.decision import encode_decision

DAYS = pd.bdate_range("2020-01-01", periods=26)
STEPS = np.random.default_rng(1).standard_normal((26, 2))
PRICES = pd.DataFrame(100.0 * np.exp(np.cumsum(0.01 * STEPS, axis=0)), DAYS, ["AAA", "BBB"])


def rows(prices):
    """Dictionaries as a feed of JSON would have them."""
    return [
        {"date": day.date(), "symbol": symbol, "close": close}
        for day, of_day in prices.iterrows()
        for symbol, close in of_day.items()
    ]


def push(folder, events):
    with htfi.open_run(folder, interval="1d") as run:
        return list(run.feed(events))


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A folder, and the decisions of a run in it that was pushed all rows at once."""
    folder = tmp_path_factory.mktemp("pushed")
    return folder, push(folder, rows(PRICES))


def test_pushed_events_are_decided_recorded_and_handed_out(pushed):
    folder, decisions = pushed
    assert [one.symbol for one in decisions[-2:]] == ["AAA", "BBB"]
    assert decisions[-1].last_price == PRICES["BBB"].iloc[-1]
    with htfi.open_ledger(folder) as ledger:
        assert len(ledger) == len(decisions) == 12
        assert ledger.verify(recompute=True).num_entries == 12
        assert [one.id for one in ledger] == [one.id for one in decisions]
        assert ledger[-1].forecast == ledger[decisions[-1].id].forecast == decisions[-1].forecast
        assert ledger.decisions().column("id").to_pylist() == [one.id for one in decisions]
        assert ledger.explain(3)[0].title == "Suspicion"


def test_a_backtest_forecasts_what_the_run_recorded(pushed):
    recorded = [one.forecast.quantiles for one in pushed[1]]
    assert htfi.backtest(PRICES).log_returns.tolist() == recorded


def test_a_run_in_parts_decides_as_one_and_takes_nothing_twice(pushed, tmp_path):
    first = push(tmp_path, rows(PRICES.iloc[:22]))
    assert push(tmp_path, rows(PRICES.iloc[:22])) == []
    rest = push(tmp_path, rows(PRICES))
    assert [one.forecast for one in first + rest] == [one.forecast for one in pushed[1]]


def test_a_series_can_be_pushed(pushed, tmp_path):
    found = push(tmp_path, PRICES["AAA"])
    assert [one.id for one in found] == [one.id for one in pushed[1] if one.symbol == "AAA"]


def test_a_ledger_is_short_in_a_console_and_a_table_in_a_notebook(pushed):
    folder, decisions = pushed
    with htfi.open_ledger(folder) as ledger:
        assert repr(ledger) == f"ledger of 12 entries in {folder}"
        assert ledger._repr_html_().count("<tr>") == 11
        assert decisions[-1].id in ledger._repr_html_()
        assert ledger.explain(-1) == ledger.explain(11)
        for wrong in (12, -13):
            with pytest.raises(htfi.HtfiError, match=f"no decision {wrong}: the ledger holds 12 entries"):
                ledger[wrong]
        with pytest.raises(htfi.HtfiError, match="give a whole number"):
            ledger[1.5]
    assert repr(ledger) == f"closed ledger in {folder}"
    with pytest.raises(htfi.HtfiError, match="is closed: open it again"):
        ledger.verify()


def test_what_became_of_the_news_is_text_and_html(pushed):
    with htfi.open_ledger(pushed[0]) as ledger:
        sections = ledger.explain(-1)
    assert isinstance(sections, tuple)
    assert str(sections).startswith(f"{sections[0].title}\n{sections[0].lines[0]}\n")
    assert sections._repr_html_().count("<b>") == len(sections)
    assert pickle.loads(pickle.dumps(sections)) == copy.deepcopy(sections) == sections


def test_what_is_open_belongs_to_its_thread_and_is_not_copied(pushed, tmp_path):
    with htfi.open_ledger(pushed[0]) as ledger, htfi.open_run(tmp_path, interval="1d") as run:
        for opened in (ledger, run):
            for of in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(htfi.HtfiError, match=r" in .* cannot be copied or pickled: "):
                    of(opened)
        with ThreadPoolExecutor(1) as pool, pytest.raises(htfi.HtfiError, match="opened by another thread"):
            pool.submit(ledger.verify).result()


def test_a_frame_can_be_pushed(pushed, tmp_path):
    assert [one.forecast for one in push(tmp_path, PRICES)] == [one.forecast for one in pushed[1]]


@pytest.mark.parametrize(
    "stamp", [pd.Timestamp, lambda day: day.to_pydatetime(), lambda day: str(day.date())]
)
def test_a_day_may_be_written_in_any_way(stamp, tmp_path):
    events = [{"ts": stamp(day), "close": np.float64(close)} for day, close in PRICES["AAA"].items()]
    decisions = push(tmp_path, events)
    assert decisions[-1].id == "price/1d@2020-02-06T05:00:00Z"


def test_events_that_cannot_be_used_are_counted(tmp_path):
    with htfi.open_run(tmp_path, interval="1d") as run:
        list(run.feed(rows(PRICES.iloc[:3])))
        with pytest.warns(htfi.RowsSetAside, match="late: an event of a later time was pushed before it"):
            assert list(run.feed([{"date": "2020-01-01", "symbol": "AAA", "close": 1.0}])) == []
        with pytest.warns(htfi.RowsSetAside, match="bad_price: close -1.0 is not between"):
            assert list(run.feed({"date": "2020-02-01", "symbol": "AAA", "close": -1.0})) == []
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a reason is said once
            assert list(run.feed({"date": "2020-02-02", "symbol": "AAA", "close": -2.0})) == []
        assert run.set_aside == {"late": 1, "bad_price": 2}
        for wrong in (5, [5], None):
            with pytest.raises(htfi.HtfiError, match=r"(5|None) is no event: push dictionaries"):
                list(run.feed(wrong))


def test_bars_without_a_length_are_said_and_not_dropped_in_silence(tmp_path):
    with (
        htfi.open_run(tmp_path) as run,
        pytest.warns(htfi.RowsSetAside, match="bad_interval: .* state `interval`"),
    ):
        assert list(run.feed(rows(PRICES))) == []


def test_rows_that_a_table_repeats_are_counted_in_the_run(tmp_path):
    with htfi.open_run(tmp_path, interval="1d") as run:
        with pytest.warns(htfi.RowsSetAside, match="duplicate: the symbol has an earlier row"):
            decisions = list(run.feed(pd.concat([PRICES, PRICES.iloc[:1]])))
        assert len(decisions) == 12
        assert run.set_aside == {"duplicate": 2}


def test_another_thread_may_not_push_and_spoils_nothing(tmp_path):
    with htfi.open_run(tmp_path, interval="1d") as run, ThreadPoolExecutor(1) as pool:
        with pytest.raises(htfi.HtfiError, match="was opened by another thread: push events from the one"):
            pool.submit(lambda: list(run.feed(PRICES))).result()
        assert len(list(run.feed(PRICES))) == 12


def test_a_run_is_opened_again_by_the_same_object_and_not_twice_at_once(tmp_path):
    run = htfi.open_run(tmp_path, interval="1d")
    with run:
        first = list(run.feed(PRICES.iloc[:22]))
        with pytest.raises(htfi.HtfiError, match="is open: close its `with` block first"):
            run.__enter__()
        first += run.feed(PRICES.iloc[22:23])
    with run:
        rest = list(run.feed(PRICES.iloc[23:]))
    assert len(first) + len(rest) == 12


def test_events_that_nobody_iterates_over_are_said(tmp_path):
    run = htfi.open_run(tmp_path, interval="1d")
    run.__enter__()
    run.feed(rows(PRICES))
    with pytest.warns(htfi.EventsNotTaken, match="iterate over what run.feed"):
        run.__exit__(None, None, None)


def test_async_feeding_gives_the_same_decisions(pushed, tmp_path):
    async def events():
        for row in rows(PRICES):
            yield row

    async def run_all():
        async with htfi.open_run(tmp_path, interval="1d") as run:
            return [one async for one in run.afeed(events())]

    decided = asyncio.run(run_all())
    assert [encode_decision(one) for one in decided] == [encode_decision(one) for one in pushed[1]]


def test_an_error_in_the_block_loses_nothing_that_was_recorded(tmp_path):
    run = htfi.open_run(tmp_path, interval="1d")
    run.__enter__()
    handed = [next(iter(run.feed(rows(PRICES))))]
    run.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    again = push(tmp_path, rows(PRICES))
    assert [one.id for one in again][: len(handed)] == [one.id for one in handed]
    with htfi.open_ledger(tmp_path) as ledger:
        assert ledger.verify().num_entries == 12


def test_a_folder_in_use_by_another_process_is_said_in_one_line(tmp_path):
    opening = f"htfi.open_run({str(tmp_path)!r}).__enter__()"
    code = f"import htfi\ntry:\n  {opening}\nexcept htfi.HtfiError as error: print(error)"
    with htfi.open_run(tmp_path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ledger.db is in use by process" in done.stdout
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_run_outside_its_block_and_a_folder_without_a_ledger_are_refused(tmp_path):
    with pytest.raises(htfi.HtfiError, match="is not open: use it in a `with` block"):
        list(htfi.open_run(tmp_path).feed([]))
    with pytest.raises(htfi.HtfiError, match=r"ledger\.db"):
        htfi.open_ledger(tmp_path / "none")


def test_an_altered_entry_is_found(tmp_path):
    push(tmp_path, rows(PRICES))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database:
        database.execute("UPDATE entries SET body = zeroblob(10) WHERE idx = 3")
        database.commit()
    with htfi.open_ledger(tmp_path) as ledger, pytest.raises(htfi.HtfiError, match="entry 3"):
        ledger.verify()


def test_a_ledger_of_an_earlier_version_is_read(tmp_path):
    unpack(Path(__file__).parents[1] / "data/ledgers/run-0.1.0.tar.xz", tmp_path)
    (folder,) = (path.parent for path in tmp_path.rglob("ledger.db"))
    with htfi.open_ledger(folder) as ledger:
        assert ledger.verify().num_entries == len(ledger) > 0
        assert ledger.decisions().num_rows == len(ledger)
        assert ledger[0].id == next(iter(ledger)).id


@pytest.mark.parametrize("symbols", [["AAA"], ("AAA",), "AAA"])
def test_news_that_is_pushed_is_read_for_its_symbols(tmp_path, symbols):
    item = {
        "published_at": "2020-02-06T14:00:00Z",
        "id": "n1",
        "headline": "AAA cuts full-year revenue forecast on weak demand",
        "symbols": symbols,
    }
    with htfi.open_run(tmp_path, interval="1d") as run:
        assert len(list(run.feed(PRICES))) > 0
        (answer,) = run.feed([item])
        assert run.set_aside == {}
    assert answer.id == "AAA/1d@2020-02-06T14:00:00Z/news"
    assert answer.news_context is not None
    assert [one.id for one in answer.news_context.considered] == ["n1"]


def test_without_models_news_is_cited_and_not_read(tmp_path):
    item = {
        "published_at": "2020-02-06T14:00:00Z",
        "id": "n1",
        "headline": "AAA cuts full-year revenue forecast on weak demand",
        "symbols": "AAA",
    }
    answers = []
    for models in ("default", None):
        folder = tmp_path / str(models)
        with htfi.open_run(folder, interval="1d", models=models) as run:
            list(run.feed(PRICES))
            answers += run.feed([item])
        with htfi.open_ledger(folder) as ledger:
            assert ledger.verify(recompute=True).num_entries == len(ledger)
    read, cited = answers
    assert read.view.trace is not None
    assert cited.view.trace is None
    assert cited.view.cited == ("n1",)
    assert [name for name in cited.models if name.startswith("reader.")] == ["reader.template"]
    with pytest.raises(htfi.HtfiError, match="a run with other readers"):
        push(tmp_path / "None", [])
