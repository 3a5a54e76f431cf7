"""What reading with neutral names costs: the figures of `htfi eval reading` on labelled lines and the project's own."""

from collections.abc import Callable, Mapping
from pathlib import Path

from htfi.narrative.facts.fact_reader import FactReader
from htfi_eval.commands import ProgressLine
from htfi_eval.eval.reading.labelled import SetReadings, labelled_metrics, load_labelled
from htfi_eval.eval.reading.own_lines import judge_own_lines
from htfi_eval.eval.reading.readings import read_items

# Figures of this evaluation, by those of `htfi eval reading`.
_LABELLED = {
    "neutral_sign_right": "sign_right",
    "neutral_three_class": "three_class",
    "neutral_fires_on_neutral": "fires_on_neutral",
    "neutral_confidence_ece": "confidence_ece",
}
_OWN = {
    "neutral_fires_on_irrelevant": "fires_on_irrelevant",
    "neutral_role_right": "role_right",
    "neutral_role_right_invented_names": "role_right_invented_names",
}
_NUM_ROWS, _NUM_QUICK = 1_000, 100  # of each labelled set


def measure_accuracy(
    data: Path, open_reader: Callable[[Mapping[str, str]], FactReader], seed: int, *, quick: bool
) -> dict[str, float | None]:
    """The figures of a reader, opened with what symbols are called. Raises: InvalidInput, DependencyUnavailable."""
    reader = open_reader({})
    sets = load_labelled(data, _NUM_QUICK if quick else _NUM_ROWS, seed)
    read = [
        SetReadings(one, tuple(read_items(reader, one.items, ProgressLine(f"{one.name}: neutral names"))), {})
        for one in sets
    ]
    labelled = labelled_metrics(read)
    own = judge_own_lines(open_reader).metrics
    return {name: labelled[one] for name, one in _LABELLED.items()} | {
        name: own[one] for name, one in _OWN.items()
    }
