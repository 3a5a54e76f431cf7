"""Runs of every method on the same fresh prompts, and the rows, metrics and charts that follow from them.

A run generates some answers of one kind by every method. A ratio is taken within a run; the median over runs is
reported. All kinds together are pooled run by run, so that each kind counts by its tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import Any

import msgspec

from htfi.library.charts.specs import Chart, Curve, CurveChart, DotChart, DotGroup, StackChart
from htfi_eval.bench.decode.methods import CHAIN, PLAIN, TREE, DecodeMeasurement
from htfi_eval.bench.decode.prompts import OFF_DISTRIBUTION, PromptKind, free_text_kinds
from htfi_eval.bench.processes import WorkerProcess

Row = dict[str, Any]
ALL, ON_DISTRIBUTION = "all kinds", "trained kinds"
# An estimate: the power of one server core at full load. Waiting for another process does not count.
CORE_WATTS = 5.0


@dataclass(slots=True)
class DecodeRuns:
    """Measurements on one target: for each kind and method, the answers of each run."""

    label: str
    answers: dict[tuple[str, str], list[list[DecodeMeasurement]]] = field(
        default_factory=dict[tuple[str, str], list[list[DecodeMeasurement]]]
    )

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(kind for kind, _ in self.answers))

    @property
    def ways(self) -> list[str]:
        return list(dict.fromkeys(way for _, way in self.answers))

    def add(self, kind: str, way: str, run: Sequence[DecodeMeasurement]) -> None:
        self.answers.setdefault((kind, way), []).append(list(run))

    def of(self, kind: str, way: str) -> list[list[DecodeMeasurement]]:
        """The runs of one kind, of all kinds together, or of the kinds in the training data."""
        if kind not in (ALL, ON_DISTRIBUTION):
            return self.answers[kind, way]
        asked = [one for one in self.kinds if kind == ALL or one != OFF_DISTRIBUTION]
        by_kind = [self.answers[one, way] for one in asked]
        return [[answer for run in together for answer in run] for together in zip(*by_kind, strict=True)]

    def num_unlike(self) -> int:
        """Answers whose tokens differ from plain decoding."""
        return sum(
            answer.tokens != reference.tokens
            for (kind, _), runs in self.answers.items()
            for run, plain in zip(runs, self.answers[kind, PLAIN], strict=True)
            for answer, reference in zip(run, plain, strict=True)
        )

    @property
    def num_answers(self) -> int:
        return sum(len(run) for runs in self.answers.values() for run in runs)


def tokens_per_s(run: Sequence[DecodeMeasurement], *, whole: bool = False) -> float:
    """Over the time after the prompt was read, or over the whole request."""
    taken_ms = sum(answer.write_ms + (answer.read_ms if whole else 0.0) for answer in run)
    return 1e3 * sum(answer.num_tokens for answer in run) / taken_ms


def speedup(runs: DecodeRuns, kind: str, way: str, to: str, *, whole: bool = False) -> float:
    """Tokens per second of one method over those of another: the median of paired runs."""
    pairs = zip(runs.of(kind, way), runs.of(kind, to), strict=True)
    return median(tokens_per_s(one, whole=whole) / tokens_per_s(other, whole=whole) for one, other in pairs)


def best_method(runs: DecodeRuns) -> str:
    """The faster of chain and tree on the trained kinds."""
    return max(
        (way for way in (CHAIN, TREE) if way in runs.ways),
        key=lambda way: speedup(runs, ON_DISTRIBUTION, way, PLAIN),
    )


def worst_speedup(runs: DecodeRuns, way: str) -> tuple[float, str]:
    """The lowest speed-up over plain decoding of any kind, and the kind."""
    return min((speedup(runs, kind, way, PLAIN), kind) for kind in runs.kinds)


def cache_hit_rate(runs: DecodeRuns, way: str, kinds: Sequence[str]) -> float:
    """The share of rounds whose outcome was in the cache."""
    answers = [answer for kind in kinds for run in runs.of(kind, way) for answer in run]
    hits, misses = sum(answer.hits for answer in answers), sum(answer.misses for answer in answers)
    return hits / max(hits + misses, 1)


def table_row(runs: DecodeRuns, kind: str, way: str) -> Row:
    """The table row of one kind and method."""
    of = runs.of(kind, way)
    answers = [answer for run in of for answer in run]
    row: Row = {
        "what": f"{runs.label} · {way}" + ("" if kind == ALL else f" · {kind}"),
        "tokens/s": median(tokens_per_s(run) for run in of),
        "request": median(tokens_per_s(run, whole=True) for run in of),
    }
    is_plain = way == PLAIN
    row["× plain"] = "" if is_plain else speedup(runs, kind, way, PLAIN)
    row["× request"] = "" if is_plain else speedup(runs, kind, way, PLAIN, whole=True)
    row["tokens/pass"] = total_of(answers, "num_tokens") / max(total_of(answers, "num_passes"), 1)
    offered, stood = (
        sum(map(sum, counts)) for counts in ([one.offered for one in answers], [one.stood for one in answers])
    )
    looked_up = total_of(answers, "hits") + total_of(answers, "misses")
    row["accepted %"] = 100 * stood / offered if offered else ""
    row["hits %"] = 100 * total_of(answers, "hits") / looked_up if looked_up else ""
    row["draft/wait/verify"] = " / ".join(f"{share:.0f}" for share in time_shares(answers).values())
    row["mJ/token"] = CORE_WATTS * sum(map(_busy_ms, answers)) / total_of(answers, "num_tokens")
    return row


def time_shares(answers: Sequence[DecodeMeasurement]) -> dict[str, float]:
    """Shares of the time after the prompt, in %: drafting on this core, waiting for a draft, verifying."""
    taken_ms, wait_ms = total_of(answers, "write_ms"), total_of(answers, "wait_ms")
    spent_ms = {
        "draft": total_of(answers, "draft_ms") - wait_ms,
        "wait": wait_ms,
        "verify": total_of(answers, "verify_ms"),
    }
    return {name: 100 * ms / taken_ms for name, ms in spent_ms.items()}


def _busy_ms(answer: DecodeMeasurement) -> float:
    """Over all cores; a draft in its own process occupies one core all the time."""
    return answer.write_ms - answer.wait_ms + (answer.write_ms if answer.has_own_process else 0.0)


def total_of(answers: Sequence[DecodeMeasurement], quantity: str) -> float:
    return sum(getattr(answer, quantity) for answer in answers)


def acceptance_by_depth(runs: DecodeRuns, kind: str, way: str) -> list[float]:
    """By depth from 1: of the rounds that drafted this deep, the share accepted up to this depth."""
    answers = [answer for run in runs.of(kind, way) for answer in run]
    deepest = max((len(answer.offered) for answer in answers), default=0)
    shares: list[float] = []
    for depth in range(deepest):
        offered, stood = (
            sum(counts[depth] for counts in all_counts if depth < len(counts))
            for all_counts in ([answer.offered for answer in answers], [answer.stood for answer in answers])
        )
        shares.append(stood / offered)
    return shares


WARM_UP_ROUNDS = 20  # of a kind, for the planner to learn from before measurement
_MAX_WARM_UP_ANSWERS = 12
ReportProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PeerComparison:
    """One run with the peer: tokens per second of the whole request, ours and theirs, plain and speculative."""

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
    report: ReportProgress,
) -> DecodeRuns:
    """All kinds by all methods, `num_runs` times, after the warm-up rounds of each method and kind."""
    runs, numbers = DecodeRuns(label), count()
    for kind in kinds:
        report(f"{label}: {kind.name}")
        _warm(worker, kind.name, ways, numbers)
    for turn in range(num_runs):
        for kind in kinds:
            report(f"{label}: run {turn + 1} of {num_runs}, {kind.name}")
            asked = [next(numbers) for _ in range(kind.num_requests_per_run)]
            for way in _rotated(ways, turn):
                runs.add(kind.name, way, [_completion(worker, kind.name, way, number) for number in asked])
    return runs


def measure_with_peer(
    ours: WorkerProcess, peer: WorkerProcess, way: str, num_runs: int, report: ReportProgress
) -> list[PeerComparison]:
    """Free text, the same prompts to both; `way` is our method. The first run of each kind is a warm-up."""
    found: list[PeerComparison] = []
    for kind in free_text_kinds():
        for turn in range(num_runs + 1):
            report(f"with the peer: {kind.name}, run {turn} of {num_runs}")
            number = 1_000_000 + turn  # far from those of the other kinds
            pair: list[float] = []
            for one in (PLAIN, way):
                answer = _completion(ours, kind.name, one, number)
                pair.append(1e3 * answer.num_tokens / (answer.read_ms + answer.write_ms))
            for assisted in (False, True):
                reply: dict[str, Any] = peer.ask(
                    {"assisted": assisted, "temperature": kind.temperature, "number": number}
                )
                pair.append(1e3 * reply["num_tokens"] / reply["whole_ms"])
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
    """The order starts with another method in every run, so that none always follows the same one."""
    first = turn % len(ways)
    return [*ways[first:], *ways[:first]]


def _completion(worker: WorkerProcess, kind: str, way: str, number: int) -> DecodeMeasurement:
    return msgspec.convert(worker.ask({"way": way, "kind": kind, "number": number}), DecodeMeasurement)


_MAX_DEPTH = 8


def charts(all_runs: Sequence[DecodeRuns], planned: str, drafted: str) -> list[Chart]:
    """`all_runs`: those of the shipped pair first. `planned`: the method of the first chart; `drafted`: of the last."""
    shipped = all_runs[0]
    return [_speedups(all_runs, planned), _times(shipped), _acceptance(shipped, drafted)]


def _speedups(all_runs: Sequence[DecodeRuns], method: str) -> DotChart:
    kinds = [ALL, *all_runs[0].kinds]
    return DotChart(
        "Speed-up by speculation",
        f"Tokens per second over plain decoding, method {method}; one dot per target.",
        kinds,
        [DotGroup(of.label, [speedup(of, kind, method, PLAIN) for kind in kinds]) for of in all_runs],
        zero=1.0,
        unit="×",
    )


def _times(runs: DecodeRuns) -> StackChart:
    answers = {method: [one for run in runs.of(ALL, method) for one in run] for method in runs.ways}
    parts: dict[str, list[float | None]] = {}
    for of in answers.values():
        token_ms = total_of(of, "write_ms") / total_of(of, "num_tokens")
        shares = time_shares(of)
        shares["rest"] = max(100.0 - sum(shares.values()), 0.0)
        for name, share in shares.items():
            parts.setdefault(name, []).append(token_ms * share / 100.0)
    return StackChart(
        "Time per token",
        "Shipped pair, all kinds: milliseconds spent drafting, waiting for a draft, verifying, and on the rest.",
        list(answers),
        [DotGroup(name, values) for name, values in parts.items()],
        unit="ms",
    )


def _acceptance(runs: DecodeRuns, method: str) -> CurveChart:
    found = {kind: acceptance_by_depth(runs, kind, method)[:_MAX_DEPTH] for kind in runs.kinds}
    return CurveChart(
        "Accepted drafts by depth",
        f"Method {method}: of the rounds that drafted this deep, the share accepted up to this depth.",
        [float(depth) for depth in range(1, _MAX_DEPTH + 1)],
        [Curve(kind, list(shares)) for kind, shares in found.items()],
        "depth, tokens",
        "share accepted",
    )
