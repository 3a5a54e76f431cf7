"""From measured answers to rows and metrics: rates, paired ratios, shares of time. `htfi bench decode` reports them.

A run writes some answers of one kind, in every way, on the same fresh prompts. Ratios are those of one run, of which
the median is told; all kinds together are pooled, run by run, so that each counts by its tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from htfi.apps.bench.decode_ways import CHAIN, PLAIN, TREE, Measured

Row = dict[str, Any]
ALL = "all kinds"
# An estimate: what a core of a server draws at full load, waiting for another process not counted.
CORE_WATTS = 5.0


@dataclass(slots=True)
class Runs:
    """What was measured on one target: for each kind and way, the answers of each run."""

    label: str
    answers: dict[tuple[str, str], list[list[Measured]]] = field(
        default_factory=dict[tuple[str, str], list[list[Measured]]]
    )

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(kind for kind, _ in self.answers))

    @property
    def ways(self) -> list[str]:
        return list(dict.fromkeys(way for _, way in self.answers))

    def add(self, kind: str, way: str, run: Sequence[Measured]) -> None:
        self.answers.setdefault((kind, way), []).append(list(run))

    def of(self, kind: str, way: str) -> list[list[Measured]]:
        """The runs of one kind, or of all kinds together."""
        if kind != ALL:
            return self.answers[kind, way]
        by_kind = [self.answers[one, way] for one in self.kinds if (one, way) in self.answers]
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


def tokens_per_s(run: Sequence[Measured], *, whole: bool = False) -> float:
    """Of the time after the prompt is read, or of the whole request."""
    taken_ms = sum(answer.write_ms + (answer.read_ms if whole else 0.0) for answer in run)
    return 1e3 * sum(answer.num_tokens for answer in run) / taken_ms


def ratio(runs: Runs, kind: str, way: str, to: str, *, whole: bool = False) -> float:
    """Tokens a second in one way over those in another: the median of paired runs."""
    pairs = zip(runs.of(kind, way), runs.of(kind, to), strict=True)
    return median(tokens_per_s(one, whole=whole) / tokens_per_s(other, whole=whole) for one, other in pairs)


def best_way(runs: Runs) -> str:
    """Of chain and tree the one that gains more over all kinds."""
    return max(
        (way for way in (CHAIN, TREE) if way in runs.ways), key=lambda way: ratio(runs, ALL, way, PLAIN)
    )


def worst_kind(runs: Runs, way: str) -> tuple[float, str]:
    """The least ratio to plain over kinds, and the kind."""
    return min((ratio(runs, kind, way, PLAIN), kind) for kind in runs.kinds)


def hit_rate(runs: Runs, way: str, kinds: Sequence[str]) -> float:
    """The share of rounds whose outcome was found in the cache."""
    answers = [answer for kind in kinds for run in runs.of(kind, way) for answer in run]
    hits, misses = sum(answer.hits for answer in answers), sum(answer.misses for answer in answers)
    return hits / max(hits + misses, 1)


def row(runs: Runs, kind: str, way: str) -> Row:
    of = runs.of(kind, way)
    answers = [answer for run in of for answer in run]
    taken_ms = sum(answer.write_ms for answer in answers)
    num_tokens = sum(answer.num_tokens for answer in answers)
    num_drafted = sum(answer.num_drafted for answer in answers)
    draft, verify = (
        sum(getattr(answer, part) for answer in answers) / taken_ms for part in ("draft_ms", "verify_ms")
    )
    told: Row = {
        "what": f"{runs.label} · {kind} · {way}",
        "tokens/s": median(tokens_per_s(run) for run in of),
        "with prompt": median(tokens_per_s(run, whole=True) for run in of),
    }
    if way != PLAIN:
        told |= {
            "× plain": ratio(runs, kind, way, PLAIN),
            "× with prompt": ratio(runs, kind, way, PLAIN, whole=True),
        }
    told |= {"tokens/pass": num_tokens / max(sum(answer.num_passes for answer in answers), 1)}
    if num_drafted:
        told["accepted %"] = 100 * sum(answer.num_accepted for answer in answers) / num_drafted
    waited = sum(answer.wait_ms for answer in answers) / taken_ms
    told |= {"draft %": 100 * (draft - waited), "wait %": 100 * waited, "verify %": 100 * verify}
    if any(answer.hits + answer.misses for answer in answers):
        told["hits %"] = 100 * hit_rate(runs, way, runs.kinds if kind == ALL else [kind])
    told["mJ/token"] = CORE_WATTS * (taken_ms - sum(answer.wait_ms for answer in answers)) / num_tokens
    return told


def survival(runs: Runs, kind: str, way: str) -> list[float]:
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
