"""Records keep their bytes and places whatever the chunks, and memory stays bounded whatever the line."""

import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.adapters.feeds.records import MAX_ROW_BYTES, CsvRecords, LineReader, Record


def read_lines(data: bytes, chunk: int, offset: int = 0, max_bytes: int = MAX_ROW_BYTES) -> list[Record]:
    stream = io.BytesIO(data)
    stream.seek(offset)
    lines = LineReader(stream.read, offset, max_bytes)
    found: list[Record] = []
    while (batch := lines.next(chunk)) is not None:
        found += batch
    return found + lines.finish()


def csv_records(data: bytes) -> list[bytes]:
    joiner = CsvRecords()
    return [content for _, content, _ in [*joiner.join(read_lines(data, 7)), *joiner.finish()]]


@given(
    st.binary(max_size=60).map(lambda data: data.replace(b"\r", b"\n")), st.integers(1, 20), st.integers(1, 8)
)
def test_lines_come_whole_with_their_places(data: bytes, chunk: int, max_bytes: int) -> None:
    found = read_lines(data, chunk, 0, max_bytes)
    parts = data.split(b"\n")
    expected = parts[:-1] if parts[-1] == b"" else parts
    assert [length for _, _, length in found] == [len(part) for part in expected]
    for offset, content, length in found:
        assert data[offset : offset + length].startswith(content)
        assert content == data[offset : offset + length] or length > max_bytes
    if found:
        middle = found[len(found) // 2][0]
        assert read_lines(data, chunk, middle, max_bytes) == found[len(found) // 2 :]


def test_a_line_of_fifty_megabytes_costs_no_memory() -> None:
    chunk = b"x" * (1 << 18)
    remaining = [b"\nok\n", *[chunk] * 200, b"ok\n"]
    lines = LineReader(lambda _: remaining.pop() if remaining else b"")
    tracemalloc.start()
    found: list[Record] = []
    while (batch := lines.next()) is not None:
        found += batch
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(content[:2], length) for _, content, length in found] == [
        (b"ok", 2), (b"xx", 200 << 18), (b"ok", 2),
    ]  # fmt: skip
    assert peak < 8_000_000


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'a,b\n"x\ny",2\nc,3\n', [b"a,b", b'"x\ny",2', b"c,3"]),
        (b'"he said ""so""\nand left",1\n', [b'"he said ""so""\nand left",1']),
        (b'a\n"open\nb\nc\n', [b"a", b'"open', b"b", b"c"]),
        (b"", []),
    ],
)
def test_quoted_line_feeds_belong_to_their_record(data: bytes, expected: list[bytes]) -> None:
    assert csv_records(data) == expected


def test_a_quote_that_never_closes_costs_its_own_line_only() -> None:
    filler = b"1,2\n" * (MAX_ROW_BYTES // 4)
    found = csv_records(b'"open\n' + filler + b"last\n")
    assert found[0] == b'"open'
    assert found[-1] == b"last"
    assert len(found) == 2 + MAX_ROW_BYTES // 4
