"""One tenant's clients for `htfi bench service`, in a process of their own: reads and questions at a rate each.

python -m htfi_eval.bench.service.tenant_load PORT KEY PATH TIMES [idle]

Opens TIMES as many connections as one has and prints `ready`. Each line of standard input, `READS_PER_S QUESTIONS_PER_S
SECONDS`, is a block of load, answered by one line of JSON; between blocks the connections are open and silent. A
request waits for the answer before it on its connection, and its time counts from when it was due. What was not sent
when a block ends is withdrawn. With `idle` the process runs only while a core has nothing else to do (SCHED_IDLE): it
stands for clients of another machine, which take no processor time of this one.
"""

import asyncio
import json
import math
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from htfi_eval.bench.service.connections import AskingConnection, ask_at_rate, open_connections

NUM_READING, NUM_ASKING = 20, 4
_NUM_BARS = 60
_PATIENCE_S = 60.0


@dataclass(slots=True)
class _Answers:
    times_ms: list[float] = field(default_factory=list[float])  # of those that were answered with 200
    statuses: Counter[str] = field(default_factory=Counter[str])

    def add(self, status: str, took_s: float) -> None:
        self.statuses[status] += 1
        if status == "200":
            self.times_ms.append(1e3 * took_s)

    def clear(self) -> None:
        self.times_ms, self.statuses = [], Counter()


async def load(port: int, key: str, path: str, times: int) -> None:
    """Blocks of both kinds at once, until standard input ends."""
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    body = json.dumps({"bars": _bars()})
    posting = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    read = f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()
    question = f"POST /v1/forecasts HTTP/1.1\r\n{head}{posting}".encode()
    reads, questions = _Answers(), _Answers()
    readers = await open_connections(port, read, reads.add, times * NUM_READING)
    askers = await open_connections(port, question, questions.add, times * NUM_ASKING)
    _say("ready")
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        reads.clear()
        questions.clear()
        _say(json.dumps(await _block(readers, askers, reads, questions, *map(float, line.split()))))


async def _block(
    readers: list[AskingConnection],
    askers: list[AskingConnection],
    reads: _Answers,
    questions: _Answers,
    reads_per_s: float,
    questions_per_s: float,
    seconds: float,
) -> dict[str, object]:
    began_s = time.process_time()
    await asyncio.gather(
        ask_at_rate(readers, reads_per_s, round(reads_per_s * seconds)),
        ask_at_rate(askers, questions_per_s, round(questions_per_s * seconds)),
    )
    both = [*readers, *askers]
    withdrawn = sum(one.withdraw() for one in both)
    end = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < end and any(one.num_open and not one.is_lost for one in both):
        await asyncio.sleep(0.01)
    return {
        "read_ms": reads.times_ms,
        "question_ms": questions.times_ms,
        "reads": dict(reads.statuses),
        "questions": dict(questions.statuses),
        "withdrawn": withdrawn,
        "cpu_s": time.process_time() - began_s,
    }


def _bars() -> list[dict[str, object]]:
    return [
        {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "close": 100.0 * math.exp(0.001 * (day % 7))}
        for day in range(_NUM_BARS)
    ]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[4:] == ["idle"]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    asyncio.run(load(int(words[0]), words[1], words[2], int(words[3])))
