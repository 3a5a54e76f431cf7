"""Target and draft in a process of its own, asked for one answer at a time. `htfi bench decode` starts it.

A request is a line of JSON: {"way", "kind", "number"}, of which story an answer of which kind is written in which
way; the answer is what was measured. The worker of the peer takes {"assisted", "temperature", "number"}.
"""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from htfi.apps.bench.decode_peers import TRANSFORMERS, MissingPeerError, open_transformers
from htfi.apps.bench.decode_process import pin, say
from htfi.apps.bench.decode_prompts import NUM_TOKENS, free_kinds, free_prompt, kinds, request
from htfi.apps.bench.decode_ways import WAYS, Way, open_pair
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import HtfiError
from htfi.wiring.open_folder import open_folder

Asked = dict[str, Any]


Answer = Callable[[Asked], object]


def main() -> None:
    role, target, draft, core = sys.argv[1:]
    pin(int(core))
    try:
        answer = (_peer if role == TRANSFORMERS else _ours)(Path(target), Path(draft))
    except (MissingPeerError, HtfiError) as missing:
        say({"missing": str(missing)})
        return
    say({"ready": role})
    gc.disable()  # as in a run: cycles are looked for between two answers
    for line in sys.stdin:
        say(answer(msgspec.json.decode(line)))
        gc.collect(1)


def _ours(target: Path, draft: Path) -> Answer:
    pair = open_pair(target, draft)
    vocabulary = Vocabulary(pair.target.tokenizer)
    kind_of = {kind.name: kind for kind in (*kinds(), *free_kinds())}
    ways: dict[str, Way] = {}

    def answer(asked: Asked) -> object:
        name = asked["way"]
        if name not in ways:
            ways[name] = WAYS[name](pair)
        put = request(kind_of[asked["kind"]], asked["number"], vocabulary)
        return msgspec.to_builtins(ways[name].measure(put))

    return answer


def _peer(target: Path, draft: Path) -> Answer:
    tell = open_transformers(target, draft)
    vocabulary = Vocabulary(open_folder(target, "int8").tokenizer)

    def answer(asked: Asked) -> object:
        number = asked["number"]
        prompt = free_prompt(number, vocabulary)
        told = tell(prompt, NUM_TOKENS, asked["temperature"], number, asked["assisted"])
        return {"num_tokens": told.num_tokens, "whole_ms": 1e3 * told.taken_s}

    return answer


if __name__ == "__main__":
    main()
