"""The sample's mapping and the intake agree: each row is an event; one open that the origin has wrong is left out."""

import json
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest

from htfi.domain.events import QuarantinedRow
from htfi.domain.time import NS_PER_S, format_ns
from htfi.pipeline.intake.cells import RepairedBar
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec
from htfi.sample import MAPPING

MOST_ROWS = 5_000
SPECS = [SourceSpec(**source) for source in tomllib.loads(MAPPING.read_text(encoding="utf-8"))["source"]]


def rows_of(spec: SourceSpec) -> Iterator[dict[str, Any]]:
    file = MAPPING.parent / spec.path
    if file.suffix == ".jsonl":
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())
    else:
        yield from pq.read_table(file).slice(0, MOST_ROWS).to_pylist()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_rows_are_events_known_in_order(spec: SourceSpec) -> None:
    parser = RowParser(spec, spec.symbol, sample=list(islice(rows_of(spec), 10)))
    found = [parser.parse(row, number) for number, row in enumerate(rows_of(spec), 1)]
    events = [item for item in found if item is not None and not isinstance(item, QuarantinedRow)]
    refused = [(item.source, item.row, item.reason) for item in found if isinstance(item, QuarantinedRow)]
    repaired = [(item.source, item.row) for item in found if isinstance(item, RepairedBar)]
    assert refused == []
    assert repaired == ([("vix", 26)] if spec.name == "vix" else [])
    assert len(events) + len(refused) == len(found) > 20
    times = [event.available_at_ns for event in events]
    assert times == sorted(times)


@pytest.mark.parametrize("name", ["spx", "vix"])
def test_a_days_bar_is_known_at_a_quarter_past_four_in_new_york(name: str) -> None:
    (spec,) = (spec for spec in SPECS if spec.name == name)
    parser = RowParser(spec, spec.symbol)
    events = [parser.parse(row, number) for number, row in enumerate(rows_of(spec), 1)]
    moments = [
        datetime.fromtimestamp(item.available_at_ns // NS_PER_S, UTC)
        for item in events
        if not isinstance(item, QuarantinedRow) and item
    ]
    clock = {moment.astimezone(ZoneInfo("America/New_York")).strftime("%H:%M") for moment in moments}
    assert clock == {"16:15"}
    assert {moment.strftime("%H:%M") for moment in moments} == {"20:15", "21:15"}  # summer and winter


def test_the_cut_of_22_january_2008_is_known_before_that_days_close() -> None:
    (spec,) = (spec for spec in SPECS if spec.name == "headlines")
    parser = RowParser(spec, "")
    (row,) = (row for row in rows_of(spec) if row["id"] == "fomc-2008-01-22")
    event = parser.parse(row, 1)
    assert event is not None
    assert not isinstance(event, QuarantinedRow)
    assert format_ns(event.available_at_ns) == "2008-01-22T13:30:00Z"
