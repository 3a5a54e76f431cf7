"""Two nodes that share a Redis: what one has read the other answers without its models, until it is taken back."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.question import Question
from redis_server import RedisServer, redis_server

DAY = NS_PER_DAY
NODE = Path(__file__).parents[1] / "cache_node.py"


class Node:
    """A process of `cache_node.py`."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(NODE), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tell(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(msgspec.to_builtins(command)) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> str:
        """What it complained of."""
        _, said = self._process.communicate(timeout=20.0)
        return said


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path / "redis") as running:
        yield running


def question(symbol: str = "SPX", day: int = 9) -> Question:
    news = News(9 * DAY - 1, 9 * DAY - 1, "wire", 1, "n1", "Fed cuts rates by 50 bp as growth slows")
    return Question(symbol, day * DAY, DAY, (news,), (0.5, -1.25, 0.75))


def test_a_node_that_never_saw_an_article_answers_without_reading_it(server: RedisServer) -> None:
    first, second = Node(server.url), Node(server.url)
    read = first.tell(ask=[question()])
    assert read["answers"] == 1
    assert read["passes"] > 0
    served = second.tell(ask=[question()])
    assert served == {"views": read["views"], "passes": 0, "answers": 0}

    first.tell(forget=["n1"])
    until_s = time.monotonic() + 5.0
    while (again := second.tell(ask=[question()]))["answers"] == 0 and time.monotonic() < until_s:
        time.sleep(0.02)
    assert again["answers"] == 1
    assert again["views"] == read["views"]
    assert first.tell(ask=[question()])["answers"] == 2
    assert second.tell(ask=[question()])["answers"] == 2
    assert [first.end(), second.end()] == ["", ""]
