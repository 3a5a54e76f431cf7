"""What a quiet tenant of `htfi serve --service` notices of one that floods.

How it is measured, and why so:

- The figure is a ratio of two p99 of one service, so that all but the flood is the same on both sides: the same
  processes, connections and offered load. The flood's connections are there on both sides, and silent on one.
- A turn is four blocks, calm, flooded, flooded, calm, the next one the other way round: what changes evenly while a
  turn lasts changes both sides alike. Each side's two blocks are one sample: 20 s of 96 reads and 4 questions a second,
  so that a turn's p99 rests on the 19 slowest of 1,920 reads and on the slowest of 80 questions. More questions would
  be another load: one takes some 40 ms of a core, and a tenant that asks ten a second is not quiet.
- The figure is the median of the turns' ratios; its interval is of a bootstrap over turns, as requests of a turn are
  not independent of each other.
- Both tenants may ask 100 a second. The quiet one does so; the other asks ten times that, over ten times as many
  connections.
- A flood comes from other machines. Here its clients would take processor time from the service and from the clients
  that are measured, so that they run only while a core has nothing else to do. They are slower for that where the
  machine is busy; then the run fails rather than measure less of a flood.
"""

import json
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import htfi
from htfi.domain.errors import DependencyUnavailable
from htfi.tenancy.config import SERVICE_FILE
from htfi.tenancy.scopes import ApiScope
from htfi.wiring.service.tenants import issue_key, open_store, read_service

READS_PER_S, QUESTIONS_PER_S = 96.0, 4.0  # of the quiet tenant: its quota
FLOOD = 10  # times as many of the other, over as many times the connections
SECONDS, NUM_TURNS = 10.0, 6  # two calm blocks on end are less than the 30 s after which the service hangs up
_LEAD_S = 1.0  # before the quiet tenant asks; in it the flood spends its burst
_WARM_S = 2.0
_MIN_REFUSED = 0.5  # of what the flood had answered
_LOAD = "htfi_eval.bench.service.tenant_load"
_PATH = "/v1/forecasts/ACME/1d"
_KINDS = (("read_ms", "newest forecast"), ("question_ms", "question"))
_SERVICE = """
[tenants.quiet]
run = "quiet"
quota = {requests_per_s = 100}
[tenants.flood]
run = "flood"
quota = {requests_per_s = 100}
"""
_Process = subprocess.Popen[str]
Start = Callable[..., AbstractContextManager[tuple[_Process, str]]]
Times = dict[str, list[float]]  # ms, by kind


class FloodTurn(NamedTuple):
    """What the quiet tenant's requests took on the two sides of a turn."""

    calm: Times
    flooded: Times

    def ratio(self, kind: str) -> float:
        return _p99(self.flooded[kind]) / _p99(self.calm[kind])


def quiet_tenant_rows(
    parent: Path, start: Start, *, seconds: float = SECONDS, num_turns: int = NUM_TURNS
) -> tuple[list[dict[str, Any]], float]:
    """Rows of the quiet tenant's times with and without the flood, and the greater of the two ratios of p99.

    `start` starts a module as a process. Raises: DependencyUnavailable, where the quiet tenant was refused or the other
    did not flood.
    """
    folder = parent / "service"
    folder.mkdir()
    (folder / SERVICE_FILE).write_text(_SERVICE, encoding="utf-8")
    keys = {name: _prepared(folder, name) for name in ("quiet", "flood")}
    turns: list[FloodTurn] = []
    floods: list[_Flood] = []
    with start("htfi", "serve", "--service", str(folder), "--listen", "127.0.0.1:0") as (_, said):
        port = said.split()[1].rpartition(":")[2]
        with _clients(start, port, keys) as (quiet, flood):
            for one in (quiet, flood):  # the first question starts a process; its time is no part of this
                _ask(one, 1, _WARM_S)
                _answer(one)
            for number in range(num_turns):
                turn = FloodTurn({kind: [] for kind, _ in _KINDS}, {kind: [] for kind, _ in _KINDS})
                for is_flooded in (
                    (False, True, True, False) if number % 2 == 0 else (True, False, False, True)
                ):
                    found, flooded = _block(quiet, flood if is_flooded else None, seconds)
                    side = turn.flooded if is_flooded else turn.calm
                    for kind, times in side.items():
                        times += found[kind]
                    floods += [] if flooded is None else [flooded]
                turns.append(turn)
    rows: list[dict[str, Any]] = []
    for kind, words in _KINDS:
        for side, of in (("alone", 0), ("another floods", 1)):
            rows.append(
                {
                    "what": f"quiet tenant, {words}, {side}, ms",
                    "p50": median(float(np.median(turn[of][kind])) for turn in turns),
                    "p99": median(_p99(turn[of][kind]) for turn in turns),
                    "num": sum(len(turn[of][kind]) for turn in turns),
                }
            )
        ratios = [turn.ratio(kind) for turn in turns]
        low, high = median_interval(ratios)
        rows.append(
            {"what": f"quiet tenant, {words}, ratio of p99", "p50": median(ratios), "low": low, "high": high}
        )
    for what, values in zip(_Flood._fields, zip(*floods, strict=True), strict=True):
        rows.append({"what": f"the flood: {what.replace('_', ' ')}", "p50": median(values)})
    return rows, max(median(turn.ratio(kind) for turn in turns) for kind, _ in _KINDS)


