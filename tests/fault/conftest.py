"""What the fault tests share: a price file with a few bad rows, a way to start `htfi run`, and what it left behind."""

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import forked
from htfi.apps.cli.main import cli
from htfi.wiring.ledger import open_ledger_readonly
from killable_run import KillableRuns
from link_processes import Outcome, Stage, environment, finish, htfi, outcome, write_sources

OFTEN = {"HTFI_PIPELINE__SNAPSHOT_S": "0.05", "HTFI_PIPELINE__GROUP_MS": "1"}
Start = Callable[..., "subprocess.Popen[bytes]"]
RunHere = Callable[..., None]
MadeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def prices(made_once: MadeOnce) -> Path:
    """Six symbols, 130 days; about one row in a hundred goes to the quarantine."""
    return made_once("prices", _write_prices) / "prices.csv"


def _write_prices(folder: Path) -> None:
    rng = random.Random(11)
    level = {f"S{k}": 100.0 + k for k in range(6)}
    with (folder / "prices.csv").open("w") as out:
        out.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(130):
            at = time.strftime("%Y-%m-%dT21:00:00Z", time.gmtime(1_262_304_000 + 86_400 * day))
            for symbol, last in level.items():
                close = last * (1 + rng.gauss(0, 0.01))
                high, low = max(last, close) * 1.003, min(last, close) * 0.997
                level[symbol] = close
                if rng.random() < 0.01:
                    close = -1.0
                volume = rng.randrange(10**6)
                out.write(f"{at},{symbol},{last:.4f},{high:.4f},{low:.4f},{close:.4f},{volume}\n")


@pytest.fixture(scope="session")
def few_prices(prices: Path, made_once: MadeOnce) -> Path:
    """The first 70 days of `prices`, with one row more that goes to the quarantine."""

    def write(folder: Path) -> None:
        head, *rows = prices.read_text().splitlines(keepends=True)
        few = rows[: 6 * 70]
        few[-20] = few[-20].replace(",", ",-", 5).replace(",-", ",", 1)  # prices below zero
        (folder / "prices.csv").write_text(head + "".join(few))

    return made_once("few-prices", write) / "prices.csv"


@pytest.fixture(scope="session")
def runs() -> Iterator[KillableRuns]:
    """Runs `htfi` in children that fail where they are asked to."""
    with KillableRuns() as started:
        yield started


@pytest.fixture(scope="session")
def start() -> Start:
    """Starts `htfi run SOURCES --out FOLDER …` and returns the process."""

    def begin(
        sources: Sequence[object], folder: Path, *options: str, command: Sequence[str] = (), **pipes: int
    ) -> "subprocess.Popen[bytes]":
        return forked.Popen(
            [
                *(*command, *forked.HTFI, "run", *map(str, sources)),
                *("--out", str(folder), "--plain", "--no-report", *options),
            ],
            env={**os.environ, **OFTEN},
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **pipes},
        )

    return begin


@pytest.fixture(scope="session")
def run_here() -> RunHere:
    """The same command in this process, to its end. Raises what it raises."""

    def run(sources: Sequence[object], folder: Path, *options: str) -> None:
        words = ["run", *map(str, sources), "--out", str(folder), "--plain", "--no-report", *options]
        done = CliRunner(env=OFTEN).invoke(cli, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output

    return run


@pytest.fixture(scope="session")
def undisturbed(prices: Path, run_here: RunHere, made_once: MadeOnce) -> Path:
    """The folder of a run over `prices` that nothing disturbed. Only read it."""

    def make(folder: Path) -> None:
        run_here([prices], folder)

    return made_once("undisturbed", make)


@pytest.fixture(scope="session")
def same_outcome(undisturbed: Path) -> Callable[[Path], None]:
    """Asserts that a folder holds exactly what the undisturbed run left: root, released lines, quarantine."""

    def check(folder: Path) -> None:
        assert _root(folder) == _root(undisturbed)
        for name in ("decisions.jsonl", "quarantine.jsonl"):
            assert (folder / name).read_bytes() == (undisturbed / name).read_bytes()

    return check


def _root(folder: Path) -> tuple[int, str]:
    ledger = open_ledger_readonly(folder)
    try:
        return ledger.size, ledger.root().hex()
    finally:
        ledger.close()


@pytest.fixture(scope="session")
def wait_for_lines() -> Callable[[Path, "subprocess.Popen[bytes]", int], None]:
    """Waits until a file has so many lines, or the process has ended."""

    def wait(file: Path, run: "subprocess.Popen[bytes]", num_lines: int) -> None:
        while run.poll() is None:
            if file.exists() and file.read_bytes().count(b"\n") >= num_lines:
                return
            time.sleep(0.002)

    return wait


@pytest.fixture(scope="session")
def link_sources(made_once: MadeOnce) -> list[Path]:
    """Prices and headlines for an edge to read."""
    folder = made_once("link-sources", write_sources)
    return [folder / "prices.csv", folder / "news.jsonl"]


@pytest.fixture(scope="session")
def embedded(link_sources: list[Path], made_once: MadeOnce) -> Outcome:
    """What `htfi run` makes of them, with time enough for its target."""

    def make(folder: Path) -> None:
        with Stage(folder) as made:
            command = htfi("run", *link_sources, "--out", folder / "out", "--plain", "--no-report")
            finish(*made.start(command, "run", env=environment()))

    folder = made_once("embedded", make)
    left = outcome(folder / "out")
    assert sum(1 for tokens in left.tokens.values() if tokens) > 50
    assert not left.provisional
    return left


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Starts edges and clouds, and ends them with the test."""
    with Stage(tmp_path) as made:
        yield made
