"""The mapping language of feeds: cells made of several columns, and macro values with their units."""

import json
from pathlib import Path

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import MacroAnnouncement, News, QuarantinedRow
from htfi.pipeline.intake.columns import require_layout
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec
from htfi.wiring.feeds import resolve, table_events

CSV = """ts,currency,event,actual,forecast
2019-03-08T13:30:00Z,USD,Payrolls,20K,180K
2019-03-12T12:30:00Z,USD,CPI,0.2%,
2019-03-20T18:00:00Z,USD,Rate,4-1/4,4-1/2
2019-03-21T18:00:00Z,EUR,Votes,0-9-0,1
"""
COLUMNS = 'series = \'currency + " " + event\'\nvalue = "actual - forecast"\n'


class Kept:
    def __init__(self) -> None:
        self.rows: list[QuarantinedRow] = []

    def set_aside(self, row: QuarantinedRow) -> None:
        self.rows.append(row)


def events_of(tmp_path: Path, name: str, data: bytes, columns: str, more: str = "") -> list[object]:
    (tmp_path / name).write_bytes(data)
    mapping = tmp_path / "map.toml"
    mapping.write_text(
        f'[[source]]\npath = "{name}"\nkind = "macro"\n{more}[source.columns]\n{columns}', encoding="utf-8"
    )
    (spec,) = resolve([], mapping)
    return list(table_events(spec, {}, tmp_path, Kept()))  # type: ignore[arg-type]


def test_a_series_and_its_surprise_are_made_of_a_calendars_columns(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        dict(zip(CSV.split("\n")[0].split(","), line.split(","), strict=True)) for line in CSV.split()[1:]
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "made.parquet")
    parquet = (tmp_path / "made.parquet").read_bytes()
    lines = "\n".join(map(json.dumps, rows)).encode()
    for name, data in (("c.csv", CSV.encode()), ("c.jsonl", lines), ("c.parquet", parquet)):
        events = events_of(tmp_path, name, data, COLUMNS)
        assert [(one.series, one.value) for one in events if isinstance(one, MacroAnnouncement)] == [
            ("USD Payrolls", -160_000.0),
            ("USD Rate", -0.25),
        ]


def test_only_the_wanted_series_are_kept_where_it_is_made(tmp_path: Path) -> None:
    (one,) = events_of(tmp_path, "c.csv", CSV.encode(), COLUMNS, 'only = ["USD Rate"]\n')
    assert isinstance(one, MacroAnnouncement)
    assert one.series == "USD Rate"


def test_a_macro_value_is_read_with_its_unit(tmp_path: Path) -> None:
    events = events_of(tmp_path, "c.csv", CSV.encode(), 'series = "event"\nvalue = "actual"\n')
    assert [one.value for one in events if isinstance(one, MacroAnnouncement)] == [20_000.0, 0.2, 4.25]


def test_a_headline_is_joined_of_columns() -> None:
    spec = SourceSpec("s", kind="news", columns={"headline": 'what + ": " + text'})
    layout = require_layout(["ts", "what", "text"], spec, "s", [])
    found = RowParser(spec, "s", layout).parse({"ts": "2019-03-08T13:30:00Z", "what": "CPI", "text": "up"}, 1)
    assert isinstance(found, News)
    assert found.headline == "CPI: up"


def test_a_figure_that_is_none_refuses_its_row() -> None:
    spec = SourceSpec("s", kind="macro", columns={"series": "event", "value": "actual - forecast"})
    layout = require_layout(["ts", "event", "actual", "forecast"], spec, "s", [])
    row = {"ts": "2019-03-08T13:30:00Z", "event": "CPI", "actual": "about 3", "forecast": "1"}
    found = RowParser(spec, "s", layout).parse(row, 1)
    assert isinstance(found, QuarantinedRow)
    assert (found.reason, "'about 3' is not a figure" in found.detail) == ("bad_number", True)


@pytest.mark.parametrize(
    ("kind", "columns", "said"),
    [
        ("macro", {"value": "was"}, "no column 'was' for value"),
        (
            "macro",
            {"value": "actual -"},
            "no column 'actual -' for value: its columns are ts, event, actual; as an",
        ),
        ("macro", {"value": "actual - was"}, "no column 'was' for value"),
        ("macro", {"value": 'actual + " "'}, "a figure is needed: compute it from columns"),
        ("macro", {"series": "actual - actual"}, 'a text is needed: join with + " " +'),
        ("trade", {"price": "actual * 1"}, "price = 'actual * 1'"),
    ],
)
def test_an_expression_that_does_not_fit_stops_the_start(
    kind: str, columns: dict[str, str], said: str
) -> None:
    spec = SourceSpec("s", kind=kind, columns=columns)
    with pytest.raises(InvalidInput) as error:
        require_layout(["ts", "event", "actual"], spec, "file.csv", [])
    assert said in str(error.value)
    assert str(error.value).startswith("file.csv: ")
