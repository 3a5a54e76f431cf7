"""`htfi bench service`: answers and streams of `htfi serve` under load, its start, the size of its page."""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

import htfi
from htfi.domain.errors import DependencyUnavailable, require_extra
from htfi_eval.bench.processes import ONE_THREAD
from htfi_eval.bench.service.bus import NUM_DECISIONS, NUM_TICKS, NUM_TURNS, bus_rates, nats_server
from htfi_eval.bench.service.chat import NUM_A_TURN, NUM_CHAT_TURNS, chat_rows
from htfi_eval.bench.service.tenants import NUM_TURNS as NUM_TENANT_TURNS
from htfi_eval.bench.service.tenants import SECONDS as TENANT_SECONDS
from htfi_eval.bench.service.tenants import quiet_tenant_rows
from htfi_eval.commands import figures_options, quick_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

NUM_SERIES, NUM_HISTORY = 20, 60
NUM_CONNECTIONS, PER_SECOND, SECONDS = 200, 1_000.0, 10.0
NUM_SUBSCRIBERS, WHICH = 1_000, 100
NUM_POINTS, POINT_S = 20, 0.4  # decision points while subscribers listen, and the time between them
NUM_STARTS = 5
_QUICK_SUBSCRIBERS = 100
_LOAD = "htfi_eval.bench.service.load"
_MINUTE = np.timedelta64(1, "m")
_BEGIN = np.datetime64("2024-03-01T14:00:00")


@click.command("service", short_help="Answers, streams and start of `htfi serve`.")
@figures_options
@quick_option
def command(json_file: Path | None, history_file: Path | None, quick: bool) -> None:
    """Measure `htfi serve` from another process over real sockets, while a run of 20 series makes decisions beside it.

    forecast_p99_ms: GET of the newest forecast, 1,000 a second over 200 connections, each time from when the request
    was due. stream_lag_p99_ms: from a decision's release until the hundredth of 1,000 subscribers has it whole,
    decisions of 20 series at once. start_s: from `htfi serve` to the page, on the embedded sample. page_kb: all that a
    first load takes, compressed. quiet_tenant_p99_ratio: reads and questions of a tenant while another asks ten times
    as much, over those without, the worse of the two. chat_overhead_ms: a chat request beyond the time that the engine
    had it. Beside them FastAPI and uvicorn as they come, with a body of the same size at the same rate.
    bus_publish_per_s and bus_read_per_s, where a nats-server is at hand: decisions onto NATS, in groups of 256, and
    ticks from it until they are read; bus_publish_ratio and bus_read_ratio, to nats-py alone.

    \b
    Examples:
      htfi bench service
      htfi bench service --json build/goals/service.json
    """
    require_extra("htfi bench service", "service", "fastapi", "uvicorn", "httptools", "uvloop")
    require_extra("htfi bench service", "tenants", "sqlalchemy", "pg8000", "jwt")
    seconds, num_subscribers = (2.0, _QUICK_SUBSCRIBERS) if quick else (SECONDS, NUM_SUBSCRIBERS)
    which, num_points = min(WHICH, num_subscribers), 5 if quick else NUM_POINTS
    rows: list[dict[str, Any]] = []
    metrics: dict[str, float | None] = {}
    with tempfile.TemporaryDirectory(prefix="htfi-bench-service-") as parent:
        folder = Path(parent) / "run"
        with htfi.open_run(folder, interval="1m", models=None) as run:
            feeder = _Feeder(run)
            feeder.feed(NUM_HISTORY)
            with _serving("--follow", str(folder)) as (port, _):
                body = _fetched(port, "/v1/forecasts/S00/1m")
                metrics["page_kb"] = (
                    sum(len(_fetched(port, path, "gzip")) for path in _page_paths(port)) / 1e3
                )
                ours = _requests(port, "/v1/forecasts/S00/1m", seconds, feeder)
                metrics["forecast_p99_ms"] = _row(rows, "GET of the newest forecast", ours)
                file = Path(parent) / "body.json"
                file.write_bytes(body)
                with _process("htfi_eval.bench.service.bare", str(file)) as (bare, first):
                    _until_answered(int(first), "/body")
                    peer = _requests(int(first), "/body", seconds, feeder)
                    bare.terminate()
                metrics["forecast_p99_bare_ms"] = _row(rows, "FastAPI and uvicorn as they come", peer)
                lags = _stream_lags_ms(port, feeder, num_subscribers, which, num_points)
                metrics["stream_lag_p99_ms"] = _row(
                    rows, f"release to subscriber {which} of {num_subscribers:,}", lags
                )
            # A service of its own: no run and no subscribers beside it.
            with _serving("--follow", str(folder)) as (port, _):
                found, metrics["chat_overhead_ms"] = chat_rows(
                    port,
                    _process,
                    num_turns=1 if quick else NUM_CHAT_TURNS,
                    num_a_turn=5 if quick else NUM_A_TURN,
                )
                rows += found
        num_turns, block_s = (1, 3.0) if quick else (NUM_TENANT_TURNS, TENANT_SECONDS)
        quiet_rows, metrics["quiet_tenant_p99_ratio"] = quiet_tenant_rows(
            Path(parent), _process, seconds=block_s, num_turns=num_turns
        )
        rows += quiet_rows
        _bus_rows(rows, metrics, Path(parent), quick)
        starts = [_start_s(Path(parent) / f"start{k}") for k in range(1 if quick else NUM_STARTS)]
        metrics["start_s"] = median(starts)
        rows.append({"what": "htfi serve to the page, sample, s", "p50": median(starts)})
        rows.append({"what": "first load of the page, kB", "p50": metrics["page_kb"]})
    result = Evaluation(
        name="service",
        kind="bench",
        metrics=metrics,
        rows=rows,
        seed=0,
        data=f"{NUM_SERIES} series of 1m; {PER_SECOND:,.0f} requests a second over {NUM_CONNECTIONS} connections",
    )
    write_outputs(result, json_file=json_file, history_file=history_file)


