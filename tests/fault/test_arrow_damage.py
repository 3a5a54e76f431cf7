"""Damaged files of Parquet and Arrow whose bytes make arro3 end its process: one line says so, and nothing ends."""

import base64
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import forked
import htfi
from htfi.adapters.feeds.parquet.rows import ParquetRows
from htfi.apps.cli.main import cli
from htfi.arrow import reader_process
from htfi.arrow.failures import DamagedFile
from htfi.arrow.parquet_file import ParquetFile
from htfi.arrow.reader_process import ProcessEnded
from htfi.arrow.table_files import read_arrow_table, read_parquet_table
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput

# Twelve rows of ts, price, symbol.
FILES = {
    "plain.parquet": (
        "eNptkjFLw0AUxy+XJoRQMJa+kJQMAe1hoS1WqVAomIJ0ihC0S7fWErBimzSJFbduOoiDs5/AwdG5n8Ev4+q7axzEhnf8jkt+"
        "/3uXJOhdtKAAAQQ+6EBKhJDV/DGTCBndRILrQSzoni4EV7VEEAg44NTBAgNUUB00KQ5LkpWn/tkeJRjrgeeDtokV19AT0HIa"
        "Oa2hh3EVqPyJk3Eo3ztU2e90eJoLro/gaQW81esFPuf5ZX+AdhnKW5qRlHcdCrbfJpaaTq7D2RhUzKpSi2ZpteQ/7zqOaAF0"
        "XFPiZDoJCRRxrqYPs6votkp8/oBp2Y7dZcTBsDZRDZv7gMvmh4TFMqbV6rw5oPzNGIhuTbUZsVDmmp5rmy2E+SZhsVfKPqWt"
        "LjVzt5i7eUtCXppL9iKzL/pPNUf278bmWjYtpiHIgRuPk8VdmDUmcdwYJ0l07y7DJJ1Gc/fopHnYbNldPOimyDF+4AB/jR8J"
        "Uk7v"
    ),
    "delta.parquet": (
        "eNoLcAwyFGUQvccERDqiEqJcomyibDIMDAxMQCzB2MDEwtPQ8OXbhNj/S2WFgUIPJrPMV/mhclCdk4Hhg2eTv1DNJKAQA8MP"
        "FUaGgQRAP+xjBCKQH4RgfmAGYtbv/OSaySEARBIgHIkADggAtHMKIxCB7ORDCzdGFh6IISAWB5jl6Bjg4xvsFkIsLcoi6WPK"
        "IMFWnJyRmpsoysYgyqLKJMFUUqwq5NMjKCMD8TcXUIy1oCgzOZVBlAfIZiuuzE3Kz1Fl8AEpEJOQlJG0UWOQARqmysYlCdIu"
        "ChQV62AGIjUOTxmgJ7hEmRhsNNkk1RgkgFpAirmAioUkoeaC1b9gBCK1CcxgDUIwDUxiUA08QA18kjDLwTr2MQKR2g8WsA4+"
        "kA6xBEmYJWLr2MQk1DiAFIOGQkFiUWFpaoluckGBbmJRUX65QllqUXFmfp6CkZmegZ6hpA3QKxDEIApMZgHANAsAxL1hJQ=="
    ),
    "snappy.parquet": (
        "eNptkkFLwzAUx1+zpZbitA5fSKVIwS1soLLpJgwKbiCeKgz1sptzDJyoq92ceJGdVMSjRz+BB4+ePfuFvPrSzYNoCfmXNL9f"
        "XpM0G/tlTGMTwxBthCxAoQDji/uhAXB02ueW9XEYcSvwty+TsXExThIBPfRXUaKDJpoeAMxVGPXSSPGH3Z0VBqStYyVEK9H6"
        "ANxIt+p8BqyMVXBaddCPbNVJtYTLv1SZUop6/jXPeK5W0yYfcyGFNjlBmj42Gs1Q597B7iEZFlH+Mti5STEGf7Ux7YZVkOag"
        "c9I9b6NJvjyTbDjIZ8OnBc9LCkGbxngU9zpdwFl6Nwc358f9szyEeoKQrucGCjySVcF0XM0jE1K8GdRUpKziqi4Qmd4bhyIo"
        "mq4CSbDG7Ck2WSIhXwzxbKg7pt6Nf1kmpuzslJ2WlMAjcaseU+qT/UHFkfuzsPhICaksCij4UTu+vOoO1zpRtNaO4/61P+rG"
        "g17/wt/YWi+tl92AfnTSYJOOuElX4xvQS05i"
    ),
    "table.arrow": (
        "eNpzDAryDzdkYPgPBC8YGBgEGECAi4GHgY2BlYEDyAICRhYgnwHI4wCSLFCSgYEZiCuA2ATKXwI0A6iYFWSGDFQMBNiAuLgy"
        "Nyk/ByTGAha/AFHLjK6WFYgLijKTU4G6OICYDSzKBHSXCJjPDnaJANSdjFzo+pmAuKQY5FYesAkcEHVw94aGOINFQP79AaRF"
        "oPp4GMSgPuYB28DAzMIgAaQMGKEKgCEhAZRhgYZJDzSseBgQgJ0BN0hAo5mgdAaa+Ak0fTC+CUwA6h4DJDXMaO5gQOIzovHh"
        "oCGvvQQomZCVD6YPhBSAaQX7QjDdoFkEpslV950f2bJIBzDFAaUFoDQheQmYOvzyLOC0yQBNGZA4lYCmCwUgVgFiDSDWQQo3"
        "R8cAH99gtxBi6f/g9AqLcxFw2uIB8iDhysJgAbWDBRrmP9DjixHVx8MlLwkA/eUILkMAA5Bpzg=="
    ),
}
ENDING = [  # a byte's place and its value, and what panics
    ("plain.parquet", 5, 2),  # a dictionary page is a data page
    ("plain.parquet", 81, 7),  # fewer nulls than rows
    ("plain.parquet", 160, 2),  # no levels
    ("plain.parquet", 177, 0),  # no words in a dictionary
    ("plain.parquet", 224, 77),  # numbers of 77 bits
    ("delta.parquet", 34, 0),
    ("delta.parquet", 206, 128),
    ("delta.parquet", 349, 31),
    ("delta.parquet", 357, 1),
    ("snappy.parquet", 173, 0),
    ("snappy.parquet", 224, 77),
    ("table.arrow", 313, 1),
    ("table.arrow", 337, 2),
    ("table.arrow", 424, 77),
    ("table.arrow", 852, 2),  # a batch of 2^34 bytes
    ("table.arrow", 876, 7),  # 30 GB are asked for
]
NUM_ROWS = 200_000


