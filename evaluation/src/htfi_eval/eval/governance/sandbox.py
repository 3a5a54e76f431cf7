"""How many planted bad candidates the sandbox rejects, and how many harmless ones it passes."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from htfi.governance.sandbox.results import Bounds
from htfi.wiring.sandbox.candidates import open_candidate
from htfi.wiring.sandbox.examination import ChampionSides, Examination, examine
from htfi.wiring.sandbox.history import TrialHistory, read_history
from htfi_eval.commands import ProgressLine
from htfi_eval.eval.governance.planted_candidates import PlantedCandidate, plant_candidates
from htfi_eval.results import PartFigures

_SEED = 1907  # trials of all candidates, so that the champion runs each of them once
_NUM_BARS = 400  # with 200 a trial cannot show that a harmless candidate is not worse
_QUICK_BAD, _QUICK_GOOD = 4, 2
_ANSWER_S = 4.0


def figures(quick: bool) -> PartFigures:
    """`sandbox_bad_rejected` and `sandbox_good_passed`, as shares; `quick` tries a few candidates without models."""
    history = read_history()
    with tempfile.TemporaryDirectory(prefix="htfi-eval-") as folder:
        planted = plant_candidates(Path(folder), history.bars, with_models=not quick)
        if quick:
            bad, good = [one for one in planted if one.is_bad], [one for one in planted if not one.is_bad]
            planted = [*bad[:_QUICK_BAD], *good[:_QUICK_GOOD]]
        return tried(planted, history, _NUM_BARS)


def tried(planted: Sequence[PlantedCandidate], history: TrialHistory, num_bars: int) -> PartFigures:
    """Try each of them on the same trials."""
    champions, rows = ChampionSides(), list[dict[str, Any]]()
    num_right = {True: 0, False: 0}
    enforced: tuple[str, ...] = ()
    line = ProgressLine("candidates")
    for place, one in enumerate(planted):
        found = _examine(one, history, num_bars, champions)
        enforced = found.enforcement.not_enforced or enforced
        is_right = found.verdict.passed is not one.is_bad
        num_right[one.is_bad] += is_right
        rows.append(_row(one, found, is_right))
        line(place + 1, len(planted))
    num_bad = sum(one.is_bad for one in planted)
    num_good = len(planted) - num_bad
    return PartFigures(
        title="The sandbox: planted candidates",
        metrics={
            "sandbox_bad_rejected": num_right[True] / num_bad if num_bad else None,
            "sandbox_good_passed": num_right[False] / num_good if num_good else None,
        },
        rows=rows,
        notes=[
            f"{num_right[True]} of {num_bad} bad candidates are rejected, "
            f"{num_right[False]} of {num_good} harmless ones pass",
            *(f"not enforced on this machine: {words}" for words in enforced),
        ],
    )


def _examine(
    one: PlantedCandidate, history: TrialHistory, num_bars: int, champions: ChampionSides
) -> Examination:
    candidate = open_candidate(one.place)
    bounds = None if candidate.reads_news else msgspec.structs.replace(Bounds(), answer_s=_ANSWER_S)
    return examine(candidate, history, seed=_SEED, num_bars=num_bars, bounds=bounds, champions=champions)


def _row(one: PlantedCandidate, found: Examination, is_right: bool) -> dict[str, Any]:
    failed = found.verdict.failed
    return {
        "candidate": one.name,
        "planted as": "bad" if one.is_bad else "harmless",
        "verdict": "passed" if found.verdict.passed else "rejected",
        "right": "yes" if is_right else "NO",
        "why": f"{failed[0].check.value} ({failed[0].trial}): {failed[0].why}" if failed else "",
        "s": round(found.seconds, 1),
    }
