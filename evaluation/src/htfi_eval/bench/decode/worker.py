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

from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import HtfiError
from htfi.wiring.models.loading import open_model
from htfi_eval.bench.decode.methods import METHODS, DecodingMethod, open_pair
from htfi_eval.bench.decode.peers import TRANSFORMERS, MissingPeerError, open_transformers
from htfi_eval.bench.decode.prompts import (
    NUM_TOKENS,
    free_text_kinds,
    free_text_prompt,
    prompt_kinds,
    request,
)
from htfi_eval.bench.processes import pin_to_core, send_answer

WorkerRequest = dict[str, Any]


AnswerRequest = Callable[[WorkerRequest], object]


def main() -> None:
    role, target, draft, core = sys.argv[1:]
    pin_to_core(int(core))
    try:
        answer = (_peer_answers if role == TRANSFORMERS else _our_answers)(Path(target), Path(draft))
    except (MissingPeerError, HtfiError) as missing:
        send_answer({"missing": str(missing)})
        return
    send_answer({"ready": role})
    gc.disable()  # as in a run: cycles are looked for between two answers
    for line in sys.stdin:
        send_answer(answer(msgspec.json.decode(line)))
        gc.collect(1)


def _our_answers(target: Path, draft: Path) -> AnswerRequest:
    pair = open_pair(target, draft)
    vocabulary = Vocabulary(pair.target.tokenizer)
    kind_of = {kind.name: kind for kind in (*prompt_kinds(), *free_text_kinds())}
    ways: dict[str, DecodingMethod] = {}

    def answer(asked: WorkerRequest) -> object:
        name = asked["way"]
        if name not in ways:
            ways[name] = METHODS[name](pair)
        put = request(kind_of[asked["kind"]], asked["number"], vocabulary)
        return msgspec.to_builtins(ways[name].measure(put))

    return answer


def _peer_answers(target: Path, draft: Path) -> AnswerRequest:
    tell = open_transformers(target, draft)
    vocabulary = Vocabulary(open_model(target, "int8").tokenizer)

    def answer(asked: WorkerRequest) -> object:
        number = asked["number"]
        prompt = free_text_prompt(number, vocabulary)
        told = tell(prompt, NUM_TOKENS, asked["temperature"], number, asked["assisted"])
        return {"num_tokens": told.num_tokens, "whole_ms": 1e3 * told.taken_s}

    return answer


if __name__ == "__main__":
    main()
