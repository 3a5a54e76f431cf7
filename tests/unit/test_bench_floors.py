"""Floors beside figures: which way the ratio goes, what is measured, and that nothing is left behind."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from checks import nonempty
from htfi.wiring.ledger import DATABASE, open_ledger
from htfi_eval.bench import encoder_floor, floors, news
from htfi_eval.bench.encoder_floor import EncoderFloors, encoder_shape
from htfi_eval.bench.floors import Floor, lookup_s, record_times, tile_read_times, verify_s, with_floor
from htfi_eval.bench.news_timing import ThroughputRun
from htfi_eval.bench.processes import available_cores, on_one_core

ENTRIES = [bytes([place]) * 500 for place in range(7)]


def test_a_time_is_so_many_times_its_floor_and_a_rate_that_much_below_what_it_allows() -> None:
    time = with_floor({"what": "verify", "median s": 6.0}, "median s", Floor(2.0, "hashing"))
    rate = with_floor({"what": "batch", "M/s": 2.0}, "M/s", Floor(6.0, "decoding"))
    assert time == {
        "what": "verify", "median s": 6.0, "floor": 2.0, "× floor": 3.0, "the floor is": "median s: hashing",
    }  # fmt: skip
    assert rate["× floor"] == 3.0
    assert rate["the floor is"] == "M/s: decoding"


@pytest.mark.parametrize("durable", [True, False])
def test_recording_times_every_group_and_leaves_no_file(tmp_path: Path, durable: bool) -> None:
    times = record_times(tmp_path / "floor", [ENTRIES, ENTRIES[:3]], durable=durable)
    assert len(times) == 2
    assert min(times) > 0
    assert list(tmp_path.iterdir()) == []


def test_recording_writes_and_hashes_every_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    hashed: list[bytes] = []
    monkeypatch.setattr(floors, "sha256", recording_hash(hashed))
    monkeypatch.setattr(
        floors.time, "perf_counter", lambda: kept.append(_rows(tmp_path / "floor")) or float(len(kept))
    )
    record_times(tmp_path / "floor", [ENTRIES, ENTRIES], durable=False)
    assert kept[-1] == list(enumerate(ENTRIES + ENTRIES))
    assert hashed == [b"".join(ENTRIES)] * 2


def recording_hash(hashed: list[bytes]) -> type:
    """SHA-256 that notes the bytes it is given."""

    class Hash:
        def __init__(self, given: bytes = b"") -> None:
            self._inner = sha256()
            if given:
                self.update(given)

        def update(self, given: bytes) -> None:
            hashed.append(given)
            self._inner.update(given)

        def digest(self) -> bytes:
            return self._inner.digest()

    return Hash


def _rows(file: Path) -> list[tuple[int, bytes]]:
    with closing(sqlite3.connect(file)) as database:
        return database.execute("SELECT idx, body FROM entries ORDER BY idx").fetchall()


def test_verifying_hashes_as_many_entries_as_the_ledger_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bytes] = []
    monkeypatch.setattr(floors, "sha256", recording_hash(hashed))
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    assert verify_s(tmp_path / "file", ENTRIES, 16) > 0
    assert hashed == ENTRIES + ENTRIES + ENTRIES[:2]


@pytest.mark.parametrize(("num", "num_levels"), [(256, 1), (257, 2), (600, 2)])
def test_tiles_of_every_level_are_read_where_the_ledger_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num: int, num_levels: int
) -> None:
    log = open_ledger(tmp_path / "log", origin="htfi.example/floor", durable=False)
    log.append([b"entry"] * num)
    log.close()
    read: list[Any] = []
    connect = sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, query: str, values: Any = ()) -> Any:  # type: ignore[override]
            read.append(super().execute(query, values).fetchone())
            return super().execute(query, values)

    monkeypatch.setattr(
        floors.sqlite3, "connect", lambda *args, **more: connect(*args, factory=Watched, **more)
    )
    times = tile_read_times(tmp_path / "log" / DATABASE, [0, num - 1], num)
    assert len(times) == 2
    assert len(read) == 2 * num_levels
    assert None not in read


def test_looking_up_takes_time() -> None:
    assert lookup_s(["a text", "another"], ENTRIES[:2]) > 0


def test_encoder_products_are_those_of_its_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    of = encoder_shape()
    session = onnxruntime.InferenceSession(encoder_floor._graph(of), providers=["CPUExecutionProvider"])
    assert len(session.get_outputs()) == 4 * of.num_layers
    hidden, inner = of.hidden_size, of.intermediate_size
    rows = {f"rows_{size}": np.full((2, size), 129, np.uint8) for size in (hidden, inner)}
    found = session.run(None, rows)
    widths = [array.shape for array in nonempty(found)]
    assert widths == of.num_layers * [(2, 3 * hidden), (2, hidden), (2, inner), (2, hidden)]
    weight = np.random.Generator(np.random.PCG64(0)).integers(-63, 64, (hidden, 3 * hidden), np.int8)
    assert np.array_equal(found[0][0], weight.sum(axis=0).astype(np.float32))


def test_rows_of_the_news_bench_have_floors_beside_what_the_encoder_and_the_cache_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    what = "products"
    measured = EncoderFloors(
        Floor(900.0, what), Floor(0.45, what), Floor(800.0, what), Floor(1250.0, what), Floor(2500.0, what)
    )
    monkeypatch.setattr(news, "available_cores", lambda: [1, 0])
    run = ThroughputRun(
        4.5, 9.0, 1.8, 2.7, 3.0, 8.0, 0.25, 500.0, 625.0, 600.0, 20.0, 1.0, float("nan"), float("nan")
    )
    rows = {row["what"]: row for row in news._rows([run], measured)}
    assert rows["one by one, one core"]["× floor"] == 5.0
    assert rows["one by one, 2 cores"]["× floor"] == 4.0
    assert rows["one by one, 2 cores"]["p99 ms"] == 2.7
    assert rows["of these the headline alone, 75%"]["p50 ms"] == 3.0
    assert rows["of these with passages of the body, 25%"]["p50 ms"] == 8.0
    assert rows["in batches, one core"]["× floor"] == 2.5
    assert rows["in batches, all cores"]["× floor"] == 4.0
    assert rows["read before, from the cache"]["× floor"] == 20.0
    stages = [{"sanitise": 3.0, "encode, one by one": 1800.0, "encode, in batches": 1600.0}]
    found = news._stage_rows(stages, measured)
    assert [row.get("× floor") for row in found] == [None, 2.0, 2.0]


def test_one_core_is_for_the_block_alone() -> None:
    before = available_cores()
    with on_one_core():
        assert len(available_cores()) == 1
    assert available_cores() == before
