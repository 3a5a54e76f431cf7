"""Columns of decisions.parquet are the same arrays as pyarrow makes of lists."""

from typing import Any

import pyarrow
import pytest
from arro3.core import DataType
from hypothesis import given
from hypothesis import strategies as st

from htfi.adapters.stores.decision_table import column_array

pa: Any = pyarrow
TEXTS = st.lists(st.none() | st.text(max_size=5))
COLUMNS = {
    "texts": (pa.string(), TEXTS),
    "names": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "lists of texts": (pa.list_(pa.string()), st.lists(st.lists(st.text(max_size=3), max_size=3))),
    "whole numbers": (pa.int64(), st.lists(st.integers(-(2**63), 2**63 - 1))),
    "times": (pa.timestamp("ns", "UTC"), st.lists(st.integers(-(2**62), 2**62))),
    "numbers, NaN where there is none": (pa.float64(), st.lists(st.floats())),
}


@pytest.mark.parametrize("column", COLUMNS)
@given(data=st.data())
def test_a_column_is_the_array_that_pyarrow_makes(column: str, data: st.DataObject) -> None:
    kind, values_of = COLUMNS[column]
    values = data.draw(values_of)
    made, expected = (
        pa.array(column_array(values, DataType.from_arrow(kind))),
        pa.array(values, kind, from_pandas=True),
    )
    made.validate(full=True)
    assert made.equals(expected)
    assert made.null_count == expected.null_count
