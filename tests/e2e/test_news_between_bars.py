"""A headline between two closes is answered when it comes: through the command, with the shipped encoder and models."""

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from msgspec import UNSET

import forked
from htfi.domain.decision import Decision, NewsTrigger
from htfi.domain.time import NS_PER_S
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly

Htfi = Callable[..., str]
DAY_S = 86_400
START_S = 1_709_251_200  # 2024-03-01 00:00 UTC
NUM_DAYS = 60
CUT = "Acme cuts its full-year profit guidance after weak sales in China"
RECALL = "Acme recalls two million cars"
ORDER = "Beta wins a record order worth 4 billion dollars, shares jump"
FLOOD_DAY = 50


class Item(NamedTuple):
    day: int
    seconds: float  # since the close that ended the day before
    text: str
    symbols: tuple[str, ...] = ("ACME",)


ITEMS = (
    Item(3, 3_600, "Acme files for bankruptcy protection after its loans are called"),  # nothing stands yet
    Item(40, 4 * 3_600, CUT),
    Item(40, 4 * 3_600, RECALL),  # at the same instant
    Item(42, 5 * 3_600, ORDER, ("BETA",)),
    Item(43, 3_600, "Gamma cuts its full-year profit guidance by a half", ("GAMMA",)),  # no series of the run
    Item(44, 3_600, "Marathon world record falls in Berlin"),
    Item(45, 3_600, "Acme loses its chief financial officer and delays its annual report"),
    Item(
        45, 3_610, "Regulator fines Acme 900 million dollars over safety reports"
    ),  # within the quiet interval
)
EVENTS = ("wins a record order", "cuts its profit forecast", "is fined by a regulator", "recalls its cars")


def stamp(at_s: float) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at_s))}.{round(at_s % 1 * 1e3):03d}Z"


def flood(num: int) -> list[Item]:
    """So many items within a minute, no two with the same words."""
    rng = random.Random(7)
    return [
        Item(
            FLOOD_DAY,
            7_200 + 60 * place / num,
            f"Acme {EVENTS[place % 4]} in {rng.randrange(10**6)} towns, says report {place}",
        )
        for place in range(num)
    ]


def write_sources(folder: Path, items: Sequence[Item]) -> list[str]:
    folder.mkdir(exist_ok=True)
    rng = random.Random(1)
    with (folder / "prices.csv").open("w") as rows:
        rows.write("start,symbol,interval,open,high,low,close\n")
        for symbol in ("ACME", "BETA"):
            close = 100.0
            for day in range(NUM_DAYS):
                before, close = close, close * (1 + rng.gauss(0, 0.01))
                high, low = max(before, close) + 0.3, min(before, close) - 0.3
                row = f"{symbol},1d,{before:.4f},{high:.4f},{low:.4f},{close:.4f}"
                rows.write(f"{stamp(START_S + DAY_S * day)},{row}\n")
    with (folder / "news.jsonl").open("w") as lines:
        for place, item in enumerate(items):
            at = stamp(START_S + DAY_S * item.day + item.seconds)
            line = {"ts": at, "id": f"n{place}", "headline": item.text, "symbols": item.symbols}
            lines.write(json.dumps({**line, "publisher": "Reuters"}) + "\n")
    return [str(folder / "prices.csv"), str(folder / "news.jsonl")]


def decisions_of(folder: Path) -> list[Decision]:
    ledger = open_ledger_readonly(folder)
    try:
        return [decode_entry(entry) for entry in ledger.entries()]
    finally:
        ledger.close()


def trigger_of(decision: Decision) -> NewsTrigger:
    assert decision.news_trigger is not UNSET
    return decision.news_trigger


@pytest.fixture(scope="module")
def folder(made_once: Callable[[str, Callable[[Path], object]], Path], htfi: Htfi) -> Path:
    def make(folder: Path) -> None:
        sources = write_sources(folder / "sources", (*ITEMS, *flood(400)))
        (folder / "summary.txt").write_text(htfi("run", *sources, "--plain", "--out", str(folder / "run")))

    return made_once("news-between-bars", make)


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    return folder / "run"


@pytest.fixture(scope="module")
def answers(run: Path) -> list[Decision]:
    return [one for one in decisions_of(run) if one.is_between_bars and not one.amends]


def at(answers: Sequence[Decision], day: int) -> list[Decision]:
    begin = (START_S + DAY_S * day) * NS_PER_S
    return [one for one in answers if begin <= one.as_of_ns < begin + DAY_S * NS_PER_S]