class _Feeder:
    """Feeds a run with bars of all series that close together; keeps when each decision was released."""

    def __init__(self, run: htfi.Run) -> None:
        self._run, self._num_fed = run, 0
        self.released_ns: list[int] = []

    def feed(self, num_points: int) -> None:
        for _ in range(num_points):
            end = _BEGIN + _MINUTE * (self._num_fed + 1)
            bars = [
                {"ts": f"{end}Z", "symbol": f"S{k:02}", "close": _close(self._num_fed, k)}
                for k in range(NUM_SERIES)
            ]
            self._num_fed += 1
            for _decision in self._run.feed(bars):
                self.released_ns.append(time.monotonic_ns())


def _close(bar: int, series: int) -> float:
    """No series stands still, of which nothing would be decided: no step is a multiple of the prime."""
    return 100.0 * math.exp(0.001 * ((bar * (series + 3)) % 23))


def _stream_lags_ms(port: int, feeder: _Feeder, num: int, which: int, num_points: int) -> list[float]:
    first = len(feeder.released_ns)
    with _process(_LOAD, "stream", str(port), str(num), str(which)) as (load, _):
        for _ in range(num_points):
            feeder.feed(1)
            time.sleep(POINT_S)
        expected = len(feeder.released_ns) - first
        answer = json.loads(load.communicate(f"{expected}\n")[0])
    if answer["whole"] < expected:
        raise DependencyUnavailable(
            f"of {expected} decisions {answer['whole']} came to all {num} subscribers"
        )
    return [(at - feeder.released_ns[int(index)]) / 1e6 for index, at in answer["at_ns"].items()]


def _requests(port: int, path: str, seconds: float, feeder: _Feeder) -> list[float]:
    """Times in ms, while the run goes on."""
    words = [str(port), path, str(NUM_CONNECTIONS), str(PER_SECOND), str(seconds)]
    with _started(_LOAD, "requests", *words) as load, ThreadPoolExecutor(1) as reading:
        said = reading.submit(load.communicate)
        while not said.done():
            feeder.feed(1)
            time.sleep(POINT_S)
        answer = json.loads(said.result()[0])
    if answer["failed"]:
        raise DependencyUnavailable(f"{answer['failed']} requests were not answered")
    return answer["times_ms"]


def _bus_rows(
    rows: list[dict[str, Any]], metrics: dict[str, float | None], parent: Path, quick: bool
) -> None:
    """Where there is a nats-server: decisions and ticks a second, and how many times nats-py's own."""
    server = nats_server()
    if server is None or find_spec("nats") is None:
        return
    line = sorted((parent / "run" / "decisions.jsonl").read_bytes().splitlines(), key=len)
    nums = (512, 2_000, 1) if quick else (NUM_DECISIONS, NUM_TICKS, NUM_TURNS)
    found = bus_rates(server, parent / "bus", line[len(line) // 2], *nums)
    for name, what in (("publish", "decisions onto NATS"), ("read", "ticks from NATS")):
        bare = found[f"{name}_bare"]
        metrics[f"bus_{name}_per_s"], metrics[f"bus_{name}_ratio"] = found[name], found[name] / bare
        rows.append({"what": f"{what}, a second", "p50": found[name]})
        rows.append({"what": f"{what} by nats-py alone, a second", "p50": bare})


def _row(rows: list[dict[str, Any]], what: str, times_ms: Sequence[float]) -> float:
    p50, p99 = (float(one) for one in np.percentile(times_ms, [50, 99]))
    rows.append({"what": f"{what}, ms", "p50": p50, "p99": p99, "most": max(times_ms), "num": len(times_ms)})
    return p99


def _start_s(folder: Path) -> float:
    began = time.perf_counter()
    with _serving("--out", str(folder)) as (port, _):
        _until_answered(port, "/")
        return time.perf_counter() - began


def _page_paths(port: int) -> list[str]:
    page = _fetched(port, "/").decode()
    return ["/", *(f"/{name}" for name in re.findall(r'"\./([^"]+)"', page))]


def _fetched(port: int, path: str, encoding: str = "identity") -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept-Encoding": encoding})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30.0) as answer:
        return answer.read()


def _until_answered(port: int, path: str) -> None:
    end = time.monotonic() + 30.0
    while True:
        try:
            _fetched(port, path)
            return
        except OSError:
            if time.monotonic() > end:
                raise DependencyUnavailable(f"the service does not answer at port {port}") from None
            time.sleep(0.005)


@contextmanager
def _serving(*arguments: str) -> Generator[tuple[int, "subprocess.Popen[str]"]]:
    with _process("htfi", "serve", *arguments, "--listen", "127.0.0.1:0") as (service, said):
        port = int(said.split()[1].rpartition(":")[2])
        if "--follow" in arguments:
            _until_answered(port, "/v1/forecasts/S00/1m")
        yield port, service


@contextmanager
def _process(module: str, *arguments: str) -> Generator[tuple["subprocess.Popen[str]", str]]:
    """A process and the first line that it says; ended with the block."""
    with _started(module, *arguments) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            raise DependencyUnavailable(f"{module} {' '.join(arguments[:1])} did not start")
        yield process, first


@contextmanager
def _started(module: str, *arguments: str) -> Generator["subprocess.Popen[str]"]:
    with ExitStack() as closing:
        process = closing.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | ONE_THREAD,
            )
        )
        closing.callback(process.terminate)
        yield process
