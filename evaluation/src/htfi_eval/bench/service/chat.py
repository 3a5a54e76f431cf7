"""What HTTP adds to a chat request: `htfi serve` beside the same models asked in one process."""

import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from statistics import median
from typing import Any

import msgspec

from htfi_eval.bench.service.chat_load import ChatTimes

NUM_CHAT_TURNS, NUM_A_TURN = 4, 15
_LOAD = "htfi_eval.bench.service.chat_load"
Start = Callable[..., AbstractContextManager[tuple["subprocess.Popen[str]", str]]]


def chat_rows(
    port: int, start: Start, *, num_turns: int = NUM_CHAT_TURNS, num_a_turn: int = NUM_A_TURN
) -> tuple[list[dict[str, Any]], float]:
    """Rows of chat requests one after the other, and the median over them of what is not the engine's time, in ms.

    That time is of the same request: the client's, less what the engine states in `openai-processing-ms`. First tokens
    and tokens a second stand beside those of the same texts without HTTP, measured in turn.
    """
    served: list[ChatTimes] = []
    bare: list[ChatTimes] = []
    with start(_LOAD, "http", str(port)) as (client, _), start(_LOAD, "bare") as (peer, _):
        for turn in range(num_turns):
            for process, found in ((client, served), (peer, bare)):
                found.append(_times(process, 100 + turn * num_a_turn, num_a_turn))
    overheads = [
        whole - engine for one in served for whole, engine in zip(one.whole_ms, one.engine_ms, strict=True)
    ]
    overhead_ms = median(overheads)
    rows: list[dict[str, Any]] = [
        {
            "what": "chat, beyond the engine's time, ms",
            "p50": overhead_ms,
            "most": max(overheads),
            "num": len(overheads),
        }
    ]
    for name, found in (("chat", served), ("the same texts without HTTP", bare)):
        first = [ms for one in found for ms in one.first_ms]
        rates = [1e3 * one.num_tokens / sum(one.whole_ms) for one in found]
        streamed = [ms for one in found for ms in one.stream_ms]
        rows.append({"what": f"{name}, first token, ms", "p50": median(first), "num": len(first)})
        rows.append({"what": f"{name}, as a stream, ms", "p50": median(streamed), "num": len(streamed)})
        rows.append({"what": f"{name}, tokens a second", "p50": median(rates), "num": len(rates)})
    return rows, overhead_ms


def _times(process: "subprocess.Popen[str]", first: int, num: int) -> ChatTimes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{first} {num}\n")
    process.stdin.flush()
    return msgspec.json.decode(process.stdout.readline(), type=ChatTimes)
