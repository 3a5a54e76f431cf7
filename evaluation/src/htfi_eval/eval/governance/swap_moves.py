"""How far views move when only a name does: what is read, and what is released behind the swap test, before and after
each swap of a line.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.governance import SwapMove
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.fairness.swap_test import judge_swaps, num_moved
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.fact_reader import Asked, FactReader
from htfi.narrative.facts.reading import read_for, reading_record
from htfi.narrative.name_swaps import swapped_texts
from htfi.narrative.neutral_questions import neutral_question
from htfi.narrative.ports import NewsReader
from htfi.narrative.question import Question, question_id
from htfi.pipeline.swap_tests import reading_move, view_move
from htfi_eval.eval.governance.swap_lines import NO_SYMBOL, SwapLine

_NOON_NS = 1_700_000_000_000_000_000
_BATCH, _MODEL_BATCH = 256, 64
_NUM_DRAWS = 2_000
_SEED = 19

LineMoves = list[list[SwapMove]]  # of each line, its swaps


def fact_moves_of(lines: Sequence[SwapLine], facts: FactReader, *, asked: bool) -> LineMoves:
    """What facts mean before and after each swap; `asked`: read for the company, else as an item of a run is."""
    values = _fact_values([one for line in lines for one in line.all_asked], facts, asked=asked)
    return _paired(lines, values, "facts")


def released_moves(lines: Sequence[SwapLine], facts: FactReader, config: FairnessConfig) -> LineMoves:
    """What is released before and after each swap where both views are put to the swap test; a held one is 0.

    `facts` reads with neutral names, as a run does that tests its views.
    """
    texts = [one for line in lines for one in line.all_asked]
    tested = [swapped_texts(text, whom, facts.linker, config.num_swaps) for text, whom in texts]
    asked = list(texts)
    asked += [
        (one.text, (one.symbol or whom[0], one.name))
        for (_, whom), swaps in zip(texts, tested, strict=True)
        for one in swaps
    ]
    values = _fact_values(asked, facts, asked=True)
    after = iter(values[len(texts) :])
    released: list[float] = []
    for before, swaps in zip(values, tested, strict=False):
        verdict = judge_swaps([SwapMove("facts", one.kind, before, next(after)) for one in swaps], config)
        released.append(0.0 if verdict.weight <= config.min_weight else verdict.weight * before)
    return _paired(lines, released, "facts")


def model_moves_of(
    lines: Sequence[SwapLine], reader: NewsReader, name: str, linker: EntityLinker | None = None
) -> LineMoves:
    """What a model makes of each line before and after each swap; with neutral names where there is a `linker`."""
    asked = [_question(text, whom, linker) for line in lines for text, whom in line.all_asked]
    unique = {question_id(one): one for one in asked}
    read: dict[str, NewsView] = {}
    for start in range(0, len(unique), _MODEL_BATCH):
        batch = dict(islice(unique.items(), start, start + _MODEL_BATCH))
        read |= zip(batch, reader.read(list(batch.values()), 600_000.0), strict=True)
    return _paired(lines, [view_move(read[question_id(one)]) for one in asked], name)


def moved_share(moves: LineMoves, limit: float) -> float:
    """The share of swaps that move a view by more than `limit`."""
    return num_moved(joined(moves), limit) / max(len(joined(moves)), 1)


def moved_interval(moves: LineMoves, limit: float) -> tuple[float, float]:
    """The 95% interval of the share, by drawing whole lines again; without a move, up to 3 over the number of lines."""
    counts = np.array([[num_moved(one, limit), len(one)] for one in moves if one], np.float64)  # [N, 2]
    if not len(counts) or not counts[:, 0].any():
        return 0.0, min(3.0 / max(len(counts), 1), 1.0)
    rng = np.random.Generator(np.random.PCG64(_SEED))
    draws = rng.multinomial(len(counts), np.full(len(counts), 1.0 / len(counts)), _NUM_DRAWS) @ counts
    low, high = np.quantile(draws[:, 0] / draws[:, 1], (0.025, 0.975))
    return float(low), float(high)


def joined(moves: LineMoves) -> list[SwapMove]:
    return [one for of_line in moves for one in of_line]


def _paired(lines: Sequence[SwapLine], values: Sequence[float], reader: str) -> LineMoves:
    """The moves of each line from the values of all lines and their swaps, in order."""
    left = iter(values)
    found: LineMoves = []
    for line in lines:
        before = next(left)
        found.append([SwapMove(reader, one.kind.value, before, next(left)) for one in line.swaps])
    return found


def _fact_values(texts: Sequence[tuple[str, Asked]], facts: FactReader, *, asked: bool) -> list[float]:
    found: list[float] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        read = facts.read([text for text, _ in batch], asked=[whom for _, whom in batch] if asked else ())
        found += [
            reading_move(reading_record(one, read_for(one, *whom)))
            for one, (_, whom) in zip(read, batch, strict=True)
        ]
    return found


def _question(text: str, asked: Asked, linker: EntityLinker | None) -> Question:
    symbol, name = asked
    item = News(_NOON_NS, _NOON_NS, "line", 1, "n1", text, (symbol,))
    question = Question(symbol, _NOON_NS + 1, NS_PER_DAY, (item,))
    return question if linker is None else replace(neutral_question(question, name, linker), symbol=NO_SYMBOL)
