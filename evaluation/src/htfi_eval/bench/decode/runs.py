"""Runs of every way in turn, on fresh prompts, and the peer's beside ours. `htfi bench decode` asks for them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from htfi_eval.bench.decode.figures import DecodeRuns
from htfi_eval.bench.decode.methods import PLAIN, DecodeMeasurement
from htfi_eval.bench.decode.prompts import PromptKind, free_text_kinds
from htfi_eval.bench.processes import WorkerProcess

WARM_UP_ROUNDS = 20  # of a kind, that a planner has had before it is measured
_MAX_WARM_UP_ANSWERS = 12
ReportProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PeerComparison:
    """One run beside the peer: tokens a second of the whole request, ours and theirs, plain and with the draft."""

    kind: str
    ours_plain: float
    ours: float
    theirs_plain: float
    theirs: float


def measure(
    worker: WorkerProcess,
    label: str,
    ways: Sequence[str],
    kinds: Sequence[PromptKind],
    num_runs: int,
    tell: ReportProgress,
) -> DecodeRuns:
    """All kinds in all ways, `num_runs` times, once each way has had its rounds of that kind."""
    runs, numbers = DecodeRuns(label), count()
    for kind in kinds:
        tell(f"{label}: {kind.name}")
        _warm(worker, kind.name, ways, numbers)
    for turn in range(num_runs):
        for kind in kinds:
            tell(f"{label}: run {turn + 1} of {num_runs}, {kind.name}")
            asked = [next(numbers) for _ in range(kind.num_requests_per_run)]
            for way in _rotated(ways, turn):
                runs.add(kind.name, way, [_completion(worker, kind.name, way, number) for number in asked])
    return runs


def measure_with_peer(
    ours: WorkerProcess, peer: WorkerProcess, way: str, num_runs: int, tell: ReportProgress
) -> list[PeerComparison]:
    """Free text, the same prompts to both; `way` is ours. The first run of each kind is for warming."""
    found: list[PeerComparison] = []
    for kind in free_text_kinds():
        for turn in range(num_runs + 1):
            tell(f"beside the peer: {kind.name}, run {turn} of {num_runs}")
            number = 1_000_000 + turn  # far from those of the other kinds
            pair: list[float] = []
            for one in (PLAIN, way):
                answer = _completion(ours, kind.name, one, number)
                pair.append(1e3 * answer.num_tokens / (answer.read_ms + answer.write_ms))
            for assisted in (False, True):
                told: dict[str, Any] = peer.ask(
                    {"assisted": assisted, "temperature": kind.temperature, "number": number}
                )
                pair.append(1e3 * told["num_tokens"] / told["whole_ms"])
            if turn:
                found.append(PeerComparison(kind.name, *pair))
    return found


def _warm(worker: WorkerProcess, kind: str, ways: Sequence[str], numbers: Iterator[int]) -> None:
    rounds = dict.fromkeys(ways, 0)
    for _ in range(_MAX_WARM_UP_ANSWERS):
        number = next(numbers)
        for way in [way for way in ways if rounds[way] < WARM_UP_ROUNDS]:
            rounds[way] += _completion(worker, kind, way, number).num_passes
        if min(rounds.values()) >= WARM_UP_ROUNDS:
            return


def _rotated(ways: Sequence[str], turn: int) -> list[str]:
    """Another first one in every run, so that none is always measured after the same."""
    first = turn % len(ways)
    return [*ways[first:], *ways[:first]]


def _completion(worker: WorkerProcess, kind: str, way: str, number: int) -> DecodeMeasurement:
    return msgspec.convert(worker.ask({"way": way, "kind": kind, "number": number}), DecodeMeasurement)
