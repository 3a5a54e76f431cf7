"""`htfi bench ticks` on files made here: its figures, what it says of its data, and how it refuses bad files."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from htfi_eval import commands
from htfi_eval.bench.ticks import command as ticks
from htfi_eval.bench.ticks import peers as tick_peers
from htfi_eval.bench.ticks.decisions import WholeRun, bar_to_release, time_sample_run
from htfi_eval.bench.ticks.replay import count_columns, events_of, read_batches
from htfi_eval.bench.ticks.startup import StartTiming, time_start, write_inputs
from htfi_eval.main import bench

METRICS = {
    "event_p50_us", "event_p99_us", "batch_events_per_s", "replay_peak_mb", "bar_to_release_p99_ms",
    "bar_to_release_1000_p99_ms", "entry_bytes", "disk_bytes_per_decision", "first_decision_s", "sample_run_s",
}  # fmt: skip


def write(file: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), file, row_group_size=500)
    return file


def times(rng: np.random.Generator, count: int) -> pa.Array:
    ms = 1_381_152_600_000 + np.sort(rng.integers(0, 300_000, count))  # many at one instant
    return pa.array(ms, pa.timestamp("ms", tz="UTC"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Trades and one-sided quotes of two symbols, 2,000 rows each."""
    folder = tmp_path_factory.mktemp("ticks")
    rng = np.random.default_rng(3)
    count = 2_000
    names, venues = rng.choice(["AA", "BB"], count), rng.choice(["N", "Q", "P"], count)
    sides = rng.choice(["b", "a"], count)
    prices = np.round(100 * np.exp(np.cumsum(1e-4 * rng.standard_normal(count))), 2)
    sizes = rng.integers(1, 9, count).astype(np.int32) * 100
    trades = write(
        folder / "trades.parquet",
        ts=times(rng, count),
        symbol=names,
        price=prices,
        size=sizes,
        exchange=venues,
    )
    quoted = np.where(sides == "b", prices - 0.01, prices + 0.01)
    quotes = write(
        folder / "quotes.parquet",
        ts=times(rng, count),
        symbol=pa.array(names).dictionary_encode(),
        exchange=venues,
        side=sides,
        price=quoted,
        size=sizes,
    )
    return trades, quotes


