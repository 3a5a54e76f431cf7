"""How surely marked texts are found, as they are and edited, and how often others are taken for marked.

Free text of 60 tokens at temperature 1 is what `writer.generate` gives: a headline of a simulated story, continued.
News goes on in the form of the news that the target was trained on, and views are answers in their form: both leave
less to choose.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from msgspec.structs import replace as with_fields

from htfi import models
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.marking import NUM_MARK_SEEDS, MarkEvidence, MarkKey, find_mark, seed_evidence
from htfi.decoding.noise import Doubles
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import (
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    Prompt,
)
from htfi.forecasting.warning.scores import share_interval95
from htfi.wiring.marking import WordsChoice, open_marking_model, read_odds, text_tokens, words_choice
from htfi.wiring.models.loading import LoadableModel
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.models.speculation import speculative_generator
from htfi.wiring.settings import load_settings, override
from htfi_eval.results import PartFigures
from htfi_train.corpus import open_story_facts
from htfi_train.simulation.draft_questions import simulated_requests
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED

SEED = FIRST_EVALUATION_SEED + 91
NUM_TOKENS = 60
FALSE_POSITIVES = 1e-4
EDITED_SHARE = 0.1
NUM_TEXTS, NUM_TEXTS_QUICK = 400, 16  # of 400 that are all found the interval's lower end is above 0.99
NUM_OTHER_TEXTS = 100  # of each other kind, on whose figures no goal depends
_BATCH = 16
_FREE: OutputGrammar = (FreeTextField("words", NUM_TOKENS, ControlToken("/s")),)


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text as the model wrote it, with what chance had a part in."""

    words: str
    choice: WordsChoice


@dataclass(frozen=True, slots=True)
class MarkScores:
    """Texts of one kind: how many were found at 10⁻⁴, and the evidence in nats of each [N]; of those not edited, the
    mean choice when they were written.
    """

    kind: str
    num_found: int
    nats: tuple[float, ...]
    capacity_nats: float
    choices: tuple[WordsChoice, ...] = ()

    @property
    def share(self) -> float:
        return self.num_found / len(self.nats)

    def row(self) -> dict[str, object]:
        low, median = np.quantile(self.nats, [0.01, 0.5])
        begin, end = share_interval95(self.num_found, len(self.nats))
        mean_bits = np.mean([one.bits for one in self.choices]) if self.choices else None
        mean_nats = np.mean([one.capacity_nats for one in self.choices]) if self.choices else None
        return {
            "texts": self.kind,
            f"found at p ≤ {FALSE_POSITIVES:g}": f"{self.num_found} of {len(self.nats)}",
            "95% interval": f"{begin:.3f}–{end:.3f}",
            "evidence, median (nats)": float(median),
            "evidence, 1% (nats)": float(low),
            "choice when written (bits)": None if mean_bits is None else float(mean_bits),
            "of it evidence, at most (nats)": None if mean_nats is None else float(mean_nats),
            "the same, read alone (nats)": self.capacity_nats,
        }


def figures(quick: bool) -> PartFigures:
    """Detection, as written and edited, and false positives, with the shipped pair. Raises: DependencyUnavailable."""
    num = NUM_TEXTS_QUICK if quick else NUM_TEXTS
    other = min(num, NUM_OTHER_TEXTS)
    settings = override(load_settings(), "models", target=str(models.TARGET), draft=str(models.DRAFT))
    target, draft = open_model_pair(settings.models)
    writer = _Writer(speculative_generator(target, draft, settings.decoding), target)
    key, stranger = (MarkKey(np.random.Generator(np.random.PCG64(SEED + n)).bytes(32)) for n in (0, 1))
    search, search_other = (_Search(open_marking_model(None), one) for one in (key, stranger))
    free = writer.write(num, _headline, lambda _: _FREE, key.seed)
    unmarked = writer.write(other, _headline, lambda _: _FREE, lambda seed: seed)
    news = writer.write(other, _news, lambda _: _FREE, key.seed)
    views = writer.write(other, lambda asked: asked.prompt, lambda asked: asked.form, key.seed)
    rng = np.random.Generator(np.random.PCG64(SEED))
    edited = [edit(text.words, target.vocabulary, rng) for text in free]
    written = search.scores("free text", free)
    paraphrased = search.score_words(f"free text, {EDITED_SHARE:.0%} of tokens edited", edited)
    nulls = [
        search.scores("free text, not marked", unmarked),
        search_other.scores("free text, marked with another key", free[:other]),
    ]
    formed = [
        search.scores("news, in the form trained on", news),
        search.scores("views, in their form", views),
    ]
    metrics: dict[str, float | None] = {
        "mark_detection": written.share,
        "mark_detection_paraphrased": paraphrased.share,
        "mark_false_positives": sum(one.num_found for one in nulls) / sum(len(one.nats) for one in nulls),
        "mark_detection_views": formed[-1].share,
    }
    notes = [
        "Choice when written: the entropy of the free words, as sure as the target was with its prompt and form. "
        "Read alone: what `htfi mark verify` can know.",
        f"To reach p = {FALSE_POSITIVES:g} with one of {NUM_MARK_SEEDS} seeds takes "
        f"{math.log(NUM_MARK_SEEDS / FALSE_POSITIVES):.1f} nats.",
        _single_seeds_note([*search.single_seeds(unmarked), *search_other.single_seeds(free[:other])]),
        "At temperature 0 no noise chooses, and nothing is marked.",
    ]
    return PartFigures(
        title=f"Marks in texts of {NUM_TOKENS} tokens, temperature 1",
        metrics=metrics,
        rows=[score.row() for score in (written, paraphrased, *nulls, *formed)],
        notes=notes,
    )


