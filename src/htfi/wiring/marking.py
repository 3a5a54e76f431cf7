"""What a text's mark is looked for with: marking keys, tokenizers, the seeds of a run's readings."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from htfi import models
from htfi.adapters.keys.mark_key import create_mark_key, load_mark_key
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.marking import MarkKey, token_odds
from htfi.decoding.noise import Doubles
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import InvalidInput
from htfi.narrative.deep_reader import path_seed
from htfi.narrative.merging import unmerged
from htfi.pipeline.record.entry import try_decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.models.loading import LoadableModel, open_model
from htfi.wiring.settings import load_settings

_SLOT = re.compile(r"(\{\w+\})")


def make_key(path: Path) -> MarkKey:
    """A new marking key in a new file. Raises: InvalidInput, DependencyUnavailable."""
    return create_mark_key(path)


def open_key(path: Path) -> MarkKey:
    """Raises: InvalidInput, DependencyUnavailable."""
    return load_mark_key(path)


def open_marking_model(folder: Path | None) -> LoadableModel:
    """The model whose tokens a text has; the shipped target if none is named. Raises: InvalidInput, IntegrityError."""
    config = load_settings().models
    return open_model(folder or models.TARGET, config.precision, config.engine)


def text_tokens(vocabulary: Vocabulary, text: str) -> list[int]:
    """The tokens of a text; a slot such as {symbol} is its control token, where the vocabulary has it."""
    ids: list[int] = []
    for part in _SLOT.split(text):
        slot = vocabulary.tokenizer.special(f"<{part[1:-1]}>") if _SLOT.fullmatch(part) else None
        ids += vocabulary.tokenizer.encode(part) if slot is None else [slot]
    return ids


def read_odds(model: LoadableModel, ids: list[int], temperature: float) -> tuple[Doubles, float]:
    """The probability of each token of a text that is read alone, without its prompt, and its capacity for a mark.

    Where the text is longer than the model reads, the rest has the probability 1. Raises: DependencyUnavailable.
    """
    opening = list(model.tokenizer.opening) or ids[:1]
    read = [*opening, *ids][: model.network.shape.max_positions]
    odds: Doubles = np.ones(len(ids))
    logits = forward_text(model.network, np.array(read[:-1], np.int64)[None]).logits[0]  # [T, V]
    after = logits[len(opening) - 1 :]
    odds[: len(after)], capacity = token_odds(
        after, ids[: len(after)], model.vocabulary.word_ids, temperature
    )
    return odds, capacity


@dataclass(slots=True)
class RunSeeds:
    """The seeds that a run's readings had, each with the decision that recorded it first. `num_certain` readings were
    written at temperature 0, where noise has no part. `max_tokens` is the longest answer's length.
    """

    decision_of: dict[int, str] = field(default_factory=dict[int, str])
    num_certain: int = 0
    max_tokens: int = 0


def run_seeds(folder: Path) -> RunSeeds:
    """The seeds of a run's recorded readings. Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
    log = open_ledger_readonly(folder)
    try:
        return _seeds_of(log.entries())
    finally:
        log.close()


def _seeds_of(entries: Iterable[bytes]) -> RunSeeds:
    found = RunSeeds()
    for entry in entries:
        decision = try_decode_entry(entry)
        view = unmerged(decision.view) if decision is not None and decision.view is not None else None
        if decision is None or view is None or view.trace is None:
            continue
        trace = view.trace
        if trace.temperature == 0.0:
            found.num_certain += 1
            continue
        answers = trace.paths or (trace.tokens,)
        found.max_tokens = max(found.max_tokens, *map(len, answers))
        seeds = [path_seed(trace.seed, path) for path in range(len(trace.paths))] or [trace.seed]
        for seed in seeds:
            found.decision_of.setdefault(seed, decision.id)
    return found


def require_seeds(found: RunSeeds, folder: Path) -> None:
    """Raises: InvalidInput where noise chose no token of the run."""
    if found.decision_of:
        return
    if found.num_certain:
        raise InvalidInput(
            f"{folder}: its {found.num_certain} readings were written at temperature 0, where noise chooses nothing: "
            "a text of theirs holds no mark; `htfi ledger replay` writes a reading again"
        )
    raise InvalidInput(f"{folder}: no reading by a local model is recorded: there is no noise to look for")
