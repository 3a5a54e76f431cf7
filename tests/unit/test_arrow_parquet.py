"""Parquet files by arro3: any columns from any row on, as pyarrow reads them; damaged footers; tables written."""

import datetime as dt
import io
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from htfi.arrow import parquet_file, thrift
from htfi.arrow.failures import DamagedFile
from htfi.arrow.parquet_file import ParquetFile
from htfi.arrow.parquet_footer import ParquetFooter
from htfi.arrow.streams import write_parquet

NUM_ROWS, GROUP_ROWS = 1000, 300
TABLE = pa.table(
    {
        "ts": pa.array(
            [1_600_000_000_000_000_000 + row for row in range(NUM_ROWS)], pa.timestamp("ns", "UTC")
        ),
        "venue": pa.array([("N", "Q", None)[row % 3] for row in range(NUM_ROWS)]),
        "code": pa.array([f"S{row % 7}" for row in range(NUM_ROWS)]).dictionary_encode(),
        "price": pa.array([None if row % 11 == 3 else row / 8 for row in range(NUM_ROWS)]),
        "names": [["A", "B"], [], ["C"], None] * (NUM_ROWS // 4),
        "where": [{"x": row, "y": {"z": str(row)}} for row in range(NUM_ROWS)],
        "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=row) for row in range(NUM_ROWS)]),
        "long": pa.array([str(row) for row in range(NUM_ROWS)], pa.large_string()),
    }
)


def write(path: Path, **options: object) -> Path:
    pq.write_table(TABLE, path, row_group_size=GROUP_ROWS, **options)
    return path


@pytest.fixture(params=["held", "streamed"])
def _form(request, monkeypatch):
    """A small file is held, a large one is not."""
    if request.param == "streamed":
        monkeypatch.setattr(parquet_file, "_MAX_HELD_BYTES", 0)


@pytest.mark.usefixtures("_form")
@pytest.mark.parametrize("stores_schema", [True, False])
@pytest.mark.parametrize("columns", [None, ["price"], ["long", "where", "ts"], ["names", "code"]])
@pytest.mark.parametrize("first_row", [0, 299, 300, 730, 999, 1000])
def test_any_columns_from_any_row_are_those_that_pyarrow_reads(tmp_path, first_row, columns, stores_schema):
    path = write(tmp_path / "t.parquet", store_schema=stores_schema)
    expected = pq.read_table(path)
    if columns is not None:
        expected = expected.select([name for name in expected.column_names if name in columns])
    with ParquetFile(path) as file:
        assert (file.num_rows, file.names) == (NUM_ROWS, TABLE.column_names)
        assert pa.schema(file.schema).equals(pq.read_schema(path))
        batches = [pa.record_batch(batch) for batch in file.batches(first_row, 128, columns)]
    assert max((batch.num_rows for batch in batches), default=0) <= 128
    found = pa.Table.from_batches(batches, expected.schema.remove_metadata())
    assert found.to_pylist() == expected.slice(first_row).to_pylist()


def test_row_groups_before_the_row_and_columns_that_are_not_asked_for_are_not_read(tmp_path):
    path = write(tmp_path / "t.parquet")
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(3)
    assert chunk.path_in_schema == "price"
    begin, data = chunk.dictionary_page_offset or chunk.data_page_offset, bytearray(path.read_bytes())
    data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)
    with ParquetFile(path) as file:
        assert sum(batch.num_rows for batch in file.batches(2 * GROUP_ROWS, 64)) == NUM_ROWS - 2 * GROUP_ROWS
        assert sum(batch.num_rows for batch in file.batches(0, 64, ["ts", "long"])) == NUM_ROWS
        with pytest.raises(DamagedFile):
            list(file.batches(GROUP_ROWS, 64, ["price"]))


@pytest.mark.usefixtures("_form")
def test_texts_that_are_held_once_are_the_same_texts(tmp_path):
    path = write(tmp_path / "t.parquet", store_schema=False)
    with ParquetFile(path) as file:
        batches = [
            pa.record_batch(batch) for batch in file.batches(0, 256, ["venue", "price"], coded=["venue"])
        ]
    found = pa.Table.from_batches(batches)
    assert found.schema.field("venue").type == pa.dictionary(pa.int32(), pa.string())
    assert found.column("venue").to_pylist() == TABLE.column("venue").to_pylist()
    assert found.column("price").equals(TABLE.column("price"))


