"""One calendar for both uses: announcements whose views are prepared, and events that move the bands."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import to_ns
from htfi.narrative.calendar.announcements import AnnouncementKind
from htfi.narrative.calendar.scheduled import announcements_of, events_of
from htfi.wiring.calendar import open_calendar, scheduled_events
from htfi.wiring.calendar_reading import calendar_notices, read_calendar
from htfi.wiring.settings import Settings, override

CSV = """date,time,currency,impact,event,actual,forecast,previous
2019-03-08,13:30,USD,High,Non-Farm Employment Change,20K,180K,311K
2019-03-08,13:30,USD,High,Unemployment Rate,3.8%,3.9%,4.0%
2019-03-12,12:30,USD,High,CPI y/y,1.5%,1.6%,1.6%
2019-03-12,12:30,USD,High,CPI m/m,0.2%,0.2%,0.0%
2019-03-20,18:00,USD,High,FOMC Statement,,,
2019-03-20,18:00,USD,High,Federal Funds Rate,2.50%,2.50%,2.50%
2019-03-28,12:30,USD,High,Final GDP q/q,2.2%,2.4%,2.6%
2019-03-29,Tentative,USD,Low,Fruit Fly Census,oops,,
"""


def utc_ns(*parts: int) -> int:
    return to_ns(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    file = tmp_path / "vendor.toml"
    (tmp_path / "vendor.csv").write_text(CSV, encoding="utf-8")
    file.write_text('[[source]]\npath = "vendor.csv"\nzone = "UTC"\n', encoding="utf-8")
    return file


def test_a_vendors_calendar_gives_announcements_and_events(vendor: Path) -> None:
    calendar = open_calendar(str(vendor))
    assert [(one.kind, one.subject, one.consensus, one.level, one.basis) for one in calendar.releases] == [
        (AnnouncementKind.PAYROLLS, "us", 180.0, None, ""),
        (AnnouncementKind.CPI, "us", 0.2, None, "mom"),
        (AnnouncementKind.RATE, "fed", None, 2.5, ""),
        (AnnouncementKind.GDP, "us", 2.4, None, "annualised"),
    ]
    assert len(calendar.events) == 8
    assert scheduled_events(override(Settings(), "narrative", calendar=str(vendor))) == calendar.events
    assert scheduled_events(Settings()) == ()


def test_announcements_of_a_calendar_are_events_too() -> None:
    events = open_calendar("sample").events
    assert len(events) == 24
    assert {(event.kind, event.currency, event.impact) for event in events} == {
        ("fomc_decision", "USD", "high")
    }
    assert events_of(announcements_of(events))[0].time_ns == events[0].time_ns


def test_what_was_withdrawn_follows_from_a_rule_or_has_no_time_is_not_announced() -> None:
    plain = ScheduledEvent(time_ns=5, kind="us_cpi", name="CPI m/m", currency="USD", forecast=0.2)
    several = [
        ScheduledEvent(time_ns=5, kind="us_cpi", name="CPI m/m", currency="USD", is_exact=False),
        ScheduledEvent(time_ns=5, kind="us_cpi", name="CPI m/m", currency="USD", is_by_rule=True),
        ScheduledEvent(time_ns=5, kind="us_cpi", name="CPI m/m", currency="USD", withdrawn_ns=3),
        ScheduledEvent(time_ns=5, kind="us_ppi", name="PPI m/m", currency="USD"),
        ScheduledEvent(time_ns=5, kind="", name="?", currency="USD"),
    ]
    assert announcements_of(several) == ()
    assert len(announcements_of([plain, *several])) == 1


def test_a_companys_results_are_announced_under_its_symbol() -> None:
    results = ScheduledEvent(time_ns=5, kind="earnings", name="Q1", symbol="AAPL", forecast=2.1)
    (one,) = announcements_of([results])
    assert (one.kind, one.symbols, one.consensus) == (AnnouncementKind.EARNINGS, ("AAPL",), 2.1)


def test_a_release_that_a_file_and_a_source_state_stands_once(vendor: Path) -> None:
    more = '[[release]]\nid = "nfp"\nkind = "payrolls"\nsubject = "us"\nconsensus = 170\nat = 2019-03-08T13:30:00Z\n'
    vendor.write_text(vendor.read_text(encoding="utf-8") + more, encoding="utf-8")
    calendar = open_calendar(str(vendor))
    assert [one.id for one in calendar.releases if one.kind is AnnouncementKind.PAYROLLS] == ["nfp"]
    assert sum(event.kind == "us_payrolls" for event in calendar.events) == 1


def test_a_calendar_is_read_once_and_again_when_it_changes(vendor: Path) -> None:
    first = read_calendar(str(vendor))
    assert read_calendar(str(vendor)) is first
    (vendor.parent / "vendor.csv").write_text(CSV.replace("180K", "190K"), encoding="utf-8")
    second = read_calendar(str(vendor))
    assert second.calendar.digest != first.calendar.digest
    assert second.calendar.releases[0].consensus == 190.0


def test_a_run_says_which_rows_were_refused_and_that_a_zone_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "c.csv"
    rows = [
        f"2019-{month:02}-0{day} 05:30-08:00,USD,Unemployment Claims"
        for month in (1, 2, 12)
        for day in (3, 5, 7)
    ]
    file.write_text("\n".join(["time,currency,event", *rows, "soon,USD,CPI y/y"]), encoding="utf-8")
    assert calendar_notices(read_calendar(str(file))) == [
        f"calendar {file}: 1 of 10 rows refused, the first at line 11: 'soon' is not a time such as 2026-01-28 14:00; "
        'of another form state time_format, such as "%m/%d/%Y %H:%M"; `htfi calendar check` lists them'
    ]
    file.write_text("\n".join(["time,currency,event", *rows]).replace("-08:00", "Z"), encoding="utf-8")
    (line,) = calendar_notices(read_calendar(str(file)))
    assert "8 h before them" in line
    assert calendar_notices(read_calendar("sample")) == []


def test_check_prints_what_is_recognised_and_what_is_done(vendor: Path) -> None:
    done = CliRunner().invoke(cli, ["calendar", "check", str(vendor), "--on", "EURUSD", "--on", "GBPJPY"])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert "recognised      100.0% of 7 of high impact, 87.5% of all" in lines
    assert "views prepared  for 4 announcements" in lines
    (payrolls,) = (line for line in lines if "us_payrolls" in line)
    assert "EURUSD" in payrolls
    assert "GBPJPY" not in payrolls
    assert "band, views" in payrolls
    assert "line 9: actual 'oops' is not a figure" in done.output
    assert "not recognised, so each is learnt by its own words: 1 event" in done.output
    assert "it ended" in done.output


def test_check_writes_every_figure_as_json(vendor: Path, tmp_path: Path) -> None:
    out = tmp_path / "check.json"
    done = CliRunner().invoke(cli, ["calendar", "check", str(vendor), "--json", str(out)])
    assert (done.exit_code, done.output) == (0, "")
    found = json.loads(out.read_text(encoding="utf-8"))
    printed = CliRunner().invoke(cli, ["calendar", "check", str(vendor), "--json", "-"])
    assert json.loads(printed.output)["kinds"] == found["kinds"]
    assert (found["num_events"], found["num_high"], found["num_high_recognised"]) == (8, 7, 7)
    assert found["unknown_names"] == [
        {"currency": "USD", "name": "fruit fly census", "num": 1, "num_high": 0}
    ]
    assert found["files"][0]["num_rows"] == 8
    assert (found["first"], found["digest"]) == ("2019-03-08T13:30:00Z", open_calendar(str(vendor)).digest)
    kinds = {kind["kind"]: kind for kind in found["kinds"]}
    assert kinds["us_cpi"]["num_with_surprise"] == 2
    assert kinds["us_cpi"]["num_announced"] == 1


def test_check_takes_the_zone_of_a_file_without_a_mapping(vendor: Path) -> None:
    file = str(vendor.parent / "vendor.csv")
    refused = CliRunner().invoke(cli, ["calendar", "check", file])
    assert isinstance(refused.exception, InvalidInput)
    assert "has no zone" in str(refused.exception)
    taken = CliRunner().invoke(cli, ["calendar", "check", file, "--zone", "America/New_York", "--all"])
    assert taken.exit_code == 0
    assert CliRunner().invoke(cli, ["calendar", "check", str(vendor), "--zone", "UTC"]).exit_code == 2


def test_a_run_without_such_a_calendar_imports_none_of_its_libraries() -> None:
    program = (
        "import sys, htfi.wiring.run\n"
        "from htfi.wiring.calendar import open_calendar\n"
        "open_calendar('')\n"
        "assert not any(name.startswith('htfi.calendar') for name in sys.modules)\n"
        "open_calendar('sample')\n"
        "names = ('pandas', 'exchange_calendars', 'icalendar', 'dateutil')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