def stored(folder: Path, name: str, *changes: tuple[int, int]) -> Path:
    data = bytearray(zlib.decompress(base64.b64decode(FILES[name])))
    for place, value in changes:
        data[place] = value
    path = folder / name
    path.write_bytes(data)
    return path


def read(path: Path) -> list[object]:
    table = (read_arrow_table if path.suffix == ".arrow" else read_parquet_table)(path)
    return table.column("symbol").to_pylist()


def large(folder: Path) -> Path:
    """A file that is not held."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "large.parquet"
    pq.write_table(
        pa.table({"n": range(NUM_ROWS), "x": [0.5] * NUM_ROWS}), path, row_group_size=NUM_ROWS // 4,
        use_dictionary=False,
    )  # fmt: skip
    return path


def numbers(batches: object) -> list[int]:
    return [number for batch in batches for number in batch.column("n").to_pylist()]


def children() -> list[int]:
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(child) for child in found if int(child) not in forked.started()]


@pytest.mark.parametrize("name", FILES)
def test_the_stored_files_are_whole(tmp_path, name):
    assert read(stored(tmp_path, name)) == ["AAPL", "MSFT"] * 6


@pytest.mark.parametrize(("name", "place", "value"), ENDING)
def test_a_file_that_ends_its_reader_is_damaged(tmp_path, capfd, name, place, value):
    with pytest.raises(DamagedFile, match=r"^a page cannot be decoded$"):
        read(stored(tmp_path, name, (place, value)))
    assert capfd.readouterr() == ("", "")
    assert children() == []


COMMANDS = {
    "run": ("run", "{file}", "--out", "{out}"),
    "forecast": ("forecast", "{file}", "--symbol", "AAPL"),
    "fairness": ("audit", "fairness", "{file}", "--decision", "symbol", "--protected", "ts"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("change", [(177, 0), (224, 77)])
def test_each_command_says_it_in_one_line(tmp_path, command, change):
    file = stored(tmp_path, "plain.parquet", change)
    words = [word.format(file=file, out=tmp_path / "out") for word in COMMANDS[command]]
    result = CliRunner().invoke(cli, words)
    assert isinstance(result.exception, HtfiError), result.output
    assert "plain.parquet" in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.mark.parametrize("name", ["plain.parquet", "table.arrow"])
def test_a_notebook_goes_on(tmp_path, name):
    change = (177, 0) if name == "plain.parquet" else (337, 2)
    with pytest.raises(
        InvalidInput, match=rf"{name} is not a whole .* \(a page cannot be decoded\): fetch it again"
    ):
        htfi.forecast(stored(tmp_path, name, change))


def test_rows_before_the_damage_are_used(tmp_path):
    import pyarrow.parquet as pq

    data = bytearray(large(tmp_path).read_bytes())
    chunk = pq.ParquetFile(tmp_path / "large.parquet").metadata.row_group(2).column(0)
    data[chunk.data_page_offset : chunk.data_page_offset + 40] = bytes(40)
    (tmp_path / "large.parquet").write_bytes(data)
    rows = ParquetRows(tmp_path / "large.parquet")
    found: list[int] = []
    batches = (found.extend(numbers([batch])) for batch in rows.batches(0, 10_000, ["n"]))
    with pytest.raises(InvalidInput, match=r"large\.parquet: damaged after row \d+ \(.*\): fetch it again"):
        list(batches)
    assert found == list(range(NUM_ROWS // 2))


def test_a_reader_that_is_ended_from_outside_is_no_damage(tmp_path):
    rows = ParquetRows(large(tmp_path))
    batches = rows.batches(0, 1000, ["n", "x"])
    next(batches)
    os.kill(children()[0], signal.SIGKILL)
    with pytest.raises(DependencyUnavailable, match=r"after row \d+: the process .* ended from outside"):
        list(batches)
    assert children() == []


def test_batches_that_are_not_asked_for_hold_no_process(tmp_path):
    with ParquetFile(large(tmp_path)) as file:
        batches = file.batches(0, 1000)
        next(batches)
        assert len(children()) == 1
        batches.close()
        assert children() == []


def test_a_small_file_is_read_by_one_process(tmp_path, monkeypatch):
    started: list[object] = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        reader_process.subprocess, "Popen", lambda *args, **rest: started.append(args) or popen(*args, **rest)
    )
    with ParquetFile(stored(tmp_path, "plain.parquet")) as file:
        assert next(file.batches(0, 5)).num_rows == 5
        assert sum(batch.num_rows for batch in file.batches(4, 3, ["price"])) == 8
        (coded,) = file.batches(0, 20, ["symbol"], coded=["symbol"])
    assert str(coded.schema.field("symbol").type).startswith("arro3.core.DataType<Dictionary")
    assert len(started) == 1


def test_threads_read_side_by_side(tmp_path):
    with ParquetFile(large(tmp_path)) as file, ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: numbers(file.batches(50_000, 7_000)), range(3)))
    assert [one == list(range(50_000, NUM_ROWS)) for one in found] == [True] * 3


def test_a_forked_worker_reads_and_leaves_its_parents_reader_alone(tmp_path):
    path = large(tmp_path)
    with ParquetFile(path) as file:
        begun = file.batches(0, 1000)
        first = numbers([next(begun)])

        def work(out):
            try:
                next(begun)
            except ProcessEnded as error:
                out.put(str(error.strerror))
            out.put(numbers(file.batches(0, 50_000)) == list(range(NUM_ROWS)))

        context = multiprocessing.get_context("fork")
        out = context.SimpleQueue()
        worker = context.Process(target=work, args=(out,))
        worker.start()
        said, is_same = out.get(), out.get()
        worker.join()
        assert "forked" in said
        assert is_same
        assert first + numbers(begun) == list(range(NUM_ROWS))


def test_the_file_that_was_opened_is_read_though_another_takes_its_place(tmp_path):
    path = large(tmp_path)
    with ParquetFile(path) as file:
        stored(tmp_path, "plain.parquet").replace(path)
        assert numbers(file.batches(0, 50_000)) == list(range(NUM_ROWS))


def test_a_reader_that_does_not_start_is_one_line(tmp_path, monkeypatch):
    rows = ParquetRows(stored(tmp_path, "plain.parquet"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(DependencyUnavailable, match=r"plain\.parquet: .*No such file"):
        list(rows.batches(0, 10, ["symbol"]))
    monkeypatch.setattr(sys, "executable", str(stored(tmp_path, "table.arrow").rename(tmp_path / "python")))
    (tmp_path / "python").write_text("#!/bin/sh\necho not today >&2\n")
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(DependencyUnavailable, match=r"plain\.parquet: .*did not start: not today"):
        list(rows.batches(0, 10, ["symbol"]))


def test_in_a_program_that_is_not_python_itself_the_file_is_read_in_place(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/opt/app/server")
    assert [read(stored(tmp_path, name)) for name in FILES] == [["AAPL", "MSFT"] * 6] * len(FILES)


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
from pathlib import Path
from htfi.arrow.parquet_file import ParquetFile
file = ParquetFile(Path(sys.argv[1]))
batches = file.batches(0, 1000)
next(batches)
print(Path("/proc/self/task/{0}/children".format(__import__("os").getpid())).read_text(), flush=True)
if sys.argv[2] == "wait":
    import time
    time.sleep(60)
while True:
    for batch in file.batches(0, 100): pass
"""


