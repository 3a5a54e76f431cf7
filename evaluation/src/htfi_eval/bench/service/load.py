"""The clients of `htfi bench service`, in a process of their own: requests at a rate, or subscribers of a stream.

python -m htfi_eval.bench.service.load requests PORT PATH CONNECTIONS PER_SECOND SECONDS
python -m htfi_eval.bench.service.load stream PORT SUBSCRIBERS WHICH

Prints one line of JSON. Times are of the system's monotonic clock, which all processes share.
"""

import asyncio
import json
import sys
import time

from htfi_eval.bench.service.connections import ask_at_rate, open_connections
from htfi_eval.bench.service.subscribers import subscribe

_PATIENCE_S = 60.0


async def requests(
    port: int, path: str, num_connections: int, per_second: float, seconds: float
) -> dict[str, object]:
    """Requests at a rate, spread over the connections in turn, whether or not answers come."""
    answers: list[tuple[str, float]] = []
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    clients = await open_connections(
        port, request, lambda status, seconds: answers.append((status, seconds)), num_connections
    )
    num = int(per_second * seconds)
    await ask_at_rate(clients, per_second, num)
    end = time.perf_counter() + _PATIENCE_S
    while any(one.num_open and not one.is_lost for one in clients) and time.perf_counter() < end:
        await asyncio.sleep(0.01)
    times_s = [took_s for status, took_s in answers if status == "200"]
    return {"times_ms": [1e3 * one for one in times_s], "failed": num - len(times_s)}


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    if kind == "requests":
        answer = asyncio.run(
            requests(int(words[0]), words[1], int(words[2]), float(words[3]), float(words[4]))
        )
    else:
        answer = subscribe(*map(int, words), patience_s=_PATIENCE_S)
    sys.stdout.write(json.dumps(answer) + "\n")