def test_items_of_one_instant_are_answered_at_that_instant_by_one_decision(
    run: Path, answers: list[Decision]
) -> None:
    (found,) = at(answers, 40)
    assert found.as_of_ns == (START_S + 40 * DAY_S + 4 * 3_600) * NS_PER_S
    assert [item.id for item in trigger_of(found).items] == ["n1", "n2"]
    assert all(item.reasons for item in trigger_of(found).items)
    standing = next(one for one in decisions_of(run) if one.id == trigger_of(found).replaces)
    assert standing.series == found.series == "ACME/1d"
    assert (standing.last_price, standing.circumstances.bar_end_ns) == (
        found.last_price,
        found.circumstances.bar_end_ns,
    )
    assert standing.forecast.expert_ticks == found.forecast.expert_ticks  # the numbers are those that stood
    assert found.view is not None
    assert found.has_own_reading


def test_only_what_matters_to_a_series_is_answered(answers: list[Decision]) -> None:
    assert at(answers, 3) == []  # no series has a decision yet
    assert [one.symbol for one in at(answers, 42)] == ["BETA"]
    assert at(answers, 43) == []  # of no series here
    assert at(answers, 44) == []  # a tag is no proof


def test_what_comes_in_the_quiet_interval_is_answered_when_it_ends(answers: list[Decision]) -> None:
    first, second = at(answers, 45)
    assert second.as_of_ns - first.as_of_ns == 30 * NS_PER_S
    assert [item.id for item in trigger_of(second).items] == ["n7"]


def test_a_flood_makes_few_decisions(answers: list[Decision]) -> None:
    found = at(answers, FLOOD_DAY)
    assert 1 <= len(found) <= 3
    gaps = [later.as_of_ns - one.as_of_ns for one, later in pairwise(found)]
    assert all(gap >= 30 * NS_PER_S for gap in gaps)


def test_every_decision_between_bars_is_derived_again(run: Path, answers: list[Decision], htfi: Htfi) -> None:
    assert len(answers) >= 4
    assert "each as it was recorded" in htfi("ledger", "verify", str(run), "--recompute")
    shown = " ".join(htfi("ledger", "show", str(run), answers[0].id).split())
    assert f"replaces {trigger_of(answers[0]).replaces}" in shown
    audited = htfi("ledger", "audit", str(run), answers[0].id)
    assert "Why it was made between two bars" in audited
    traced = [one.id for one in answers if one.view is not None and one.view.trace is not None]
    assert "replayed" in htfi("ledger", "replay", str(run), traced[0])


def test_the_table_and_the_summary_know_the_trigger(
    folder: Path, run: Path, answers: list[Decision], htfi: Htfi
) -> None:
    table = pq.read_table(run / "decisions.parquet", columns=["id", "trigger", "amends"]).to_pylist()
    named = {row["id"] for row in table if row["trigger"] == "news" and row["amends"] is None}
    assert named == {one.id for one in answers}
    assert f"{len(answers)} decisions between bars, because of news" in (folder / "summary.txt").read_text()
    htfi("report", str(run))
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Answered between bars" in page
    assert "too few" in page


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [(20, 90), (20, 60, 90)])
def test_a_run_killed_between_items_ends_with_the_same_entries(
    htfi: Htfi, tmp_path: Path, cuts: tuple[int, ...]
) -> None:
    sources = write_sources(tmp_path / "sources", ITEMS)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    htfi("run", *sources, "--plain", "--no-report", "--out", str(whole))
    words = [*forked.HTFI, "run", *sources, "--plain", "--no-report", "--out", str(killed)]
    settings = tmp_path / "often.toml"
    settings.write_text("[pipeline]\nsnapshot_s = 0.001\n")
    words += ["--settings", str(settings)]
    ended: list[int] = []
    for num_lines in cuts:
        started = forked.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = killed / "decisions.jsonl"
        while started.poll() is None and (
            not journal.exists() or journal.read_bytes().count(b"\n") < num_lines
        ):
            time.sleep(0.002)
        started.send_signal(signal.SIGKILL)
        ended.append(started.wait(timeout=60))
    assert ended[0] == -signal.SIGKILL
    done = forked.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    expected = (whole / "decisions.jsonl").read_bytes()
    assert expected.count(b'"trigger":"news"') >= 4
    assert (killed / "decisions.jsonl").read_bytes() == expected
