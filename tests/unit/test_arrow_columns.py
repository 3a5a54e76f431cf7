"""Columns by arro3 and numpy: the same values as pyarrow has of the same cells."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from arro3.core import Array, ChunkedArray
from hypothesis import given
from hypothesis import strategies as st

from htfi.arrow import columns
from htfi.arrow.buffers import valid
from htfi.arrow.cells import MixedTypes, column_of, column_of_cells
from htfi.arrow.failures import DamagedFile
from htfi.arrow.table_files import read_arrow_table, read_csv_table
from htfi.arrow.texts import parsed_times
from htfi.library.pandas_columns import column_of_series, pandas_frame

NUMBERS = st.lists(st.none() | st.floats(allow_nan=False))


@given(cells=NUMBERS, begin=st.integers(0, 5))
def test_numbers_and_their_nulls_are_read_in_place_of_any_slice(cells, begin):
    column = Array(pa.array(cells, pa.float64()).slice(min(begin, len(cells))))
    kept = cells[begin:]
    assert valid(column).tolist() == [cell is not None for cell in kept]
    assert columns.null_mask(column).sum() == column.null_count
    found = [None if np.isnan(number) else number for number in columns.floats(column).tolist()]
    assert found == kept


@given(cells=st.lists(st.none() | st.text(max_size=4)), begin=st.integers(0, 5))
def test_texts_in_a_dictionary_are_the_same_texts(cells, begin):
    column = Array(pa.array(cells, pa.string()).slice(min(begin, len(cells))))
    kept = cells[begin:]
    coded = columns.encoded(column)
    words = [*columns.words(coded), None]
    assert [words[code] for code in columns.codes(coded).tolist()] == kept
    assert columns.text_lengths(column).tolist() == [len((cell or "").encode()) for cell in kept]
    assert columns.plain(coded).to_pylist() == kept


@given(values=st.lists(st.integers(-(2**62), 2**62), max_size=20), data=st.data())
def test_nulls_are_put_where_they_are_asked_for(values, data):
    absent = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), bool)
    made = columns.number_column(np.array(values, np.int64), absent)
    expected = [None if gone else value for value, gone in zip(values, absent.tolist(), strict=True)]
    assert made.to_pylist() == expected


def test_one_value_twice_in_a_dictionary_is_one_value():
    repeated = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 1], pa.int8()), ["A", "A", "B"])
    assert columns.distinct_codes(Array(repeated)).tolist() == [0, 0, 1, -1, 0]


def test_a_column_of_no_chunks_has_its_type():
    column = ChunkedArray(pa.chunked_array([], pa.timestamp("ns", "UTC")))
    assert pa.array(columns.one_chunk(column)).type == pa.timestamp("ns", "UTC")


UTC = dt.UTC
CELLS = {
    "texts": ["a", None, ""],
    "flags": [True, None, False],
    "whole": [1, None, -(2**63)],
    "numbers": [1, 2.5, None],
    "decimals": [decimal.Decimal("1.50"), None, decimal.Decimal("-20")],
    "naive times": [dt.datetime(2020, 1, 1, 9, 30, 0, 5), None, dt.datetime(1960, 1, 1)],  # noqa: DTZ001
    "instants": [dt.datetime(2020, 1, 1, 9, 30, tzinfo=UTC), None],
    "dates": [dt.date(2020, 1, 1), None, dt.date(1850, 1, 1)],
    "bytes": [b"\xff", None],
    "lists": [["A", "B"], [], ["C"]],
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_cells_have_the_values_that_pyarrow_gives_them(cells):
    made, expected = pa.array(column_of_cells(cells)), pa.array(cells)
    assert made.to_pylist() == expected.to_pylist()
    if not pa.types.is_decimal(expected.type):  # whose precision is the widest
        assert made.cast(expected.type).equals(expected)


def test_whole_numbers_beyond_64_bits_with_a_sign_are_kept():
    assert column_of_cells([2**64 - 1, 0, None]).to_pylist() == [2**64 - 1, 0, None]


@pytest.mark.parametrize("cells", [[1, "a"], [dt.date(2020, 1, 1), 5], [{"a": 1}], [2**70], [["A", 5]]])
def test_cells_of_several_types_are_no_column(cells):
    with pytest.raises(MixedTypes):
        column_of_cells(cells)


def test_arrays_of_numpy_keep_their_type_and_their_nan():
    assert np.isnan(pa.array(column_of(np.array([1.0, np.nan]))).to_pylist()[1])
    assert pa.array(column_of(np.array([1, 2], np.uint8))).type == pa.uint8()
    assert pa.array(column_of(np.array(["2020-01-01", "NaT"], "M8[ms]"))).to_pylist()[1] is None
    assert pa.array(column_of(np.array([True, False]))).to_pylist() == [True, False]


DAYS = pd.date_range("2020-01-01", periods=3)
SERIES = {
    "floats": pd.Series([1.0, np.nan, 3.0]),
    "single": pd.Series([1.0, np.nan, 3.0], dtype="float32"),
    "whole": pd.Series([1, 2, 3], dtype="int16"),
    "nullable": pd.Series([1, None, 3], dtype="Int64"),
    "nullable floats": pd.Series([1.5, None, 3], dtype="Float64"),
    "nullable flags": pd.Series([True, None, False], dtype="boolean"),
    "flags": pd.Series([True, False, True]),
    "times": pd.Series([*DAYS[:2], pd.NaT]),
    "zoned": pd.Series([*DAYS[:2], pd.NaT]).dt.tz_localize("Europe/Berlin"),
    "seconds": pd.Series(DAYS.astype("M8[s]")),
    "categories": pd.Series(["A", None, "B"], dtype="category"),
    "numbered categories": pd.Series([600000, 600001, 600000], dtype="category"),
    "strings": pd.Series(["A", None, "B"], dtype="string"),
    "objects": pd.Series(["A", None, np.nan], dtype=object),
    "dates": pd.Series(DAYS.date),
    "decimals": pd.Series([decimal.Decimal("1.5"), None, decimal.Decimal("2")]),
}


@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
def test_a_series_of_pandas_has_the_cells_that_pyarrow_gives_it(series):
    made, expected = pa.array(column_of_series(series)), pa.Array.from_pandas(series)
    assert made.to_pylist() == expected.to_pylist()
    assert made.null_count == expected.null_count


def test_a_series_of_several_types_becomes_texts():
    found = column_of_series(pd.Series([1, "a", None, dt.date(2020, 1, 1)], dtype=object))
    assert found.to_pylist() == ["1", "a", None, "2020-01-01"]


def test_a_frame_of_pandas_is_the_one_that_pyarrow_makes():
    table = pa.table(
        {
            "text": ["a", None],
            "whole": [1, 2],
            "gaps": [1, None],
            "number": [1.5, None],
            "flag": [True, False],
            "at": pa.array([1, None], pa.timestamp("ns", "UTC")),
            "day": [dt.date(2020, 1, 1), None],
            "name": pa.array(["x", "y"]).dictionary_encode().cast(pa.string()),
        }
    )
    made = pandas_frame({name: Array(table[name].combine_chunks()) for name in table.column_names})
    pd.testing.assert_frame_equal(made, table.to_pandas())


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2020-01-01", None, "1999-12-31"], pa.date32()),
        (["2020-01-01T10:30:00", "2020-01-01 10:30:00.25"], pa.timestamp("ns")),
        (["2020-01-01", "2020-01-01 10:30:00"], pa.timestamp("ns")),
        (["2020-01-01 10:30", None], pa.timestamp("ns")),
        (["2020-01-01T10:30:00Z", "2020-01-01 10:30:00+05:30", "2020-01-01T10:30:00.5-05"], pa.timestamp("ns", "UTC")),
    ],
)  # fmt: skip
def test_texts_that_are_times_are_those_that_pyarrow_reads(texts, kind):
    made = pa.array(parsed_times(Array(pa.array(texts))))
    assert made.type == kind
    assert made.equals(pa.array(texts).cast(kind))


@pytest.mark.parametrize(
    "texts",
    [
        ["2020-01-01", "soon"],
        ["2020-01-01", ""],
        ["20200101"],
        ["2020-1-1"],
        ["2020-01-01T10:30:00", "2020-01-01T10:30:00Z"],
        ["2020-01-01 10:30:00 UTC"],
        ["2020-01-01 25:00"],
        ["9999-01-01 10:30"],
        [None],
        [],
    ],
)
def test_texts_that_are_not_all_times_of_one_form_stay_texts(texts):
    column = Array(pa.array(texts, pa.string()))
    assert parsed_times(column) is column


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,,x\n2,\"q,r\",y\n3, 4 ,nan\n",
        "d,v,n\n2020-01-01,1.5,7\n2020-01-02,NA, 8\n",
        "t,f,e\n2020-01-01 10:00,true,\n2020-01-02 11:30,false,x\n",
        "\ufefft,v\n2020-01-01T10:00:00Z,1e3\n",
    ],
)  # fmt: skip
def test_a_csv_file_has_the_cells_that_pyarrow_reads(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    found, expected = pa.table(read_csv_table(path)), pyarrow.csv.read_csv(path)
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        kind = expected[name].type
        cells = [None if cell == "" else cell for cell in expected[name].to_pylist()]
        assert found[name].cast(kind).to_pylist() == cells


@pytest.mark.parametrize("text", ["", "a,b\n1\n"])
def test_a_csv_file_that_is_none_says_why(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DamagedFile):
        read_csv_table(tmp_path / "t.csv")


def test_what_is_no_arrow_file_says_why(tmp_path):
    (tmp_path / "t.arrow").write_bytes(b"ARROW1 and no more")
    with pytest.raises(DamagedFile, match="ARROW1"):
        read_arrow_table(tmp_path / "t.arrow")