def _single_seeds_note(nats: Sequence[float]) -> str:
    """Each seed alone is a key of its own for a text that it did not write: its p-value keeps the same bound."""
    counts = [
        f"{sum(one >= -math.log(level) for one in nats):,} at {level:g} (at most {level * len(nats):,.0f} expected)"
        for level in (0.01, 0.001, FALSE_POSITIVES)
    ]
    return f"Of {len(nats):,} single seeds, each tried on a text that it did not write: {', '.join(counts)}."


class _Search:
    """Looks for one key in texts, as `htfi mark verify` does."""

    def __init__(self, model: LoadableModel, key: MarkKey) -> None:
        self._model = model
        self._seeds = key.seeds()

    def scores(self, kind: str, texts: Sequence[WrittenText]) -> MarkScores:
        found = self.score_words(kind, [text.words for text in texts])
        return replace(found, choices=tuple(text.choice for text in texts))

    def score_words(self, kind: str, texts: Sequence[str]) -> MarkScores:
        found: list[MarkEvidence] = []
        capacity = 0.0
        for text in filter(None, texts):
            ids, odds, held = self._read(text)
            found.append(find_mark(ids, self._seeds, NUM_TOKENS, odds))
            capacity += held
        num_found = sum(one.p_value <= FALSE_POSITIVES for one in found)
        return MarkScores(kind, num_found, tuple(one.nats for one in found), capacity / len(found))

    def single_seeds(self, texts: Sequence[WrittenText]) -> list[float]:
        """The evidence of each of the key's seeds alone, for each text."""
        nats: list[float] = []
        for text in filter(None, (one.words for one in texts)):
            ids, odds, _ = self._read(text)
            nats += seed_evidence(ids, self._seeds, NUM_TOKENS, odds).tolist()
        return nats

    def _read(self, text: str) -> tuple[list[int], Doubles, float]:
        ids = text_tokens(self._model.vocabulary, text)
        return ids, *read_odds(self._model, ids, 1.0)


class _Writer:
    """Writes texts with the shipped pair at temperature 1, each of a story of its own."""

    def __init__(self, generator: LocalGenerator, target: LoadableModel) -> None:
        self._generator, self._target = generator, target

    def write(
        self,
        num: int,
        prompt: Callable[[GenerationRequest], Prompt],
        form: Callable[[GenerationRequest], OutputGrammar],
        seed: Callable[[int], int],
    ) -> list[WrittenText]:
        """The words of `num` answers. Raises: DependencyUnavailable."""
        dialect = self._generator.dialect
        asked = islice(simulated_requests(SEED, dialect, 1.0, open_story_facts(dialect)), num)
        requests = [
            with_fields(one, prompt=prompt(one), form=form(one), seed=seed(one.seed), shared=0)
            for one in asked
        ]
        return [
            WrittenText(
                answer.fields["words"],
                words_choice(self._target, answer.prompt, answer.tokens, request.form, 1.0),
            )
            for request, answer in zip(requests, _answers(self._generator, iter(requests)), strict=True)
        ]


def _answers(generator: LocalGenerator, requests: Iterator[GenerationRequest]) -> Iterator[Completion]:
    while batch := list(islice(requests, _BATCH)):
        for answer in generator.write(batch):
            if not isinstance(answer, Completion):
                raise DependencyUnavailable(f"nothing was written: {answer.reason}")
            yield answer


def edit(text: str, vocabulary: Vocabulary, rng: np.random.Generator) -> str:
    """The text with a tenth of its tokens replaced, left out, or followed by another, each as often."""
    tokens = vocabulary.tokenizer.encode(text)
    words = vocabulary.word_ids
    edited = set(rng.choice(len(tokens), round(EDITED_SHARE * len(tokens)), replace=False).tolist())
    changed: list[int] = []
    for place, token in enumerate(tokens):
        if place not in edited:
            changed.append(token)
            continue
        kind, other = int(rng.integers(3)), int(rng.choice(words))
        changed += [[other], [], [token, other]][kind]
    return vocabulary.tokenizer.decode(changed)


def _headline(asked: GenerationRequest) -> Prompt:
    """The first words of the question, its newest headline, as plain text."""
    return (next(part for part in asked.prompt if isinstance(part, PlainText)),)


def _news(asked: GenerationRequest) -> Prompt:
    """The news of the question up to the end of its first headline."""
    second = ControlToken("h2") if ControlToken("h2") in asked.prompt else ControlToken("/news")
    return asked.prompt[: asked.prompt.index(second)]
