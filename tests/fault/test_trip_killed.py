"""A run that trades, killed while a breaker trips: nothing is released in between, and it goes on as its log says.

Between the trip and the last cancel lie: the entry of the governance log, the first withheld decision in the ledger,
its line, and the cancel in the order log. Each case is killed at one of these and continued.
"""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from htfi.adapters.keys.ed25519 import create_key
from htfi.adapters.stores.order_log import ORDERS
from htfi.apps.cli.main import cli
from htfi.domain.governance import BreakerState
from htfi.domain.orders import MassCancelRequest, NewOrder, TradingDisabled
from htfi.governance.control.entries import BreakerMoved, GovernanceEntry
from htfi.wiring import bundles
from htfi.wiring.control import governance_entries
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.order_record import order_events
from killable_run import KillableRuns

NUM_DAYS, NUM_LIVE = 60, 45
MadeOnce = Any


class Left(NamedTuple):
    """What a run has left in its folder."""

    entries: list[bytes]
    governance: list[GovernanceEntry]
    lines: list[bytes]
    orders: list[bytes]


def left_in(folder: Path) -> Left:
    log = open_ledger_readonly(folder)
    try:
        entries = list(log.entries())
    finally:
        log.close()
    texts = [(folder / name).read_bytes() for name in ("decisions.jsonl", ORDERS)]
    whole = [[line for line in text.splitlines(keepends=True) if line.endswith(b"\n")] for text in texts]
    return Left(entries, list(governance_entries(folder)), *whole)


def command(stage: Path, folder: Path) -> tuple[object, ...]:
    rules = ("--governance", stage / "G", "--outputs", "jsonl", "--plain", "--no-report")
    return ("trade", stage / "prices.csv", "--out", folder, *rules)


@pytest.fixture(scope="module")
def stage(runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prices of which AAA freezes, a governance folder whose breakers watch, and a run that has adopted its bundle."""
    folder = tmp_path_factory.mktemp("stage")
    rng, level = random.Random(5), {"AAA": 100.0, "BBB": 50.0}
    rows = ["ts,symbol,open,high,low,close,volume"]
    for day in range(NUM_DAYS):
        at = time.strftime("%Y-%m-%dT21:00:00Z", time.gmtime(1_262_304_000 + 86_400 * day))
        for symbol, last in level.items():
            close = last * (1 + rng.gauss(0.001, 0.01)) if symbol == "BBB" or day < NUM_LIVE else last
            rows.append(
                f"{at},{symbol},{last:.4f},{max(last, close):.4f},{min(last, close):.4f},{close:.4f},100"
            )
            level[symbol] = close
    (folder / "prices.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    key = folder / "officer.key"
    bundles.init_folder(folder / "G", 1, [("officer", str(create_key(key, "officer").verifier_key))])
    draft = folder / "draft.toml"
    bundles.write_draft(
        draft,
        bundles.draft_bundle(folder / "G", "officer", ['breakers.frozen_feed.scopes=["series"]']),
    )
    bundles.sign_bundle(draft, key)
    bundles.propose_bundle(folder / "G", draft)
    bundles.activate_bundle(folder / "G", draft)
    runs.import_what_is_needed(*command(folder, folder / "other"))
    assert runs.run(*command(folder, folder / "run"), point="ledger", count=3) == -9
    assert len(list(governance_entries(folder / "run"))) == 1
    return folder


@pytest.fixture(scope="module")
def whole(stage: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory) -> Left:
    folder = tmp_path_factory.mktemp("whole") / "run"
    shutil.copytree(stage / "run", folder)
    assert runs.run(*command(stage, folder)) == 0, runs.said
    found = left_in(folder)
    trip = first_trip(found)
    assert (trip.breaker, trip.scope) == ("frozen_feed", "series:AAA/1d")
    held = [json.loads(line) for line in found.lines if b'"withheld"' in line]
    assert len(held) > 3
    disabled = [one for one in order_events(folder) if isinstance(one, TradingDisabled | MassCancelRequest)]
    assert len(disabled) >= 2
    after = disabled[0].at_ns
    sent = [
        one.instrument for one in order_events(folder) if isinstance(one, NewOrder) and one.at_ns >= after
    ]
    assert "BBB" in sent
    assert "AAA" not in sent
    return found


def first_trip(found: Left) -> BreakerMoved:
    return next(
        one for one in found.governance if isinstance(one, BreakerMoved) and one.state is BreakerState.OPEN
    )


@pytest.mark.parametrize(
    ("point", "count", "num_changes"),
    [
        ("trip", 1, 0),
        ("ledger", 2, 1),
        ("lines", 1, 1),
        ("orders", 2, 1),
        pytest.param("ledger", 1, 0, marks=pytest.mark.slow),
        pytest.param("orders", 1, 1, marks=pytest.mark.slow),
        pytest.param("orders", 3, 1, marks=pytest.mark.slow),
        pytest.param("order is sent", 1, 1, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_while_a_breaker_trips_releases_nothing_and_ends_as_if_it_had_not_been(
    stage: Path, runs: KillableRuns, whole: Left, tmp_path: Path, point: str, count: int, num_changes: int
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stage / "run", folder)
    since = {} if point == "trip" else {"since": "trip"}
    assert runs.run(*command(stage, folder), point=point, count=count, **since) == -9
    found = left_in(folder)
    assert sum(isinstance(one, BreakerMoved) for one in found.governance) == num_changes
    for now, all_ in zip(found, whole, strict=True):
        assert now == all_[: len(now)]
    trip = first_trip(whole)
    later = [json.loads(line) for line in found.lines][trip.before :]
    assert [one for one in later if "withheld" not in one and one["decision"]["symbol"] == "AAA"] == []
    assert len(found.lines) <= trip.before + 2  # no point after the one that trips
    assert runs.run(*command(stage, folder)) == 0, runs.said
    assert left_in(folder) == whole
    checked = CliRunner().invoke(cli, ["ledger", "verify", str(folder), "--recompute"])
    assert checked.exit_code == 0, checked.exception
