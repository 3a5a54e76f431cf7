"""Runs of every way in turn, on fresh prompts, and the peer's beside ours. `htfi bench decode` asks for them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from htfi.apps.bench.decode_figures import Runs
from htfi.apps.bench.decode_process import Worker
from htfi.apps.bench.decode_prompts import Kind, free_kinds
from htfi.apps.bench.decode_ways import PLAIN, Measured

SEEN_ROUNDS = 20  # of a kind, that a planner has had before it is measured
_MOST_WARM_ANSWERS = 12
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Beside:
    """One run beside the peer: tokens a second of the whole request, ours and theirs, plain and with the draft."""

    kind: str
    ours_plain: float
    ours: float
    theirs_plain: float
    theirs: float


def measure(
    worker: Worker, label: str, ways: Sequence[str], kinds: Sequence[Kind], num_runs: int, tell: Tell
) -> Runs:
    """All kinds in all ways, `num_runs` times, once each way has had its rounds of that kind."""
    runs, numbers = Runs(label), count()
    for kind in kinds:
        tell(f"{label}: {kind.name}")
        _warm(worker, kind.name, ways, numbers)
    for turn in range(num_runs):
        for kind in kinds:
            tell(f"{label}: run {turn + 1} of {num_runs}, {kind.name}")
            asked = [next(numbers) for _ in range(kind.num_a_run)]
            for way in _in_turn(ways, turn):
                runs.add(kind.name, way, [_written(worker, kind.name, way, number) for number in asked])
    return runs


def measure_beside(ours: Worker, peer: Worker, way: str, num_runs: int, tell: Tell) -> list[Beside]:
    """Free text, the same prompts to both; `way` is ours. The first run of each kind is for warming."""
    found: list[Beside] = []
    for kind in free_kinds():
        for turn in range(num_runs + 1):
            tell(f"beside the peer: {kind.name}, run {turn} of {num_runs}")
            number = 1_000_000 + turn  # far from those of the other kinds
            pair: list[float] = []
            for one in (PLAIN, way):
                answer = _written(ours, kind.name, one, number)
                pair.append(1e3 * answer.num_tokens / (answer.read_ms + answer.write_ms))
            for assisted in (False, True):
                told: dict[str, Any] = peer.ask(
                    {"assisted": assisted, "temperature": kind.temperature, "number": number}
                )
                pair.append(1e3 * told["num_tokens"] / told["whole_ms"])
            if turn:
                found.append(Beside(kind.name, *pair))
    return found


def _warm(worker: Worker, kind: str, ways: Sequence[str], numbers: Iterator[int]) -> None:
    rounds = dict.fromkeys(ways, 0)
    for _ in range(_MOST_WARM_ANSWERS):
        number = next(numbers)
        for way in [way for way in ways if rounds[way] < SEEN_ROUNDS]:
            rounds[way] += _written(worker, kind, way, number).num_passes
        if min(rounds.values()) >= SEEN_ROUNDS:
            return


def _in_turn(ways: Sequence[str], turn: int) -> list[str]:
    """Another first one in every run, so that none is always measured after the same."""
    first = turn % len(ways)
    return [*ways[first:], *ways[:first]]


def _written(worker: Worker, kind: str, way: str, number: int) -> Measured:
    return msgspec.convert(worker.ask({"way": way, "kind": kind, "number": number}), Measured)