def start_parent(path: Path, how: str) -> tuple["subprocess.Popen[bytes]", int]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, path, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def is_gone(child: int) -> bool:
    """Within ten seconds."""
    for _ in range(1000):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_the_reader_ends_with_a_process_that_is_killed(tmp_path):
    parent, child = start_parent(large(tmp_path), "wait")
    parent.kill()
    parent.communicate()
    assert is_gone(child)


def test_an_interruption_ends_both_and_the_reader_says_nothing(tmp_path):
    parent, child = start_parent(large(tmp_path), "go on")
    os.killpg(parent.pid, signal.SIGINT)
    try:
        _, said = parent.communicate(timeout=20)
    finally:
        parent.kill()
    assert parent.returncode == -signal.SIGINT
    assert said.decode().splitlines()[-1] == "KeyboardInterrupt"
    assert said.count(b"Traceback") == 1
    assert is_gone(child)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_whatever_is_changed_in_a_file_is_damage_or_is_read(tmp_path, name):
    rng = random.Random(18)
    size = len(zlib.decompress(base64.b64decode(FILES[name])))
    said: Counter[str] = Counter()
    for _ in range(500):
        changes = [(rng.randrange(size), rng.randrange(256)) for _ in range(rng.choice((1, 2, 4)))]
        try:
            read(stored(tmp_path, name, *changes))
        except DamagedFile as error:
            said[str(error)] += 1
        except KeyError:  # of another name
            said["renamed"] += 1
        else:
            said["read"] += 1
    assert said["a page cannot be decoded"] > 0
    assert said["read"] > 0
