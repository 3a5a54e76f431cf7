"""Draws paths in a process of its own, one set at a time. `htfi bench paths` starts it.

A request is a line of JSON: {"method", "num_paths", "horizon", "number", "seed"}; the answer is what was measured.
"""

import hashlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.pass_costs import DRAFT_PRIOR, LearnedPassCosts
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.generation import RequestRefused
from htfi_eval.bench.decode.methods import ModelPair, TimedSessions, open_pair
from htfi_eval.bench.decode.prompts import path_prefix
from htfi_eval.bench.processes import pin_to_core, send_answer
from htfi_train.paths.plan import FewestPasses, LeastTime, PathPlan, PlainPathPlan
from htfi_train.paths.sample import sample_paths

PLAIN, FEWEST_PASSES, LEAST_TIME = "plain", "fewest passes", "least time"


class PathsRequest(msgspec.Struct, frozen=True):
    method: str
    num_paths: int
    horizon: int
    number: int  # of the story
    seed: int


@dataclass(frozen=True, slots=True)
class PathSetTiming:
    """One set of paths. `read_ms`: the part of `taken_ms` for reading the prefix, by target and draft; `num_passes` are
    the target's after it; `bins` is a digest of what was drawn."""

    taken_ms: float
    read_ms: float
    num_passes: int
    num_draft_passes: int
    target_ms: float
    draft_ms: float
    bins: str


@dataclass(frozen=True, slots=True)
class PathMethod:
    """A plan with its own sequences; it learns from draw to draw."""

    target: TimedSessions
    draft: TimedSessions | None
    plan: PathPlan


def main() -> None:
    target, draft, core = sys.argv[1:]
    pin_to_core(int(core))
    try:
        pair = open_pair(Path(target), Path(draft))
    except HtfiError as missing:
        send_answer({"missing": str(missing)})
        return
    send_answer({"ready": pair.target.name})
    methods: dict[str, PathMethod] = {}
    vocabulary = Vocabulary(pair.target.tokenizer)
    for line in sys.stdin:
        request = msgspec.json.decode(line, type=PathsRequest)
        if request.method not in methods:
            methods[request.method] = open_path_method(pair, request.method)
        send_answer(msgspec.to_builtins(draw(methods[request.method], vocabulary, request)))


def open_path_method(pair: ModelPair, method: str) -> PathMethod:
    target = TimedSessions(pair.target.network, DecodingConfig())
    if method == PLAIN:
        return PathMethod(target, None, PlainPathPlan())
    plan = (
        FewestPasses()
        if method == FEWEST_PASSES
        else LeastTime(LearnedPassCosts(), LearnedPassCosts(DRAFT_PRIOR))
    )
    return PathMethod(target, TimedSessions(pair.draft.draft_network, DecodingConfig()), plan)


def draw(method: PathMethod, vocabulary: Vocabulary, request: PathsRequest) -> PathSetTiming:
    """Raises: DependencyUnavailable where the sampler refuses."""
    prefix = path_prefix(request.number, vocabulary)
    began_s = time.perf_counter()
    sampled = sample_paths(
        method.target, vocabulary, prefix, request.num_paths, request.horizon, seed=request.seed, draft=method.draft,
        plan=method.plan,
    )  # fmt: skip
    taken_ms = 1e3 * (time.perf_counter() - began_s)
    if isinstance(sampled, RequestRefused):
        raise DependencyUnavailable(f"paths were refused: {sampled.reason}")
    rounds = sampled.rounds
    read_ms = 0.0
    for sessions in (method.target, method.draft):
        if sessions is not None:
            read_ms, sessions.read_s = read_ms + 1e3 * sessions.read_s, 0.0
    return PathSetTiming(
        taken_ms,
        read_ms,
        rounds.num_target_passes,
        rounds.num_draft_passes,
        rounds.target_ms,
        rounds.draft_ms,
        hashlib.blake2b(sampled.bins.tobytes(), digest_size=8).hexdigest(),
    )


if __name__ == "__main__":
    main()