class _Flood(NamedTuple):
    """What came of one block of the flood."""

    share_refused: float
    reads_answered_a_second: float
    questions_answered_a_second: float


def median_interval(ratios: Sequence[float], *, num_draws: int = 4_000) -> tuple[float, float]:
    """The 90% interval of a median of turns, by a bootstrap over them."""
    values = np.asarray(ratios)
    drawn = np.random.default_rng(0).integers(len(values), size=(num_draws, len(values)))
    low, high = np.percentile(np.median(values[drawn], axis=1), [5, 95])
    return float(low), float(high)


def _prepared(folder: Path, tenant: str) -> str:
    """A recorded run and a key of a tenant."""
    bars = [
        {
            "date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}",
            "symbol": "ACME",
            "close": 100 + (day * 7) % 11,
        }
        for day in range(60)
    ]
    with htfi.open_run(folder / tenant, interval="1d", models=None) as run:
        list(run.feed(bars))
    with closing(open_store(read_service(folder))) as store:
        return issue_key(store, tenant, "bench", frozenset({ApiScope.READ, ApiScope.ASK}))


@contextmanager
def _clients(start: Start, port: str, keys: dict[str, str]) -> Generator[tuple[_Process, _Process]]:
    """The clients of both tenants, whose connections are open."""
    with (
        start(_LOAD, port, keys["quiet"], _PATH, "1") as (quiet, _),
        start(_LOAD, port, keys["flood"], _PATH, str(FLOOD), "idle") as (flood, _),
    ):
        yield quiet, flood


def _block(quiet: _Process, flood: _Process | None, seconds: float) -> tuple[dict[str, Any], _Flood | None]:
    """What the quiet tenant was answered, and what came of the flood."""
    if flood is not None:
        _ask(flood, FLOOD, _LEAD_S + seconds)
    time.sleep(_LEAD_S)
    _ask(quiet, 1, seconds)
    found = _answer(quiet)
    if set(found["reads"]) | set(found["questions"]) != {"200"} or found["lost"]:
        raise DependencyUnavailable(
            f"the quiet tenant was answered {found['reads']}, {found['questions']}; {found['lost']} connections broke"
        )
    if flood is None:
        return found, None
    answer = _answer(flood)
    num = sum(answer["reads"].values()) + sum(answer["questions"].values())
    reads, questions = answer["reads"].get("200", 0), answer["questions"].get("200", 0)
    share = 1.0 - (reads + questions) / max(num, 1)
    if share < _MIN_REFUSED or answer["lost"]:
        raise DependencyUnavailable(
            f"of {num} requests of the flood {share:.0%} were refused and {answer['lost']} of its connections broke: "
            "the machine is too busy to flood from"
        )
    lasted_s = _LEAD_S + seconds
    return found, _Flood(share, reads / lasted_s, questions / lasted_s)


def _ask(process: _Process, times: int, seconds: float) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{READS_PER_S * times} {QUESTIONS_PER_S * times} {seconds}\n")
    process.stdin.flush()


def _answer(process: _Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise DependencyUnavailable("clients of the service ended before their answer")
    return json.loads(line)


def _p99(times_ms: list[float]) -> float:
    return float(np.percentile(times_ms, 99))
