"""How surely marked texts are found, as they are and edited, and how often others are taken for marked.

Free text of 60 tokens at temperature 1 is what `writer.generate` gives: a headline of a simulated story, continued.
News goes on in the form of the news that the target was trained on, and views are answers in their form: both leave
less to choose.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from msgspec.structs import replace

from htfi import models
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.marking import MarkEvidence, MarkKey, find_mark
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
from htfi.wiring.marking import open_marking_model, read_odds, text_tokens
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
NUM_TEXTS, NUM_TEXTS_QUICK = 1000, 16  # twice as many are not marked with the key
NUM_OTHER_TEXTS = 200  # of news and of views, of whose figures no goal depends
_BATCH = 16
_FREE: OutputGrammar = (FreeTextField("words", NUM_TOKENS, ControlToken("/s")),)


@dataclass(frozen=True, slots=True)
class MarkScores:
    """Texts of one kind: how many were looked at, found at 10⁻⁴, and the evidence in nats of each [N]."""

    kind: str
    num: int
    share: float
    nats: tuple[float, ...]
    capacity_nats: float

    def row(self) -> dict[str, object]:
        low, median = np.quantile(self.nats, [0.01, 0.5])
        return {
            "texts": self.kind,
            "number": self.num,
            f"p ≤ {FALSE_POSITIVES:g}": self.share,
            "evidence, median (nats)": float(median),
            "evidence, 1% (nats)": float(low),
            "capacity, mean (nats)": self.capacity_nats,
        }


def figures(quick: bool) -> PartFigures:
    """Detection, as written and edited, and false positives, with the shipped pair. Raises: DependencyUnavailable."""
    num = NUM_TEXTS_QUICK if quick else NUM_TEXTS
    other = min(num, NUM_OTHER_TEXTS)
    settings = override(load_settings(), "models", target=str(models.TARGET), draft=str(models.DRAFT))
    target, draft = open_model_pair(settings.models)
    generator = speculative_generator(target, draft, settings.decoding)
    key, stranger = (MarkKey(np.random.Generator(np.random.PCG64(SEED + n)).bytes(32)) for n in (0, 1))
    search = _Search(open_marking_model(None), key)
    free = write_texts(generator, num, _headline, lambda _: _FREE, key.seed)
    unmarked = write_texts(generator, num, _headline, lambda _: _FREE, lambda seed: seed)
    news = write_texts(generator, other, _news, lambda _: _FREE, key.seed)
    views = write_texts(generator, other, lambda asked: asked.prompt, lambda asked: asked.form, key.seed)
    rng = np.random.Generator(np.random.PCG64(SEED))
    edited = [edit(text, target.vocabulary, rng) for text in free]
    scores = [
        search.scores("free text", free),
        search.scores(f"free text, {EDITED_SHARE:.0%} of tokens edited", edited),
        search.scores("free text, not marked", unmarked),
        _Search(search.model, stranger).scores("free text, marked with another key", free),
        search.scores("news, in the form trained on", news),
        search.scores("views, in their form", views),
    ]
    written, paraphrased, *nulls = scores[:4]
    false = sum(score.share * score.num for score in nulls) / sum(score.num for score in nulls)
    metrics: dict[str, float | None] = {
        "mark_detection": written.share,
        "mark_detection_paraphrased": paraphrased.share,
        "mark_false_positives": false,
        "mark_detection_views": scores[-1].share,
    }
    notes = [
        f"Capacity: the most evidence that {NUM_TOKENS} tokens hold on average, as the target judges them without "
        "their prompt, which leaves it less sure than it was when it wrote.",
        "At temperature 0 no noise chooses, and nothing is marked.",
    ]
    return PartFigures(
        title=f"Marks in texts of {NUM_TOKENS} tokens, temperature 1",
        metrics=metrics,
        rows=[score.row() for score in scores],
        notes=notes,
    )


class _Search:
    """Looks for one key in texts, as `htfi mark verify` does."""

    def __init__(self, model: LoadableModel, key: MarkKey) -> None:
        self.model = model
        self._seeds = key.seeds()

    def find(self, text: str) -> tuple[MarkEvidence, float]:
        ids = text_tokens(self.model.vocabulary, text)
        odds, capacity = read_odds(self.model, ids, 1.0)
        return find_mark(ids, self._seeds, NUM_TOKENS, odds), capacity

    def scores(self, kind: str, texts: Sequence[str]) -> MarkScores:
        found = [self.find(text) for text in texts if text]
        nats = tuple(one.nats for one, _ in found)
        share = sum(one.p_value <= FALSE_POSITIVES for one, _ in found) / len(found)
        return MarkScores(kind, len(found), share, nats, math.fsum(nats for _, nats in found) / len(found))


def write_texts(
    generator: LocalGenerator,
    num: int,
    prompt: Callable[[GenerationRequest], Prompt],
    form: Callable[[GenerationRequest], OutputGrammar],
    seed: Callable[[int], int],
) -> list[str]:
    """The words of `num` answers at temperature 1, each of a story of its own. Raises: DependencyUnavailable."""
    asked = islice(simulated_requests(SEED, generator.dialect, 1.0, open_story_facts(generator.dialect)), num)
    requests = (
        replace(one, prompt=prompt(one), form=form(one), seed=seed(one.seed), shared=0) for one in asked
    )
    return [answer.fields["words"] for answer in _answers(generator, requests)]


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
