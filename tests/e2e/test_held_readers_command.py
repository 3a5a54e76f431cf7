"""Readers held during a run with the shipped models: by a breaker that trips, then by people; all of it is verified."""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from htfi.adapters.keys.ed25519 import create_key
from htfi.domain.decision import Decision, PolicyOutcome, Rung
from htfi.domain.governance import BreakerState
from htfi.domain.plan import PlanReason
from htfi.governance.control.entries import BreakerMoved, Stopped
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring import bundles
from htfi.wiring.control import governance_entries
from htfi.wiring.ledger import open_ledger_readonly

pytestmark = pytest.mark.slow
Htfi = Callable[..., str]
MadeOnce = Any
DAY_S, START_S = 86_400, 1_709_251_200  # 2024-03-01 00:00 UTC
FIRST_NEWS, NUM_MIXED = 30, 20
FIRST_LEG, SECOND_LEG, NUM_DAYS = 90, 95, 100  # days in the file when the run is started, and started again
UP = ("wins a record order worth 4 billion dollars", "raises its full-year profit forecast",
      "beats profit expectations for the quarter", "gets approval for its new engine")  # fmt: skip
DOWN = ("cuts its full-year profit guidance", "recalls two million cars",
        "is fined 900 million dollars by a regulator", "loses its largest customer")  # fmt: skip
SETTINGS = """[scheduling]
min_influence = 0.0
high_divergence = 1.0
[narrative]
symbol_names = {ACME = "Acme", BETA = "Beta"}
"""
# A breaker that allows the most false alarms, so that headlines which are all bad trip it soon; it cools down in a day.
BREAKERS = (
    "breakers.views_shift.false_alarms_a_year=1000.0",
    "breakers.views_shift.cool_down_minutes=1440.0",
    "breakers.views_shift.half_open_observations=3",
    "breakers.confidence_apart.is_on=false",
)


def stamp(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def write_inputs(folder: Path, num_days: int) -> None:
    """Bars of two symbols, and a headline a day: up and down at first, then all of them down."""
    rng, last = random.Random(4), {"ACME": 100.0, "BETA": 50.0}
    rows, items = ["ts,symbol,open,high,low,close,volume"], list[str]()
    for day in range(num_days):
        for symbol, before in last.items():
            close = before * (1 + rng.gauss(0, 0.01))
            high, low = max(before, close) * 1.002, min(before, close) * 0.998
            rows.append(
                f"{stamp(START_S + DAY_S * day)},{symbol},{before:.4f},{high:.4f},{low:.4f},{close:.4f},1000"
            )
            last[symbol] = close
        number = day - FIRST_NEWS
        if number >= 0:
            name = ("Acme", "Beta")[number % 2]
            words = UP if number < NUM_MIXED and number // 2 % 2 else DOWN
            headline = f"{name} {words[rng.randrange(4)]} in region {number}"
            at = stamp(START_S + DAY_S * day + 5 * 3_600)
            item = {
                "time": at,
                "id": f"n{number}",
                "source": "wire",
                "headline": headline,
                "symbols": [name.upper()],
            }
            items.append(json.dumps(item))
    (folder / "prices.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "news.jsonl").write_text("\n".join(items) + "\n", encoding="utf-8")


def decisions_of(run: Path) -> list[Decision]:
    log = open_ledger_readonly(run)
    try:
        return [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


def run_on(htfi: Htfi, folder: Path) -> None:
    """The run of a folder, to the end of its files."""
    htfi(
        "run", str(folder / "prices.csv"), str(folder / "news.jsonl"), "--settings", str(folder / "s.toml"),
        "--governance", str(folder / "G"), "--out", str(folder / "run"), "--plain", "--no-report", "--outputs", "none",
    )  # fmt: skip


@pytest.fixture(scope="module")
def governed(htfi: Htfi, made_once: MadeOnce) -> Path:
    """A run in three legs: a breaker trips and closes; the target is stopped; then the draft as well."""

    def make(folder: Path) -> None:
        (folder / "s.toml").write_text(SETTINGS)
        rules, key, draft = folder / "G", folder / "ann.key", folder / "bundle.toml"
        bundles.init_folder(rules, 1, [("ann", str(create_key(key, "ann").verifier_key))])
        bundles.write_draft(draft, bundles.draft_bundle(rules, "ann", BREAKERS))
        bundles.sign_bundle(draft, key)
        bundles.propose_bundle(rules, draft)
        bundles.activate_bundle(rules, draft)
        for num_days, stopped in ((FIRST_LEG, ""), (SECOND_LEG, "speculative"), (NUM_DAYS, "edge")):
            if stopped:
                htfi(
                    "stop",
                    str(folder / "run"),
                    "--scope",
                    f"model:reader.{stopped}",
                    "--by",
                    "Ann",
                    "--why",
                    "drill",
                )
            write_inputs(folder, num_days)
            run_on(htfi, folder)

    return made_once("held-readers", make) / "run"


def test_a_reader_whose_breaker_is_open_is_left_out_watched_and_trusted_again(governed: Path) -> None:
    moved = [one for one in governance_entries(governed) if isinstance(one, BreakerMoved)]
    states = [one.state for one in moved[:3]]
    assert states == [BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED]
    assert {one.scope.partition("@")[0] for one in moved} == {"model:mini-target-int8"}
    trip, half_open, closed = (one.before for one in moved[:3])
    decisions = decisions_of(governed)
    held = [one for one in decisions[trip:half_open] if PlanReason.HELD in one.plan.reasons]
    assert len(held) >= 2
    assert {one.plan.rung for one in held} == {Rung.EDGE}
    assert any(one.forecast.tilt is not None for one in held)
    watched = [
        one
        for one in decisions[half_open:closed]
        if one.view is not None and one.plan.rung is Rung.SPECULATIVE
    ]
    assert len(watched) >= 2
    assert [one.forecast.tilt for one in watched] == [None] * len(watched)
    at_close = decisions[
        closed
    ]  # read while the breaker watched, and set aside, though that reading closed it
    assert at_close.forecast.tilt is None
    assert at_close.verdict.outcome is PolicyOutcome.CAUTION


def test_below_a_stopped_target_the_draft_reads_and_below_both_the_facts(governed: Path) -> None:
    stops = [one.before for one in governance_entries(governed) if isinstance(one, Stopped)]
    decisions = decisions_of(governed)
    legs = [decisions[start:stop] for start, stop in pairwise([0, *stops, len(decisions)])]
    first, *held = (
        Counter(one.plan.rung for one in leg if one.view is not None and not one.amends) for leg in legs
    )
    second, third = held
    assert first[Rung.SPECULATIVE] > 20
    assert set(second) == {Rung.EDGE}
    assert set(third) == {Rung.TEMPLATE}
    assert min(second.total(), third.total()) >= 8
    assert {one.verdict.outcome for one in decisions[stops[0] :]} == {PolicyOutcome.RELEASE}


def test_all_of_it_is_derived_again_and_a_run_made_again_comes_to_the_same(
    governed: Path, htfi: Htfi, tmp_path: Path
) -> None:
    said = htfi("ledger", "verify", str(governed), "--recompute")
    assert "the quantiles, rationale and verdict of each follow from its record and settings.json" in said
    num = sum(isinstance(one, BreakerMoved) for one in governance_entries(governed))
    assert f"{num} changes of circuit breakers derived again from the decisions" in said
    again = tmp_path / "again"
    shutil.copytree(governed.parent, again)
    (again / "run" / "state.bin").unlink()  # so that the run is made again from its first item
    run_on(htfi, again)
    assert decisions_of(again / "run") == decisions_of(governed)
