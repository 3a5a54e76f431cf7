"""The table that results come back as without pyarrow: pyarrow's names, and everybody's interface."""

import copy
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from arro3.core import Table

from htfi.library.arrow_table import ArrowTable

PLAIN = pa.table({"symbol": ["A", None, "C"], "close": [1.5, 2.5, None], "num": [1, 2, 3]})
TABLE = ArrowTable(Table.from_arrow(PLAIN))


def test_it_answers_as_a_table_of_pyarrow_does():
    assert (TABLE.num_rows, TABLE.num_columns, len(TABLE)) == (3, 3, 3)
    assert TABLE.column_names == PLAIN.column_names == TABLE.schema.names
    assert TABLE.column("close").to_pylist() == TABLE[1].to_pylist() == PLAIN["close"].to_pylist()
    assert TABLE.select(["num", "symbol"]).to_pydict() == PLAIN.select(["num", "symbol"]).to_pydict()
    assert TABLE.slice(1).to_pylist() == PLAIN.slice(1).to_pylist()
    assert TABLE.slice(1, 9).num_rows == TABLE.slice(1).num_rows == 2
    assert TABLE.slice(9).num_rows == 0
    assert TABLE.to_pylist() == PLAIN.to_pylist()
    assert [column.to_pylist() for column in TABLE][2] == [1, 2, 3]
    with pytest.raises(KeyError, match="volume"):
        TABLE.column("volume")


def test_other_libraries_take_it_as_their_own():
    assert pa.table(TABLE).equals(PLAIN)
    assert pl.DataFrame(TABLE).equals(pl.DataFrame(PLAIN))
    pd.testing.assert_frame_equal(TABLE.to_pandas(), PLAIN.to_pandas())


def test_it_can_be_copied_pickled_and_compared():
    assert copy.deepcopy(TABLE) == TABLE
    assert pickle.loads(pickle.dumps(TABLE)) == TABLE
    assert TABLE.slice(1) != TABLE
    empty = TABLE.slice(3)
    assert pickle.loads(pickle.dumps(empty)).column_names == PLAIN.column_names
    assert "symbol" in repr(TABLE)
