"""Draws paths in a process of its own, one set at a time. `htfi bench paths` starts it.

A request is a line of JSON: {"way", "num_paths", "horizon", "number", "seed"}; the answer is what was measured.
"""

import hashlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from htfi.apps.bench.decode_process import pin, say
from htfi.apps.bench.decode_prompts import path_prefix
from htfi.apps.bench.decode_watch import ClockedSessions
from htfi.apps.bench.decode_ways import Pair, open_pair
from htfi.decoding.config import DecodingConfig
from htfi.decoding.lookahead.costs import DRAFT_PRIOR, PassCosts
from htfi.decoding.paths.plan import FewestPasses, LeastTime, PathPlan, Plain
from htfi.decoding.paths.sample import sample_paths
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.writing import Refusal

PLAIN, FEWEST_PASSES, LEAST_TIME = "plain", "fewest passes", "least time"
WAYS = (PLAIN, FEWEST_PASSES, LEAST_TIME)


class AskedPaths(msgspec.Struct, frozen=True):
    way: str
    num_paths: int
    horizon: int
    number: int  # of the story that they follow
    seed: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """One set of paths. `read_ms` of `taken_ms` went into reading the prefix, by target and draft; `num_passes` are
    the target's after it; `bins` is a digest of what was drawn."""

    taken_ms: float
    read_ms: float
    num_passes: int
    num_draft_passes: int
    target_ms: float
    draft_ms: float
    bins: str


@dataclass(frozen=True, slots=True)
class PathWay:
    """A plan with sequences of its own; it goes on learning from draw to draw."""

    target: ClockedSessions
    draft: ClockedSessions | None
    plan: PathPlan


def main() -> None:
    target, draft, core = sys.argv[1:]
    pin(int(core))
    try:
        pair = open_pair(Path(target), Path(draft))
    except HtfiError as missing:
        say({"missing": str(missing)})
        return
    say({"ready": pair.target.name})
    ways: dict[str, PathWay] = {}
    vocabulary = Vocabulary(pair.target.tokenizer)
    for line in sys.stdin:
        asked = msgspec.json.decode(line, type=AskedPaths)
        if asked.way not in ways:
            ways[asked.way] = open_way(pair, asked.way)
        say(msgspec.to_builtins(draw(ways[asked.way], vocabulary, asked)))


def open_way(pair: Pair, way: str) -> PathWay:
    target = ClockedSessions(pair.target.network, DecodingConfig())
    if way == PLAIN:
        return PathWay(target, None, Plain())
    plan = FewestPasses() if way == FEWEST_PASSES else LeastTime(PassCosts(), PassCosts(DRAFT_PRIOR))
    return PathWay(target, ClockedSessions(pair.draft.drafting, DecodingConfig()), plan)


def draw(way: PathWay, vocabulary: Vocabulary, asked: AskedPaths) -> Drawn:
    """Raises: DependencyUnavailable where the sampler refuses."""
    prefix = path_prefix(asked.number, vocabulary)
    began_s = time.perf_counter()
    sampled = sample_paths(
        way.target, vocabulary, prefix, asked.num_paths, asked.horizon, seed=asked.seed, draft=way.draft,
        plan=way.plan,
    )  # fmt: skip
    taken_ms = 1e3 * (time.perf_counter() - began_s)
    if isinstance(sampled, Refusal):
        raise DependencyUnavailable(f"paths were refused: {sampled.reason}")
    rounds = sampled.rounds
    read_ms = 0.0
    for sessions in (way.target, way.draft):
        if sessions is not None:
            read_ms, sessions.read_s = read_ms + 1e3 * sessions.read_s, 0.0
    return Drawn(
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
