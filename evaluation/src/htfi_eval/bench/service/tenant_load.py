"""One tenant's clients for `htfi bench service`, in a process of their own: reads and questions at a rate each.

python -m htfi_eval.bench.service.tenant_load PORT KEY PATH READS_PER_S QUESTIONS_PER_S SECONDS TIMES

Prints `ready`, waits for a line of standard input, and prints one line of JSON at the end. A request waits for the
answer before it on its connection, and its time counts from when it was due. TIMES as many connections as one has.
"""

import asyncio
import json
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from htfi_eval.bench.service.connections import ask_at_rate, open_connections

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


async def load(
    port: int,
    key: str,
    path: str,
    reads_per_s: float,
    questions_per_s: float,
    seconds: float,
    times: int,
) -> dict[str, object]:
    """Both kinds at once."""
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    body = json.dumps({"bars": _bars()})
    posting = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    read = f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()
    question = f"POST /v1/forecasts HTTP/1.1\r\n{head}{posting}".encode()
    reads, questions = _Answers(), _Answers()
    readers = await open_connections(port, read, reads.add, times * NUM_READING)
    askers = await open_connections(port, question, questions.add, times * NUM_ASKING)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    num = round(reads_per_s * seconds), round(questions_per_s * seconds)
    await asyncio.gather(
        ask_at_rate(readers, reads_per_s, num[0]), ask_at_rate(askers, questions_per_s, num[1])
    )
    end = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < end and (reads.statuses.total(), questions.statuses.total()) != num:
        await asyncio.sleep(0.01)
    return {
        "read_ms": reads.times_ms,
        "question_ms": questions.times_ms,
        "reads": dict(reads.statuses),
        "questions": dict(questions.statuses),
    }


def _bars() -> list[dict[str, object]]:
    return [
        {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "close": 100.0 * math.exp(0.001 * (day % 7))}
        for day in range(_NUM_BARS)
    ]


if __name__ == "__main__":
    words = sys.argv[1:]
    answer = asyncio.run(
        load(
            int(words[0]),
            words[1],
            words[2],
            float(words[3]),
            float(words[4]),
            float(words[5]),
            int(words[6]),
        )
    )
    sys.stdout.write(json.dumps(answer) + "\n")
