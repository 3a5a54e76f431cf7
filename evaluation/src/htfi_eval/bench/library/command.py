"""`htfi bench library`: import, a first forecast, a backtest beside arch, the size of an install."""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi_eval.bench.library.tasks import SEED, make_closes
from htfi_eval.bench.processes import ONE_THREAD
from htfi_eval.commands import figures_options, quick_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

NUM_STARTS = 7
NUM_FIRST_BARS = 1_000
NUM_SYMBOLS, NUM_BARS = 100, 2_500
NUM_PEER_SYMBOLS = 3
_QUICK = (10, 120, 1)  # symbols and bars of a walk, and symbols of the peer
_CHECKOUT = Path(__file__).parents[5]
_EXAMPLE = _CHECKOUT / "examples" / "first_forecast.py"
_TASKS = "htfi_eval.bench.library.tasks"
_IMPORT = "import time; began_s = time.perf_counter(); import htfi; print(time.perf_counter() - began_s)"


@click.command("library", short_help="Import, first forecast, backtest, size of the install.")
@figures_options
@quick_option
@click.option("--install", is_flag=True, help="Also install into a new environment, and measure its size.")
def command(json_file: Path | None, history_file: Path | None, quick: bool, install: bool) -> None:
    """Measure the Python library, each figure in processes of its own with one thread.

    import_s and first_forecast_s are wall seconds, medians: from `import htfi` to its end, and to the quantiles of a
    frame of 1,000 bars that is in memory. backtest_forecasts_per_s counts forecasts of three horizons for each second
    of the processor, over 100 symbols of 2,500 daily bars; backtest_vs_arch is it over the rate of GARCH(1,1)-t of
    arch, fitted once a year, its forecasts of a year asked in one call, which is its fastest way;
    backtest_vs_arch_by_bar where it is asked bar by bar, as a run would.
    lines_to_first_forecast counts the statements of examples/first_forecast.py, which is run.

    \b
    Examples:
      htfi bench library
      htfi bench library --install --json build/goals/library.json
    """
    num_symbols, num_bars, num_peers = _QUICK if quick else (NUM_SYMBOLS, NUM_BARS, NUM_PEER_SYMBOLS)
    num_starts = 1 if quick else NUM_STARTS
    import_s = median(float(_run(["-c", _IMPORT])) for _ in range(num_starts))
    firsts = [_task("first_forecast", NUM_FIRST_BARS if not quick else num_bars) for _ in range(num_starts)]
    walk = _task("backtest", num_bars, num_symbols)
    walked_per_s = walk["num"] / walk["processor_s"]
    rows: list[dict[str, Any]] = [
        {"what": "import htfi", "median s": import_s},
        {"what": "DataFrame to quantiles, wall", "median s": median(one["wall_s"] for one in firsts)},
        {
            "what": "DataFrame to quantiles, processor",
            "median s": median(one["processor_s"] for one in firsts),
        },
        {"what": f"backtest, {num_symbols} symbols, {num_bars:,} bars", "forecasts/s": walked_per_s},
    ]
    metrics: dict[str, float | None] = {
        "import_s": import_s,
        "first_forecast_s": median(one["wall_s"] for one in firsts),
        "backtest_forecasts_per_s": walked_per_s,
        "lines_to_first_forecast": float(run_example()),
    }
    try:
        peer = _task("arch", NUM_BARS, num_peers)
    except DependencyUnavailable as error:
        rows.append({"what": f"arch: {error}"})
    else:
        metrics["backtest_vs_arch"] = walked_per_s / peer["yearly_per_s"]
        metrics["backtest_vs_arch_by_bar"] = walked_per_s / peer["one_by_one_per_s"]
        rows += [
            {"what": "arch, fitted yearly, a year at once", "forecasts/s": peer["yearly_per_s"]},
            {"what": "arch, fitted yearly, bar by bar", "forecasts/s": peer["one_by_one_per_s"]},
        ]
    if install:
        metrics["install_mb"], largest = install_sizes()
        rows += [{"what": f"installed: {name}", "MB": size} for name, size in largest]
    result = Evaluation(
        name="library",
        kind="bench",
        metrics=metrics,
        rows=rows,
        seed=SEED,
        data=f"{num_symbols} symbols of {num_bars:,} bars",
    )
    write_outputs(result, json_file=json_file, history_file=history_file)


def run_example() -> int:
    """Run the example of a first forecast, and count its statements. Raises: DependencyUnavailable, InvalidInput."""
    try:
        text = _EXAMPLE.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{_EXAMPLE} is missing: run this benchmark in a checkout") from error
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as folder:
        file = Path(folder) / "prices.csv"
        make_closes(60, 1).rename(columns={"S000": "close"}).to_csv(file, index_label="date")
        _run([str(_EXAMPLE), str(file)])
    return sum(not _is_text(statement) for statement in ast.parse(text).body)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def install_sizes(num_shown: int = 8) -> tuple[float, list[tuple[str, float]]]:
    """Megabytes that `pip install` of this checkout adds to a new environment, and its largest packages.

    Raises: DependencyUnavailable.
    """
    with tempfile.TemporaryDirectory(prefix="htfi-bench-install-") as parent:
        folder = Path(parent) / "venv"
        _run(["-m", "venv", str(folder)])
        (packages,) = folder.glob("lib/python*/site-packages")
        before = _sizes_mb(packages)
        python, limits = str(folder / "bin" / "python"), str(_CHECKOUT / "constraints.txt")
        pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "-c", limits]
        _run([*pip, str(_CHECKOUT)], python=python)
        after = _sizes_mb(packages)
    added = {name: size - before.get(name, 0.0) for name, size in after.items()}
    largest = sorted(added.items(), key=lambda one: -one[1])[:num_shown]
    return sum(added.values()), largest


def _sizes_mb(folder: Path) -> dict[str, float]:
    """The size of everything in a folder, by its names, in megabytes."""
    return {
        one.name: sum(file.stat().st_size for file in [one, *one.rglob("*")] if file.is_file()) / 1e6
        for one in folder.iterdir()
    }


def _task(name: str, *arguments: int) -> dict[str, float]:
    return json.loads(_run(["-m", _TASKS, name, *map(str, arguments)]))


def _run(arguments: Sequence[str], python: str = sys.executable) -> str:
    """The output of a process with one thread. Raises: DependencyUnavailable."""
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DependencyUnavailable(f"{' '.join(arguments[:3])} failed: {last}")
    return done.stdout
