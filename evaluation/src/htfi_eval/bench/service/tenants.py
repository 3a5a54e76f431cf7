"""What a quiet tenant of `htfi serve --service` notices of one that floods."""

import json
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import htfi
from htfi.domain.errors import DependencyUnavailable
from htfi.tenancy.config import SERVICE_FILE
from htfi.tenancy.scopes import ApiScope
from htfi.wiring.service.tenants import issue_key, open_store, read_service

READS_PER_S, QUESTIONS_PER_S = 50.0, 4.0  # of the quiet tenant
FLOOD = 10.0  # times as many of the other, over ten times as many connections
SECONDS, NUM_PAIRS = 10.0, 5
_LEAD_S = 1.0  # by which the flood begins before
_LOAD = "htfi_eval.bench.service.tenant_load"
_SERVICE = """
[tenants.quiet]
run = "quiet"
[tenants.flood]
run = "flood"
"""
Start = Callable[..., AbstractContextManager[tuple["subprocess.Popen[str]", str]]]


def quiet_tenant_rows(
    parent: Path, start: Start, *, seconds: float = SECONDS, num_pairs: int = NUM_PAIRS
) -> tuple[list[dict[str, Any]], float]:
    """Rows of the quiet tenant's times with and without the flood, and the greater of the two ratios of p99.

    The two are measured in turn, in pairs; a ratio is the median of the pairs'. `start` starts a module as a process.
    """
    folder = parent / "service"
    folder.mkdir()
    (folder / SERVICE_FILE).write_text(_SERVICE, encoding="utf-8")
    keys = {name: _prepared(folder, name) for name in ("quiet", "flood")}
    calm: list[dict[str, Any]] = []
    flooded: list[dict[str, Any]] = []
    refused = 0.0
    with start("htfi", "serve", "--service", str(folder), "--listen", "127.0.0.1:0") as (_, said):
        port = said.split()[1].rpartition(":")[2]
        for name in ("quiet", "flood"):  # the first question starts a process; its time is no part of this
            _load(start, port, keys[name], 5.0, 1.0, 2.0, None)
        for _ in range(num_pairs):
            calm.append(_load(start, port, keys["quiet"], READS_PER_S, QUESTIONS_PER_S, seconds, None)[0])
            both = _load(start, port, keys["quiet"], READS_PER_S, QUESTIONS_PER_S, seconds, keys["flood"])
            flooded.append(both[0])
            refused = _refused_share(both[1])
    rows: list[dict[str, Any]] = []
    ratios: list[float] = []
    for kind, words in (("read_ms", "newest forecast"), ("question_ms", "question")):
        pairs = [(_p99(one[kind]), _p99(other[kind])) for one, other in zip(calm, flooded, strict=True)]
        ratio = median(there / alone for alone, there in pairs)
        ratios.append(ratio)
        rows.append({"what": f"quiet tenant, {words}, alone, ms", "p99": median(one for one, _ in pairs)})
        rows.append(
            {"what": f"quiet tenant, {words}, another floods, ms", "p99": median(one for _, one in pairs)}
        )
        rows.append({"what": f"quiet tenant, {words}, ratio of p99", "p50": ratio})
    rows.append({"what": "share of the flood that was refused", "p50": refused})
    return rows, max(ratios)


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


def _load(
    start: Start, port: str, key: str, reads: float, questions: float, seconds: float, flood: str | None
) -> list[dict[str, Any]]:
    """What each of one or two tenants at once was answered."""
    words = [(key, 1.0)] + ([(flood, FLOOD)] if flood else [])
    path = "/v1/forecasts/ACME/1d"
    wanted = [
        [port, secret, path, *map(str, (reads * n, questions * n, seconds + (n > 1) * _LEAD_S, round(n)))]
        for secret, n in words
    ]
    with _together(start, wanted) as processes:
        for one in reversed(processes):  # the flood first
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
            time.sleep(_LEAD_S if one is not processes[0] else 0.0)
        answers: list[dict[str, Any]] = [json.loads(one.communicate()[0]) for one in processes]
    if set(answers[0]["reads"]) | set(answers[0]["questions"]) != {"200"}:
        raise DependencyUnavailable(
            f"the quiet tenant was answered {answers[0]['reads']}, {answers[0]['questions']}"
        )
    return answers


@contextmanager
def _together(start: Start, words: list[list[str]]) -> Generator[list["subprocess.Popen[str]"]]:
    if not words:
        yield []
        return
    with start(_LOAD, *words[0]) as (process, _), _together(start, words[1:]) as others:
        yield [process, *others]


def _p99(times_ms: list[float]) -> float:
    return float(np.percentile(times_ms, 99))


def _refused_share(answer: dict[str, Any]) -> float:
    num = sum(answer["reads"].values()) + sum(answer["questions"].values())
    taken = answer["reads"].get("200", 0) + answer["questions"].get("200", 0)
    return 1.0 - taken / num
