"""A run with a calendar says what its events did: in a line, in a file, and in the report, which reads that file."""

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.time import NS_PER_S, format_ns
from htfi.wiring.event_file import EventFile, read_event_facts

HOUR_NS = 3600 * NS_PER_S
START_NS = 1_704_672_000 * NS_PER_S  # a Monday
DAYS = 14
RELEASE_HOUR = 13


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two weeks of hours of EURUSD that falls by ten times the surprise in the hour of each day's release."""
    folder, rng, price = tmp_path_factory.mktemp("inputs"), np.random.default_rng(5), 1.1
    bars, lines = (
        ["start,end,symbol,interval,open,high,low,close"],
        ["time,currency,impact,event,actual,forecast"],
    )
    surprises = rng.normal(0.0, 50.0, DAYS)
    for hour in range(24 * DAYS):
        day, of_day = divmod(hour, 24)
        begin_ns = START_NS + hour * HOUR_NS
        move = 0.0005 * rng.standard_normal()
        if of_day == RELEASE_HOUR:
            move -= 2e-5 * surprises[day]
            lines.append(
                f"{format_ns(begin_ns + HOUR_NS // 2)},USD,High,Non-Farm <b>Payrolls,{100 + surprises[day]:.1f},100"
            )
        close = price * float(np.exp(move))
        bars.append(
            f"{format_ns(begin_ns)},{format_ns(begin_ns + HOUR_NS)},EURUSD,1h,{price},{max(price, close) * 1.0001},"
            f"{min(price, close) * 0.9999},{close}"
        )
        price = close
    (folder / "prices.csv").write_text("\n".join(bars) + "\n")
    (folder / "calendar.csv").write_text("\n".join(lines) + "\n")
    return folder


def run(inputs: Path, out: Path, calendar: str) -> str:
    asked = ["run", str(inputs / "prices.csv"), "--plain", "--out", str(out), "--calendar", calendar]
    done = CliRunner(env={"HTFI_PREFETCHING__BUDGET_MS": "0"}).invoke(cli, asked)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_report_shows_what_the_run_learnt_of_its_events(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = run(inputs, out, str(inputs / "calendar.csv"))
    found = read_event_facts(out)
    assert found is not None
    (kind,) = found.kinds
    assert kind.num_seen == DAYS
    assert kind.surprise is not None
    assert kind.surprise.move.value > 0.0  # of the dollar
    (series,) = kind.series
    assert series.series == "EURUSD/1h"
    assert series.surprise.move.high < 0.0
    assert f"× {kind.learnt_factor:.1f} ({DAYS} seen); {kind.surprise.num} surprises learnt from" in said
    page = (out / "report.html").read_text()
    assert "<h2>Scheduled events</h2>" in page
    assert f"<td>× {series.surprise.variance.value:.2f}</td>" in page
    assert "<b>Payrolls" not in page
    last = START_NS + (24 * (DAYS - 1) + RELEASE_HOUR) * HOUR_NS
    explained = CliRunner().invoke(cli, ["ledger", "explain", str(out), f"EURUSD/1h@{format_ns(last)}"])
    assert re.search(
        r": the next bar's band is × [1-9]\.\d\d for USD Non-Farm <b>Payrolls at 2024-01-21 13:30 \(× [1-9]",
        explained.output,
    ), explained.output
    saved = (out / "scheduled_events.json").read_bytes()
    (out / "scheduled_events.json").unlink()
    run(inputs, out, str(inputs / "calendar.csv"))
    assert (out / "scheduled_events.json").read_bytes() == saved  # from the state that the run saved
    changed = (out / "scheduled_events.json").read_text().replace("EURUSD/1h", "OTHER/1h")
    (out / "scheduled_events.json").write_text(changed)
    assert CliRunner().invoke(cli, ["report", str(out)]).exit_code == 0
    assert '<th class="part">OTHER/1h</th>' in (out / "report.html").read_text()  # read, not computed again
    (out / "scheduled_events.json").write_text("{")
    assert CliRunner().invoke(cli, ["report", str(out)]).exit_code == 0
    assert "Scheduled events" not in (out / "report.html").read_text()


def test_a_run_without_a_calendar_shows_none(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = run(inputs, out, "")
    assert "surprises learnt from" not in said
    assert "\n events " not in said
    assert not (out / "scheduled_events.json").exists()
    assert "Scheduled events" not in (out / "report.html").read_text()


def test_the_report_has_cells_of_bars_that_held_an_event(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(inputs, out, str(inputs / "calendar.csv"))
    found = read_event_facts(out)
    assert found is not None
    (times,) = found.times
    assert (times.owner, times.are_results, times.is_day) == ("USD", False, False)
    assert len(times.times_ns) == DAYS
    page = (out / "report.html").read_text()
    assert page.count('class="quiet">event</th>') == 1  # one bar ahead alone
    assert f"<th>high impact</th><td>{DAYS - 1}</td>" in page  # none of the first 20 bars has a forecast
    assert "<th>none</th>" in page
    assert "company&#x27;s results" not in page.split("Cells of events are")[1].split("</p>", 1)[1]
    without = EventFile(found.kinds)
    (out / "scheduled_events.json").write_bytes(msgspec.json.encode(without))
    assert CliRunner().invoke(cli, ["report", str(out)]).exit_code == 0
    assert "<th>high impact</th>" not in (out / "report.html").read_text()