def test_a_file_without_rows_has_its_columns(tmp_path):
    pq.write_table(TABLE.slice(0, 0), tmp_path / "t.parquet")
    with ParquetFile(tmp_path / "t.parquet") as file:
        assert list(file.batches()) == []
        assert pa.table(file.read_all()).schema.equals(TABLE.schema)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it has 0 bytes"),
        (b"PAR1", "it has 4 bytes"),
        (b"no parquet file at all", "does not begin and end with PAR1"),
        (b"PAR1\xff\xff\xff\x7fPAR1", "its footer is longer than the file"),
        (b"PAR1\x15\x02\x02\x00\x00\x00PAR1", "its footer cannot be read"),
    ],
)
def test_what_is_no_parquet_file_says_why(tmp_path, content, says):
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(DamagedFile, match=says) as refusal:
        ParquetFile(tmp_path / "t.parquet")
    assert "\n" not in str(refusal.value)


def test_a_damaged_footer_is_refused_or_describes_a_file_of_that_size(tmp_path):
    data = write(tmp_path / "t.parquet").read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, rng = data[begin:-8], random.Random(7)
    num_refused = 0
    for _ in range(400):
        damaged = bytearray(footer)
        for _ in range(rng.choice((1, 2, 4))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            found = ParquetFooter.parse(bytes(damaged), begin)
        except DamagedFile:
            num_refused += 1
        else:
            assert found.num_rows == sum(group.num_rows for group in found.groups)
    assert 200 < num_refused < 400


def test_a_footer_is_written_as_it_was_read():
    out = io.BytesIO()
    pq.write_table(TABLE, out)
    data = out.getvalue()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert thrift.parse(thrift.dump(thrift.parse(footer))) == thrift.parse(footer)
    selected, places = ParquetFooter.parse(footer, len(data)).selected(0, ["price", "names"], {"k": "v"})
    again = ParquetFooter.parse(selected, len(data))
    assert (again.names, again.notes, places) == (["price", "names"], {"k": "v"}, [3, 4])


def batches():
    with_text = TABLE.select(["ts", "code", "price", "names"])
    return with_text.schema, with_text.to_batches(max_chunksize=90)


def test_a_table_is_written_batch_by_batch(tmp_path):
    schema, made = batches()
    path = tmp_path / "t.parquet"
    with path.open("wb") as file:
        write_parquet(file, as_arro3(schema), map(as_arro3_batch, made), group_rows=400, notes={"k": "v"})
    found = pq.ParquetFile(path)
    assert found.schema_arrow.equals(schema)
    assert found.read().to_pylist() == pa.Table.from_batches(made).to_pylist()
    assert [found.metadata.row_group(group).num_rows for group in range(3)] == [400, 400, 200]
    assert found.metadata.row_group(0).column(0).compression == "ZSTD"
    assert found.metadata.metadata[b"k"] == b"v"


def test_what_making_a_batch_raises_is_raised(tmp_path):
    schema, made = batches()

    def failing():
        yield as_arro3_batch(made[0])
        raise KeyError("no entry")

    with (tmp_path / "t.parquet").open("wb") as file, pytest.raises(KeyError, match="no entry"):
        write_parquet(file, as_arro3(schema), failing(), group_rows=400, notes={})


def test_a_full_disk_is_the_error_of_the_system_and_nothing_else_is_said(capfd):
    class FullDisk(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    schema, made = batches()
    with pytest.raises(OSError, match="No space left"):
        write_parquet(FullDisk(), as_arro3(schema), map(as_arro3_batch, made), group_rows=400, notes={})
    assert capfd.readouterr().err == ""


def as_arro3(schema):
    from arro3.core import Schema

    return Schema.from_arrow(schema)


def as_arro3_batch(batch):
    from arro3.core import RecordBatch

    return RecordBatch.from_arrow(batch)