def test_bench_prints_a_table_and_writes_the_figures(files, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(ticks, "NUM_BARS", 30)
    monkeypatch.setattr(ticks, "MANY_SYMBOLS", 200)
    monkeypatch.setattr(ticks, "MANY_BARS", 25)
    measured = []

    def noted(num_symbols: int, num_bars: int, seed: int):
        timing = bar_to_release(num_symbols, num_bars, seed)
        measured.append((num_symbols, num_bars, len(timing.elapsed_ms)))
        return timing

    monkeypatch.setattr(ticks, "bar_to_release", noted)
    monkeypatch.setattr(ticks, "time_sample_run", lambda: WholeRun(4.0, 9_000.0))
    monkeypatch.setattr(ticks, "time_long_run", lambda _: WholeRun(4.0, 2_500.0))
    monkeypatch.setattr(ticks, "time_start", lambda: StartTiming(0.02, 0.3, 0.5, 0.6, 1.25))
    out = tmp_path / "ticks.json"
    arguments = [
        "ticks",
        "--trades",
        str(files[0]),
        "--quotes",
        str(files[1]),
        "--runs",
        "1",
        "--json",
        str(out),
    ]
    done = CliRunner().invoke(bench, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    body = json.loads(out.read_text())
    assert set(body["metrics"]) == METRICS
    assert all(value > 0 for value in body["metrics"].values())
    rows = {row["what"]: row for row in body["rows"]}
    assert any(note.startswith("trades.parquet + quotes.parquet, 4,000 rows; ") for note in body["notes"])
    assert rows["event: update"]["rows"] == rows["memory: whole"]["rows"] == 4_000
    assert [row[:2] for row in measured] == [(100, 30), (200, 25)]
    assert all(0 < num_timed <= num_bars for _, num_bars, num_timed in measured)
    for what in ("100 bars to release", "200 bars to release"):  # either may be slowed by other work
        assert rows[what]["p99 µs"] >= rows[what]["p50 µs"] > 0
    assert 200 < body["metrics"]["entry_bytes"] < 20_000
    assert rows["htfi run: embedded sample"]["s"] == body["metrics"]["sample_run_s"] == 4.0
    assert rows["htfi run: first decision"]["s"] == body["metrics"]["first_decision_s"] == 1.25
    stages = ["start: interpreter", "start: and imports", "start: and models opened"]
    taken_s = [rows[what]["s"] for what in (*stages, "htfi run: first decision, no news")]
    assert taken_s == [0.02, 0.3, 0.5, 0.6]
    floors = {what for what, row in rows.items() if row.get("floor", 0) > 0 and row["the floor is"]}
    assert floors == {
        "event: update", "event: update, read", "batch: from files", "batch: kernel", "trades: from file",
        "100 bars to release", "200 bars to release", "start: and imports", "start: and models opened",
        "htfi run: first decision, no news", "htfi run: first decision",
    }  # fmt: skip
    assert rows["start: and imports"]["× floor"] == 0.3 / 0.02
    told = [*rows, *body["notes"]]  # a peer that is not installed is a note
    assert any(what.startswith("trades: polars") for what in told)
    assert any(what.startswith("event: river") for what in told)


@pytest.mark.slow
def test_a_run_of_the_sample_is_timed_from_the_start_of_its_process() -> None:
    run = time_sample_run()
    assert run.total_s > 0
    assert 500 < run.disk_bytes_per_decision < 50_000


@pytest.mark.slow
def test_the_first_decision_is_timed_with_a_reading_and_without_news() -> None:
    start = time_start()
    assert 0 < start.interpreter_s < start.imports_s < start.models_s
    assert start.interpreter_s < start.without_news_s
    assert start.imports_s < start.first_decision_s


def test_inputs_of_the_start_are_seeded_and_have_a_headline_on_the_day_of_the_first_forecast(
    tmp_path: Path,
) -> None:
    again = tmp_path / "again"
    again.mkdir()
    (prices, news), (prices_again, _) = write_inputs(tmp_path), write_inputs(again)
    rows = prices.read_text().splitlines()
    assert rows == prices_again.read_text().splitlines()
    assert len(rows) == 31
    assert json.loads(news.read_text())["ts"][:10] == rows[20].split(",")[0]


def test_peer_that_is_not_installed_is_a_line_in_the_table(monkeypatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(commands, "import_module", refuse)
    for peer in nonempty((*tick_peers.BATCH_PEERS, *tick_peers.EVENT_PEERS)):
        row = ticks._in_table(peer.name, lambda peer=peer: peer.runs([], 1))
        assert "is not installed" in row["what"]


def test_staged_week_is_taken_where_there_is_one_else_the_sample(tmp_path: Path, files) -> None:
    assert ticks.choose_files(None, None, tmp_path).label == "embedded sample"
    for kind in ("trades", "quotes"):
        (tmp_path / ticks.WEEK.format(kind)).touch()
    assert ticks.choose_files(None, None, tmp_path).label == "staged week"
    assert ticks.choose_files(files[0], None, tmp_path).files == [files[0]]
    with pytest.raises(InvalidInput, match="needs --trades"):
        ticks.choose_files(None, files[1], tmp_path)


def test_columns_alone_are_read_to_their_end(files) -> None:
    assert [count_columns(file) for file in files] == [2_000, 2_000]


def test_sample_is_read_to_features() -> None:
    num_rows, _, _ = ticks.timed_replay(ticks.choose_files(None, None, Path("nowhere")).files)
    assert num_rows == 53_957


@pytest.mark.parametrize("chunk_rows", [1, 7, 1_000, 10_000])
def test_chunks_of_any_size_give_one_order(files, chunk_rows: int) -> None:
    """At one instant trades come first, each file's rows in their own order."""
    tables = [pq.read_table(file).to_pylist() for file in files]
    rows = sorted(
        (row["ts"], place, n, row["price"])
        for place, table in enumerate(tables)
        for n, row in enumerate(table)
    )
    batches = list(read_batches(files, chunk_rows))
    assert [price for batch in batches for price in batch.price.tolist()] == [price for *_, price in rows]
    stamps = np.concatenate([batch.available_at_ns for batch in batches])
    assert stamps.tolist() == [round(row[0].timestamp() * 1000) * 10**6 for row in rows]


def test_events_and_columns_of_the_same_files_agree(files) -> None:
    config = MarketConfig(bar="10s")
    by_event, by_column = MarketState(config), MarketState(config)
    for event in events_of(files, 10_000):
        for closed in (by_event.advance(event.available_at_ns), by_event.observe(event)):
            by_event.close_bars(closed)
    for batch in read_batches(files, 300):
        by_column.observe_batch(batch)
    for symbol in ("AA", "BB"):
        assert by_event.features(symbol, "10s") == by_column.features(symbol, "10s")
        assert "rv_1s" in by_column.features(symbol, "10s")


def test_two_sided_quotes_and_integer_times_are_read(tmp_path: Path) -> None:
    stamps = pa.array([5, 5, 9], pa.int64())
    sides = {
        "bid": [9.9, None, 9.8],
        "bid_size": [1, 2, 3],
        "ask": [10.1, 10.2, 10.3],
        "ask_size": [1, 2, None],
    }
    quotes = write(tmp_path / "quotes.parquet", ts=stamps, symbol=["X", "X", "X"], **sides)
    trades = write(
        tmp_path / "trades.parquet", ts=stamps, symbol=["X", "Y", "X"], price=[1.0, 2.0, 3.0], size=[1, 1, 1]
    )
    events = events_of([trades, quotes], 10)
    assert [type(event) for event in events] == [Trade, Trade, Quote, Quote, Trade, Quote]
    assert (events[3].bid, events[3].bid_size, events[3].ask) == (None, 2.0, 10.2)
    assert (events[5].ask, events[5].ask_size, events[5].venue) == (10.3, None, "")
    assert [event.symbol for event in events_of([trades, quotes], 2)] == ["X", "X"]


NAIVE = pa.array([0, 1], pa.timestamp("ms"))
UTC = pa.array([0, 1], pa.timestamp("ms", tz="UTC"))
PAIR = {"symbol": ["A", "A"], "price": [1.0, 1.0], "size": [1, 1]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"ts": UTC, "symbol": ["A", "A"]}, "no column price, size"),
        ({"ts": NAIVE, **PAIR}, "no zone"),
        ({"ts": pa.array([1, None], pa.int64()), **PAIR}, "no ts"),
        ({"ts": ["one", "two"], **PAIR}, "store it as a timestamp"),
        ({"ts": UTC[::-1], **PAIR}, "not in order"),
        ({"ts": UTC, "side": ["b", "x"], **PAIR}, "neither bid"),
    ],
)
def test_unusable_files_are_refused_with_the_reason(tmp_path: Path, columns: dict, message: str) -> None:
    file = write(tmp_path / "bad.parquet", **columns)
    with pytest.raises(InvalidInput, match=message):
        list(read_batches([file]))


def test_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.parquet"
    file.write_text("ts,symbol,price\n")
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        list(read_batches([file]))
