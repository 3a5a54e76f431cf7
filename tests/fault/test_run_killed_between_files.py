"""SIGKILL at random instants, half of them between a release and the files made from it: the run resumed ends as if
nothing had happened.
"""

import random
import signal
import time
from pathlib import Path

import pytest

from htfi.wiring.ledger import open_ledger_readonly
from killable_run import KillableRuns, RunOutcome, outcome

POINTS = ("receipt", "lines", "table", "outputs")


def command(prices: Path, folder: Path) -> tuple[object, ...]:
    return ("run", prices, "--out", folder, "--plain", "--no-report", "--outputs", "jsonl,parquet")


@pytest.fixture(scope="module")
def whole(
    few_prices: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunOutcome, float]:
    """What an undisturbed run leaves, and its seconds."""
    folder = tmp_path_factory.mktemp("whole")
    runs.import_what_is_needed(*command(few_prices, tmp_path_factory.mktemp("first")))
    began_s = time.perf_counter()
    assert runs.run(*command(few_prices, folder)) == 0
    took_s = time.perf_counter() - began_s
    left = outcome(folder)
    assert left.size > 300
    return left, took_s


def every_line_is_recorded(folder: Path) -> None:
    """What was released when the run was killed is in the ledger."""
    journal = folder / "decisions.jsonl"
    if not journal.exists() or not (folder / "ledger.db").exists():
        return
    ledger = open_ledger_readonly(folder)
    try:
        assert journal.read_bytes().count(b"\n") <= ledger.size
    finally:
        ledger.close()


@pytest.mark.slow
@pytest.mark.parametrize(("num_kills", "seed"), [(5, 4), pytest.param(300, 5, marks=pytest.mark.slow)])
def test_killed_at_any_instant_a_run_ends_with_the_same_files(
    few_prices: Path,
    runs: KillableRuns,
    whole: tuple[RunOutcome, float],
    tmp_path: Path,
    num_kills: int,
    seed: int,
) -> None:
    expected, took_s = whole
    ends = ends_of_killed_runs(few_prices, runs, took_s, tmp_path, num_kills=num_kills, seed=seed)
    assert ends == [expected] * len(ends)


def ends_of_killed_runs(
    prices: Path, runs: KillableRuns, took_s: float, tmp_path: Path, *, num_kills: int, seed: int
) -> list[RunOutcome]:
    """What runs leave that are killed several times each and then resumed to their end, for so many kills."""
    rng = random.Random(seed)
    ends: list[RunOutcome] = []
    num_timed = num_between = num_runs = 0
    while min(num_timed, num_between) < num_kills // 2:
        folder, words = tmp_path / f"run{num_runs}", command(prices, tmp_path / f"run{num_runs}")
        for _ in range(rng.randrange(3, 8)):
            if num_between <= num_timed:
                order = {"point": rng.choice(POINTS), "count": 1, "share": rng.random()}
                if order["point"] in ("receipt", "lines"):
                    order["count"] = rng.randrange(1, 12)
            else:
                order = {"after_s": rng.random() * took_s}
            status = runs.run(*words, **order)
            assert status in (0, -signal.SIGKILL), (seed, order)
            every_line_is_recorded(folder)
            if status == 0:
                break
            num_timed += "after_s" in order
            num_between += "point" in order
        assert runs.run(*words) == 0
        ends.append(outcome(folder))
        num_runs += 1
    return ends
