"""What many tests share: made-up decisions that look like a run's, reproducible from a seed."""

import fcntl
import gc
import os
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import numpy as np
import pytest

import whole_files
from examples import register_profiles
from htfi.domain.decision import (
    TICKS_PER_UNIT,
    BarCircumstances,
    Decision,
    DecisionInputs,
    FeatureDriver,
    FidelityPlan,
    Forecast,
    PolicyOutcome,
    PolicyVerdict,
    Rationale,
    Regime,
    Rung,
    encode_decision,
)
from htfi.domain.time import NS_PER_DAY, format_ns

register_profiles()
gc.set_threshold(50_000)  # at Python's own 700 a tenth of the time goes into looking for garbage
os.environ["XDG_STATE_HOME"] = mkdtemp(prefix="htfi-state-")  # no stop of this machine's user reaches a test
for _size in (
    "COLUMNS",
    "LINES",
):  # pytest-xdist sets them for its processes: commands would fold what they print
    os.environ.pop(_size, None)


def pytest_configure(config: pytest.Config) -> None:
    whole_files.register(config)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no collection of garbage needs to look through it again."""
    gc.freeze()


LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# standard normal quantiles at LEVELS
SCORES = (-2.326, -1.645, -1.282, -0.842, -0.524, -0.253, 0.0, 0.253, 0.524, 0.842, 1.282, 1.645, 2.326)
HORIZONS = (1, 5, 22)
START_NS = 1_192_132_800 * 10**9  # 2007-10-11T20:00:00Z

MakeDecisions = Callable[..., list[Decision]]


@pytest.fixture(scope="session")
def make_decisions() -> MakeDecisions:
    """`make_decisions(num=100, symbols=("SPX",), seed=0)`: daily Gaussian walks with honest forecasts.

    `withhold_every=n` keeps every n-th back; `sigma_ratio` makes every stated spread that much too wide.
    """

    def make(
        num: int = 100,
        symbols: Sequence[str] = ("SPX",),
        seed: int = 0,
        sigma_ratio: float = 1.0,
        withhold_every: int = 0,
        headline: str = "Fed cuts rates by 50 bp",
    ) -> list[Decision]:
        rng = np.random.default_rng(seed)
        decisions: list[Decision] = []
        prices = dict.fromkeys(symbols, 1500.0)
        for day in range(num):
            for symbol in symbols:
                sigma = 0.01 * (1 + 2 * (day % 50 > 40))
                prices[symbol] *= float(np.exp(sigma * rng.standard_normal()))
                withhold = withhold_every > 0 and len(decisions) % withhold_every == withhold_every - 1
                decisions.append(
                    _decision(symbol, day, prices[symbol], sigma * sigma_ratio, withhold, headline)
                )
        return decisions

    return make


MadeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """`made_once(name, make)`: a folder that `make` has filled, once for all processes of this run. Only read it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # each worker has its own below it
    shared = base / "shared"
    shared.mkdir(exist_ok=True)

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, is_made = shared / name, shared / f"{name}.made"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_made.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a process that failed to make it
                folder.mkdir()
                make(folder)
                is_made.touch()
        return folder

    return made


@pytest.fixture
def models_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that replays many readings: a model's folder is opened once, so it must not change meanwhile."""
    from htfi.wiring import verification

    monkeypatch.setattr(verification, "open_model", cache(verification.open_model))


@pytest.fixture
def write_journal() -> Callable[[Path, Sequence[Decision]], None]:
    """Records decisions and releases them, as a run leaves them in its folder: a ledger and a journal."""

    def write(folder: Path, decisions: Sequence[Decision]) -> None:
        from htfi.adapters.stores.decisions import DecisionJournal
        from htfi.wiring.ledger import open_ledger

        for name in ("ledger.db", "signing.key", "decisions.jsonl"):
            (folder / name).unlink(missing_ok=True)
        ledger = open_ledger(folder, origin="htfi.example/run", durable=False)
        journal = DecisionJournal(folder)
        entries = [encode_decision(decision) for decision in decisions]
        for start in range(0, len(entries), 512):
            group = entries[start : start + 512]
            for receipt, entry in zip(ledger.append(group), group, strict=True):
                journal.release(receipt, entry)
        journal.close()
        ledger.close()

    return write


@pytest.fixture
def read_journal() -> Callable[[Path], list[Any]]:
    """The whole lines of a folder's decisions.jsonl, as what they say they are."""

    def read(folder: Path) -> list[Any]:
        from htfi.adapters.stores.decisions import (
            JOURNAL,
            ReleasedLine,
            WithheldLine,
            is_withheld,
            whole_lines,
        )

        return [
            msgspec.json.decode(line, type=WithheldLine if is_withheld(line) else ReleasedLine)
            for line in whole_lines(folder / JOURNAL)
        ]

    return read


def _ticks(quantiles: list[list[float]]) -> list[list[int]]:
    return [[round(q * TICKS_PER_UNIT) for q in row] for row in quantiles]


def _decision(symbol: str, day: int, price: float, sigma: float, withhold: bool, headline: str) -> Decision:
    as_of_ns = START_NS + day * NS_PER_DAY
    quantiles = [[sigma * h**0.5 * z for z in SCORES] for h in HORIZONS]
    wide = [[1.3 * q for q in row] for row in quantiles]
    regime = list(Regime)[min(3, day % 50 // 14)]
    return Decision(
        id=f"{symbol}/1d@{format_ns(as_of_ns)}",
        symbol=symbol,
        interval="1d",
        as_of_ns=as_of_ns,
        last_price=price,
        inputs=DecisionInputs("ab" * 32, 3, {"prices.csv": (day * 3 + 1, day * 3 + 3)}),
        settings_digest="cd" * 32,
        models={"ewma": "1", "random_walk": "1"},
        plan=FidelityPlan(Rung.TEMPLATE, "no reader is attached", 50.0),
        regime=regime,
        features={"ewma_volatility": sigma},
        forecast=Forecast(
            HORIZONS,
            LEVELS,
            quantiles,
            {"ewma": _ticks(quantiles), "random_walk": _ticks(wide)},
            {"ewma": [[0.7] * 3, [0.6] * 3, [0.5] * 3], "random_walk": [[0.3] * 3, [0.4] * 3, [0.5] * 3]},
            [1.0, 1.0, 1.0],
        ),
        view=None,
        rationale=Rationale(
            f"Volatility is {sigma:.2%} a day. “{headline}”.",
            "volatility",
            {"sigma": f"{sigma:.2%}", "headline_a": headline},
            [FeatureDriver("ewma_volatility", sigma, 0.01, sigma / 0.01)],
            [f"news-{day}"] if day % 10 == 0 else [],
        ),
        circumstances=BarCircumstances(as_of_ns - NS_PER_DAY, as_of_ns, None, 0.0),
        verdict=PolicyVerdict(
            PolicyOutcome.WITHHOLD if withhold else PolicyOutcome.RELEASE, ["too wide"] if withhold else []
        ),
    )
