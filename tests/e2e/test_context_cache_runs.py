"""A run decides the same whatever the context cache holds; what another run or node has read it does not read."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from htfi.wiring.ledger import open_ledger_readonly
from link_processes import environment, write_sources
from redis_server import RedisServer, redis_server

NUM_DAYS = 40
MOST_ON_RETRACTED = 5  # questions that tell of the item that is taken back in the end
_RUN = """
import json, sys
from pathlib import Path
from htfi.domain.decision import Rung
from htfi.wiring.run import open_run
from htfi.wiring.settings import load_settings

with open_run(load_settings(), Path(sys.argv[1]), sys.argv[2:]) as run:
    run.run_to_end(lambda: None)
    stats = run.loop.components.views.speculation_stats
    told = {rung.value: each.num_answers for rung, each in stats.items()}
    found = {} if run.cache is None else run.cache.tiers.num_found
print(json.dumps({"answers": told, "found": found}))
"""


_FIRMS = (
    "Harbour Steel",
    "Northfield Bank",
    "Orchard Foods",
    "Delta Rail",
    "Quarry Power",
    "Amber Airlines",
    "Summit Health",
)
_DEEDS = ("cuts its outlook for the year", "wins a large order from the navy", "is sued over a patent")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Prices of two symbols, and a headline a day that no other day has; one is taken back."""
    folder = tmp_path_factory.mktemp("sources")
    prices, news = write_sources(folder, NUM_DAYS)
    items = [json.loads(line) for line in news.read_text().splitlines()]
    for day, item in enumerate(items):
        item["headline"] = f"{_FIRMS[day % len(_FIRMS)]} {_DEEDS[day % len(_DEEDS)]}"
    items[35] |= {"headline": "Correction: nobody is sued over a patent", "corrects": "n34", "retracts": True}
    news.write_text("".join(json.dumps(item) + "\n" for item in items))
    return [prices, news]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


def run(sources: list[Path], out: Path, /, **cache: str) -> tuple[str, Mapping[str, dict[str, int]]]:
    """The ledger's root, the answers that models gave by rung, and what was found by tier."""
    settings = {f"HTFI_CACHE__{key.upper()}": value for key, value in cache.items()}
    ended = subprocess.run(
        [sys.executable, "-c", _RUN, str(out), *map(str, sources)],
        env=environment(**settings, PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    ledger = open_ledger_readonly(out)
    try:
        root = f"{ledger.size} {ledger.root().hex()}"
    finally:
        ledger.close()
    return root, json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def absent(sources: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The root of a run without any cache, which reads."""
    root, told = run(sources, tmp_path_factory.mktemp("absent") / "out", memory_mb="0")
    assert told["answers"]["speculative"] > 5
    assert told["found"] == {}
    return root


@pytest.mark.slow
def test_cold_and_warm_runs_that_share_a_folder_decide_as_one_without_a_cache(
    sources: list[Path], absent: str, tmp_path: Path
) -> None:
    folder = str(tmp_path / "shared")
    cold, read = run(sources, tmp_path / "cold", folder=folder)
    warm, found = run(sources, tmp_path / "warm", folder=folder)
    assert cold == warm == absent
    assert sum(found["answers"].values()) <= MOST_ON_RETRACTED < read["answers"]["speculative"]
    assert found["found"]["lmdb"] > 5


@pytest.mark.slow
def test_a_second_node_that_shares_a_server_decides_the_same_and_reads_what_was_taken_back(
    sources: list[Path], absent: str, tmp_path: Path, server: RedisServer
) -> None:
    shared = {"folder": "none", "redis": server.url, "redis_timeout_ms": "500"}
    first, read = run(sources, tmp_path / "first", **shared)
    second, found = run(sources, tmp_path / "second", **shared)
    assert first == second == absent
    assert sum(found["answers"].values()) <= MOST_ON_RETRACTED < read["answers"]["speculative"]
    assert found["found"]["redis"] > 5


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle_of_a_run_changes_nothing(
    sources: list[Path], absent: str, tmp_path: Path
) -> None:
    with redis_server(tmp_path / "redis") as server:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(tmp_path / "out"), *map(str, sources)],
            env=environment(
                HTFI_CACHE__REDIS=server.url, HTFI_CACHE__FOLDER="none", PYTHONPATH=os.pathsep.join(sys.path)
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        journal = tmp_path / "out" / "decisions.jsonl"
        until_s = time.monotonic() + 60.0
        while process.poll() is None and time.monotonic() < until_s:
            if journal.exists() and journal.read_bytes().count(b"\n") > 5:
                break
            time.sleep(0.005)
        server.kill()
        _, said = process.communicate(timeout=120.0)
    assert process.returncode == 0, said
    assert said.count("continues without it") == 1, said
    ledger = open_ledger_readonly(tmp_path / "out")
    try:
        assert f"{ledger.size} {ledger.root().hex()}" == absent
    finally:
        ledger.close()
