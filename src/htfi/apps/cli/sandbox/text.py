"""The answer of `htfi sandbox` in words: the verdict, each trial, what held the candidate; text and page share them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htfi.governance.sandbox.entries import SHIPPED, SandboxVerdict
from htfi.governance.sandbox.results import TrialResult
from htfi.governance.sandbox.verdict import MIN_REAL_GAIN

if TYPE_CHECKING:
    from htfi.wiring.sandbox.examination import Examination

_SMALLEST = 1e-6  # chance that is written
COLUMNS = (
    "trial",
    "ended",
    "forecasts",
    "loss",
    "p worse",
    "views right",
    "moved",
    "in time",
    "p95 ms",
    "result",
)


def headline(verdict: SandboxVerdict) -> str:
    """The verdict in one sentence."""
    name = f"{verdict.candidate} ({verdict.candidate_kind.value} {verdict.digest[:12]})"
    if not verdict.passed:
        first = verdict.failed[0]
        where = f" in {first.trial}" if first.trial else ""
        return f"{name} is rejected: it fails “{first.check.value}”{where}: {first.why}."
    gain = verdict.gain_is_real
    if gain is not None and gain >= MIN_REAL_GAIN:
        return (
            f"{name} passed, and its gain over the champion is {100 * gain:.1f}% sure to be more than luck."
        )
    return f"{name} passed: it does no harm; a gain over the champion is not shown."


def facts(found: "Examination") -> dict[str, str]:
    """What the verdict rests on."""
    verdict = found.verdict
    champion = verdict.champion_digest
    gain = verdict.gain_is_real
    return {
        "champion": "what ships" if champion == SHIPPED else champion[:12],
        "try": f"number {verdict.num_tries} of {verdict.lineage}; permitted chance of a false pass "
        f"{verdict.permitted_chance:.2g}",
        "gain": "unknown" if gain is None else f"{100 * gain:.1f}% sure to be more than luck, after all tries",
        "history": f"digest {verdict.history_digest[:12]}",
        "recorded": "no" if found.record is None else f"entry {found.record} of the governance log; {found.note}",
        "took": f"{found.seconds:.0f} s",
    }  # fmt: skip


def trial_row(result: TrialResult, verdict: SandboxVerdict) -> tuple[str, ...]:
    """A trial under COLUMNS."""
    failed = [one.check.value for one in verdict.failed if one.trial == result.trial]
    link, champion = result.link, result.champion_link
    ours, theirs = result.answer_p95_ms, result.champion_p95_ms
    if link is not None:
        ours, theirs = link.p95_ms, champion.p95_ms if champion is not None else None
    p95 = "" if ours is None else f"{ours:.1f} / {theirs or 0.0:.1f}"
    return (
        result.trial, result.ending.value, "" if link is not None else f"{result.num_forecasts:,}",
        _figure(result.loss, ".4f"), _chance(result.p_worse), _figure(result.right_views, ".0%"),
        _figure(result.moved, ".3f"), "" if link is None else f"{link.num_in_time} of {link.num_readings}", p95,
        f"fails “{'”, “'.join(failed)}”" if failed else "holds",
    )  # fmt: skip


def enforcement_lines(found: "Examination") -> list[str]:
    """What held the candidate, and what could not."""
    lines = [f"held by: {one}" for one in found.enforcement.enforced]
    lines += [f"NOT ENFORCED here: {one}" for one in found.enforcement.not_enforced]
    if found.verdict.untried:
        lines.append(f"no trial touches: {', '.join(found.verdict.untried)}")
    return lines


def verdict_lines(found: "Examination") -> list[str]:
    """The answer for a terminal."""
    verdict = found.verdict
    lines = [headline(verdict), ""]
    lines += [f"  {name}: {words}" for name, words in facts(found).items()]
    lines.append("")
    for result in verdict.results:
        row = dict(zip(COLUMNS, trial_row(result, verdict), strict=True))
        shown = [
            f"{name} {value}"
            for name, value in row.items()
            if value and name not in ("trial", "ended", "result")
        ]
        ended = "" if result.ending.value == "finished" else f" {result.ending.value}: {result.detail};"
        lines.append(f"  {result.trial}:{ended} {', '.join(shown)}: {row['result']}")
    reasons = [f"  {one.trial or 'all trials'}: {one.check.value}: {one.why}" for one in verdict.failed]
    return [*lines, *(["", "Why:"] if reasons else []), *reasons, "", *enforcement_lines(found)]


def _chance(value: float | None) -> str:
    return f"< {_SMALLEST:g}" if value is not None and value < _SMALLEST else _figure(value, ".2g")


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def cells(results: Sequence[TrialResult], verdict: SandboxVerdict) -> list[tuple[str, ...]]:
    """All trials under COLUMNS."""
    return [trial_row(result, verdict) for result in results]
