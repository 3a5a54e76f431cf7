"""What int8 changes of what the reader says: the same lines read with the full weights that were quantised."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htfi.narrative.config import EncodingConfig
from htfi.wiring.encoder import folder_encoder
from htfi.wiring.facts import fact_reader
from htfi_eval.commands import ProgressLine
from htfi_eval.eval.reading.labelled import SetReadings
from htfi_eval.eval.reading.readings import read_items
from htfi_eval.eval.reading.scores import Signs, as_signs

MAX_ROWS = 400  # of a set are read again


@dataclass(frozen=True, slots=True)
class Int8Changes:
    """Shares 0–1: `flips`, of the lines with a view by either, those with opposite views; `changes`, of all lines those
    on which one of them says up, down or nothing and the other does not.
    """

    num_lines: int
    flips: float
    changes: float


def int8_changes(shipped: Sequence[Signs], exact: Sequence[Signs]) -> Int8Changes:
    """Of signs −1, 0, 1 by set, as the shipped encoder and as its full weights have them."""
    one, other = np.concatenate(list(shipped)), np.concatenate(list(exact))
    num_views = max(int(((one != 0) | (other != 0)).sum()), 1)
    return Int8Changes(
        len(one), float((one * other < 0).sum() / num_views), float((one != other).sum() / max(len(one), 1))
    )


def measure_int8(sets: Sequence[SetReadings], weights: Path) -> Int8Changes:
    """The first rows of each set read again. Raises: InvalidInput, DependencyUnavailable."""
    config = EncodingConfig(model=str(weights), precision="fp32")
    reader = fact_reader(folder_encoder(weights, config), None)
    exact: list[Signs] = []
    for one in sets:
        progress = ProgressLine(f"{one.of.name}: reading in fp32")
        again = read_items(reader, one.of.items[:MAX_ROWS], progress)
        exact.append(as_signs([read.direction for read in again]))
    return int8_changes([one.said[:MAX_ROWS] for one in sets], exact)
