"""Rows in = events + rejections, and the bytes of a rejected row are in the quarantine, whatever a file holds."""

import gzip
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.events import QuarantinedRow, Trade
from htfi.domain.time import SystemClock
from htfi.pipeline.intake.quarantine_reasons import MAX_RAW_CHARS
from htfi.wiring.feeds import open_feed, resolve

GOOD = {
    ".csv": b"2013-10-07T14:00:00Z,A,1.5,n",
    ".tsv": b"2013-10-07T14:00:00Z\tA\t1.5\tn",
    ".jsonl": b'{"ts":"2013-10-07T14:00:00Z","symbol":"A","price":1.5}',
}
HEAD = {".csv": b"ts,symbol,price,note\n", ".tsv": b"ts\tsymbol\tprice\tnote\n", ".jsonl": b""}
PARTS = st.sampled_from(
    [
        b'"',
        b'""',
        b",",
        b"\t",
        b"\x00",
        b"\r",
        b"\xff",
        b"\xef\xbb\xbf",
        b"x" * 5000,
        b"{",
        b'\\"',
        "ü".encode(),
        b" ",
    ]
)
SPOILT = st.tuples(st.integers(0, 40), PARTS)


def read(folder: Path, name: str, content: bytes) -> tuple[list[int], list[QuarantinedRow]]:
    """The rows that became events, and the rejections."""
    (folder / name).write_bytes(content)
    quarantine = QuarantineFile(folder / "q.jsonl")
    specs = resolve([str(folder / name)], duplicates="keep")
    feed = open_feed(specs, inbox=folder, quarantine=quarantine, clock=SystemClock())
    rows = [item.row for item in feed if isinstance(item, Trade)]
    feed.close()
    quarantine.close()
    lines = (folder / "q.jsonl").read_bytes().splitlines()
    return rows, [msgspec.json.decode(line, type=QuarantinedRow) for line in lines]


@pytest.mark.parametrize("ending", GOOD)
@settings(
    max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    spoilt=st.lists(st.one_of(st.none(), SPOILT, st.lists(SPOILT, max_size=3)), min_size=1, max_size=30),
    zipped=st.booleans(),
)
def test_each_line_is_an_event_or_a_rejection_with_its_bytes(
    tmp_path: Path,
    ending: str,
    spoilt: list[tuple[int, bytes] | list[tuple[int, bytes]] | None],
    zipped: bool,
) -> None:
    lines: list[bytes] = []
    for change in spoilt:
        line = GOOD[ending]
        for at, part in [] if change is None else change if isinstance(change, list) else [change]:
            line = line[:at] + part + line[at:]
        lines.append(line)
    content = HEAD[ending] + b"\n".join(lines) + b"\n"
    name = f"t{ending}" + (".gz" if zipped else "")
    rows, rejections = read(tmp_path, name, gzip.compress(content) if zipped else content)
    assert sorted([*rows, *(one.row for one in rejections)]) == list(range(1, len(lines) + 1))
    for one in rejections:
        line = lines[one.row - 1]
        if one.sha256:
            assert (one.num_bytes, one.sha256) == (len(line), sha256(line).hexdigest())
            assert len(one.raw) <= MAX_RAW_CHARS
        else:
            assert one.raw.encode() == line


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
@pytest.mark.parametrize("last", [150, 199])
def test_two_stray_quotes_cost_two_rows(tmp_path: Path, ending: str, last: int) -> None:
    lines = [GOOD[ending]] * 200
    for place in (50, last):
        lines[place] = lines[place].replace(b"A", b'"A')
    rows, rejections = read(tmp_path, f"t{ending}", HEAD[ending] + b"\n".join(lines))
    assert len(rows) == 198
    assert [(one.row, one.reason, one.raw.encode()) for one in rejections] == [
        (51, "malformed", lines[50]), (last + 1, "malformed", lines[last]),
    ]  # fmt: skip
    assert all("multiline = true" in one.detail for one in rejections)


def test_where_fields_span_lines_a_stray_quote_is_kept_to_the_byte(tmp_path: Path) -> None:
    lines = [GOOD[".csv"]] * 200
    lines[50], lines[150] = (lines[50].replace(b"A", b'"A') for _ in range(2))
    (tmp_path / "t.csv").write_bytes(HEAD[".csv"] + b"\n".join(lines) + b"\n")
    (tmp_path / "m.toml").write_text('[[source]]\npath = "t.csv"\nmultiline = true\nduplicates = "keep"\n')
    quarantine = QuarantineFile(tmp_path / "q.jsonl")
    specs = resolve([], tmp_path / "m.toml")
    feed = open_feed(specs, inbox=tmp_path, quarantine=quarantine, clock=SystemClock())
    assert len(list(feed)) == 99
    feed.close()
    quarantine.close()
    (one,) = [
        msgspec.json.decode(line, type=QuarantinedRow)
        for line in (tmp_path / "q.jsonl").read_bytes().splitlines()
    ]
    swallowed = b"\n".join(lines[50:151])
    assert one.raw.encode() == swallowed or (one.num_bytes, one.sha256) == (
        len(swallowed), sha256(swallowed).hexdigest(),
    )  # fmt: skip
