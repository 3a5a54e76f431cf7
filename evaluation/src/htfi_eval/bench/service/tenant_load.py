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
from typing import cast

NUM_READING, NUM_ASKING = 20, 4
_NUM_BARS = 60
_PATIENCE_S = 60.0


@dataclass(slots=True)
class _Answers:
    times_ms: list[float] = field(default_factory=list[float])  # of those that were answered with 200
    statuses: Counter[str] = field(default_factory=Counter[str])


class _TenantConnection(asyncio.Protocol):
    def __init__(self, request: bytes, answers: _Answers) -> None:
        self._request, self._answers = request, answers
        self._answer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._due_s: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self) -> None:
        self._due_s.append(time.perf_counter())
        if len(self._due_s) == 1:
            self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        status = head[9:12].decode()
        self._answers.statuses[status] += 1
        ms = 1e3 * (time.perf_counter() - self._due_s.pop(0))
        if status == "200":
            self._answers.times_ms.append(ms)
        self._answer.clear()
        if self._due_s:
            self._send()


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
    readers = await _connected(port, read, reads, times * NUM_READING)
    askers = await _connected(port, question, questions, times * NUM_ASKING)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await asyncio.gather(_paced(readers, reads_per_s, seconds), _paced(askers, questions_per_s, seconds))
    num = round(reads_per_s * seconds), round(questions_per_s * seconds)
    end = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < end and (reads.statuses.total(), questions.statuses.total()) != num:
        await asyncio.sleep(0.01)
    return {
        "read_ms": reads.times_ms,
        "question_ms": questions.times_ms,
        "reads": dict(reads.statuses),
        "questions": dict(questions.statuses),
    }


async def _connected(port: int, request: bytes, answers: _Answers, num: int) -> list[_TenantConnection]:
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _TenantConnection(request, answers), "127.0.0.1", port)
        for _ in range(num)
    ]
    return [connection for _, connection in made]


async def _paced(connections: list[_TenantConnection], per_second: float, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for k in range(round(per_second * seconds)):
        wait_s = began + k / per_second - loop.time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        connections[k % len(connections)].ask()


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
