"""From measured answers to rows and metrics: rates, paired ratios, shares of time. `htfi bench decode` reports them.

A run writes some answers of one kind, in every way, on the same fresh prompts. Ratios are those of one run, of which
the median is told; all kinds together are pooled, run by run, so that each counts by its tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from htfi_eval.bench.decode.methods import CHAIN, PLAIN, TREE, DecodeMeasurement
from htfi_eval.bench.decode.prompts import OFF_DISTRIBUTION

Row = dict[str, Any]
ALL, ON_DISTRIBUTION = "all kinds", "on the law"
# An estimate: what a core of a server draws at full load, waiting for another process not counted.
CORE_WATTS = 5.0


@dataclass(slots=True)
class DecodeRuns:
    """What was measured on one target: for each kind and way, the answers of each run."""

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
        """The runs of one kind, of all kinds together, or of those that training taught."""
        if kind not in (ALL, ON_DISTRIBUTION):
            return self.answers[kind, way]
        asked = [one for one in self.kinds if kind == ALL or one != OFF_DISTRIBUTION]
        by_kind = [self.answers[one, way] for one in asked]
        return [[answer for run in together for answer in run] for together in zip(*by_kind, strict=True)]

    def num_unlike(self) -> int:
        """Answers whose tokens are not those of the plain way."""
        return sum(
            answer.tokens != told.tokens
            for (kind, _), runs in self.answers.items()
            for run, plain in zip(runs, self.answers[kind, PLAIN], strict=True)
            for answer, told in zip(run, plain, strict=True)
        )

    @property
    def num_answers(self) -> int:
        return sum(len(run) for runs in self.answers.values() for run in runs)


def tokens_per_s(run: Sequence[DecodeMeasurement], *, whole: bool = False) -> float:
    """Of the time after the prompt is read, or of the whole request."""
    taken_ms = sum(answer.write_ms + (answer.read_ms if whole else 0.0) for answer in run)
    return 1e3 * sum(answer.num_tokens for answer in run) / taken_ms


def speedup(runs: DecodeRuns, kind: str, way: str, to: str, *, whole: bool = False) -> float:
    """Tokens a second in one way over those in another: the median of paired runs."""
    pairs = zip(runs.of(kind, way), runs.of(kind, to), strict=True)
    return median(tokens_per_s(one, whole=whole) / tokens_per_s(other, whole=whole) for one, other in pairs)


def best_method(runs: DecodeRuns) -> str:
    """Of chain and tree the one that gains more where the pair is at home."""
    return max(
        (way for way in (CHAIN, TREE) if way in runs.ways),
        key=lambda way: speedup(runs, ON_DISTRIBUTION, way, PLAIN),
    )


def worst_speedup(runs: DecodeRuns, way: str) -> tuple[float, str]:
    """The least ratio to plain over kinds, and the kind."""
    return min((speedup(runs, kind, way, PLAIN), kind) for kind in runs.kinds)


def cache_hit_rate(runs: DecodeRuns, way: str, kinds: Sequence[str]) -> float:
    """The share of rounds whose outcome was found in the cache."""
    answers = [answer for kind in kinds for run in runs.of(kind, way) for answer in run]
    hits, misses = sum(answer.hits for answer in answers), sum(answer.misses for answer in answers)
    return hits / max(hits + misses, 1)


def table_row(runs: DecodeRuns, kind: str, way: str) -> Row:
    """One kind in one way."""
    of = runs.of(kind, way)
    answers = [answer for run in of for answer in run]
    told: Row = {
        "what": f"{runs.label} · {way}" + ("" if kind == ALL else f" · {kind}"),
        "tokens/s": median(tokens_per_s(run) for run in of),
        "whole": median(tokens_per_s(run, whole=True) for run in of),
    }
    is_plain = way == PLAIN
    told["× plain"] = "" if is_plain else speedup(runs, kind, way, PLAIN)
    told["× whole"] = "" if is_plain else speedup(runs, kind, way, PLAIN, whole=True)
    told["per pass"] = total_of(answers, "num_tokens") / max(total_of(answers, "num_passes"), 1)
    offered, stood = (
        sum(map(sum, counts)) for counts in ([one.offered for one in answers], [one.stood for one in answers])
    )
    looked_up = total_of(answers, "hits") + total_of(answers, "misses")
    told["stood %"] = 100 * stood / offered if offered else ""
    told["hits %"] = 100 * total_of(answers, "hits") / looked_up if looked_up else ""
    told["draft/wait/verify"] = " / ".join(f"{share:.0f}" for share in time_shares(answers).values())
    told["mJ/token"] = CORE_WATTS * sum(map(_busy_ms, answers)) / total_of(answers, "num_tokens")
    return told


def time_shares(answers: Sequence[DecodeMeasurement]) -> dict[str, float]:
    """Of the time after the prompt, in %: what drafting took on this core, waiting for a draft, and verifying."""
    taken_ms, wait_ms = total_of(answers, "write_ms"), total_of(answers, "wait_ms")
    spent_ms = {
        "draft": total_of(answers, "draft_ms") - wait_ms,
        "wait": wait_ms,
        "verify": total_of(answers, "verify_ms"),
    }
    return {name: 100 * ms / taken_ms for name, ms in spent_ms.items()}


def _busy_ms(answer: DecodeMeasurement) -> float:
    """Of all cores; a draft in a process of its own has one, and works all the time."""
    return answer.write_ms - answer.wait_ms + (answer.write_ms if answer.has_own_process else 0.0)


def total_of(answers: Sequence[DecodeMeasurement], quantity: str) -> float:
    return sum(getattr(answer, quantity) for answer in answers)


def acceptance_by_depth(runs: DecodeRuns, kind: str, way: str) -> list[float]:
    """Of the rounds that drafted so deep, the share in which the target agreed so far, by depth from 1."""
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
