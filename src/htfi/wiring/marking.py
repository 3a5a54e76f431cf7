"""What a text's mark is looked for with: marking keys, tokenizers, the seeds of a run's readings."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from htfi import models
from htfi.adapters.keys.mark_key import MARK_KEY_FILE, create_mark_key, load_mark_key, mark_key_of
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.marking import MarkKey, choice_nats, token_odds
from htfi.decoding.noise import Doubles
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import OutputGrammar
from htfi.domain.generation_trace import GenerationTrace
from htfi.narrative.answer import view_grammar
from htfi.narrative.merging import unmerged
from htfi.pipeline.audit.replay import noise_seeds
from htfi.pipeline.record.unread import UnreadEntries
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.models.loading import LoadableModel, open_model
from htfi.wiring.settings import load_settings
from htfi.wiring.verification import find_writer, run_settings

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

    Where the text is longer than the model reads, the rest has the probability 1; at temperature 0 all of it has.
    Raises: DependencyUnavailable.
    """
    if temperature == 0.0:
        return np.ones(len(ids)), 0.0
    opening = list(model.tokenizer.opening) or ids[:1]
    read = [*opening, *ids][: model.network.shape.max_positions]
    odds: Doubles = np.ones(len(ids))
    logits = forward_text(model.network, np.array(read[:-1], np.int64)[None]).logits[0]  # [T, V]
    after = logits[len(opening) - 1 :]
    odds[: len(after)], capacity = token_odds(
        after, ids[: len(after)], model.vocabulary.word_ids, temperature
    )
    return odds, capacity


@dataclass(frozen=True, slots=True)
class WordsChoice:
    """How much chance had a part in the free words of an answer, as sure as the model was when it wrote them.

    `bits` is their entropy; `capacity_nats` the most evidence that noise leaves in them on average (`token_odds`).
    """

    num_tokens: int
    bits: float
    capacity_nats: float


def words_choice(
    model: LoadableModel,
    prompt: Sequence[int],
    tokens: Sequence[int],
    form: OutputGrammar,
    temperature: float,
) -> WordsChoice:
    """The choice that an answer's form and the model left in its field of words.

    Raises: IntegrityError where the tokens do not hold to the form, DependencyUnavailable.
    """
    grammar = CompiledGrammar(form, model.vocabulary)
    free = [(place, step) for place, step, name in grammar.open_positions(tokens) if name == "words"]
    if not free or temperature == 0.0:
        return WordsChoice(len(free), 0.0, 0.0)
    logits = forward_text(model.network, np.array([[*prompt, *tokens[:-1]]], np.int64)).logits[0]  # [T, V]
    nats = capacity = 0.0
    for place, step in free:
        before = logits[len(prompt) + place - 1 : len(prompt) + place]
        entropy, held = choice_nats(before, step.allowed.ids, temperature)
        nats += entropy
        capacity += held
    return WordsChoice(len(free), nats / math.log(2.0), capacity)


@dataclass(slots=True)
class RunSeeds:
    """The seeds that the noise of a run's readings had, each with the decisions that recorded them.

    `num_certain` readings were written at temperature 0, where noise has no part; of `num_other_keys` the noise follows
    from a marking key that is not at hand. `max_tokens` is the longest answer's length, `unread` what was passed over.
    """

    decisions_of: dict[int, list[Decision]] = field(default_factory=dict[int, list[Decision]])
    num_certain: int = 0
    num_other_keys: int = 0
    max_tokens: int = 0
    unread: UnreadEntries = field(default_factory=UnreadEntries)

    def decisions(self) -> list[Decision]:
        """Those with a reading that noise had a part in, each once."""
        found = {one.id: one for decisions in self.decisions_of.values() for one in decisions}
        return list(found.values())


def run_seeds(folder: Path, key: MarkKey | None = None) -> RunSeeds:
    """The seeds of a run's recorded readings; `key` is its marking key, if that is not in its folder.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    log = open_ledger_readonly(folder)
    try:
        return _seeds_of(log.entries(), key or mark_key_of(folder))
    finally:
        log.close()


def _seeds_of(entries: Iterable[bytes], key: MarkKey | None) -> RunSeeds:
    found = RunSeeds()
    for _, decision in found.unread.decisions(entries):
        trace = trace_of(decision)
        if trace is None:
            continue
        if trace.temperature == 0.0:
            found.num_certain += 1
            continue
        try:
            seeds = noise_seeds(decision, trace, key)
        except InvalidInput:
            found.num_other_keys += 1
            continue
        found.max_tokens = max(found.max_tokens, *map(len, trace.paths or (trace.tokens,)))
        for seed in seeds:
            found.decisions_of.setdefault(seed, []).append(decision)
    return found


def trace_of(decision: Decision) -> GenerationTrace | None:
    """How a model came to the view that was read for this decision, if one was."""
    view = unmerged(decision.view) if decision.view is not None else None
    return None if view is None else view.trace


def words_of(decision: Decision) -> str:
    """The words that a model gave as its reason."""
    return decision.view.words if decision.view is not None else ""


def require_seeds(found: RunSeeds, folder: Path) -> None:
    """Raises: InvalidInput where there is no noise to look for."""
    if found.decisions_of:
        return
    if found.num_other_keys:
        raise InvalidInput(
            f"{folder}: the noise of its {found.num_other_keys} readings follows from a marking key: give it with "
            f"--key, or put it into the folder as {MARK_KEY_FILE}"
        )
    if found.num_certain:
        raise InvalidInput(
            f"{folder}: its {found.num_certain} readings were written at temperature 0, where noise chooses nothing: "
            "a text of theirs holds no mark; `htfi ledger replay` writes a reading again"
        )
    none = f"{folder}: no reading by a local model is recorded: there is no noise to look for"
    raise InvalidInput("; ".join((none, *found.unread.sentences())))


def recorded_choice(folder: Path, decision: Decision, model: Path | None) -> WordsChoice:
    """What the form and the model left to choose in the words of a decision's recorded reading.

    `model` is the folder of the model that wrote, if it is not shipped. Raises: InvalidInput, IntegrityError.
    """
    trace = trace_of(decision)
    if trace is None:
        return WordsChoice(0, 0.0, 0.0)
    opened = find_writer(trace.target, model, run_settings(folder, decision).models, "--model")
    form = view_grammar(opened.vocabulary.dialect, trace.num_items)
    return words_choice(opened, trace.prompt, trace.tokens, form, trace.temperature)
