"""One evaluation of a pair of mini models: all readers on all cases, with the right headlines and with others'.

`htfi eval mini` runs it, and tells it as a table and a page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from htfi.apps.eval import reading
from htfi.apps.eval.baselines import Features, Fitted, fit, most_common
from htfi.apps.eval.cases import Case, shuffled
from htfi.apps.eval.reading import Losses, Matches, Progress
from htfi.apps.eval.scores import Said, leak, said
from htfi.decoding.author import LocalAuthor
from htfi.domain.errors import MissingExtra
from htfi.narrative.answer import AS_STATED, Trust
from htfi.narrative.ports import Author

TARGET, DRAFT, MOST_COMMON, CEILING = "target", "draft", "usual", "ceiling"
NUM_HEARD = 400  # passages of the perplexities
NUM_UNIGRAM = 3_000  # passages that the unigrams count
NUM_WRITTEN, NUM_PATHS = 320, 96  # stories of the agreement, at temperature 1

Stage = Callable[[str], Progress]  # a stage's name → its progress


@dataclass(frozen=True, slots=True)
class Views:
    """What each reader said. `swapped` are answers to others' headlines, of the cases at `places`."""

    truth: Said
    readers: dict[str, Said]
    places: list[int]
    swapped: dict[str, Said]
    baselines: dict[str, Fitted]
    missing: str = ""  # why there are no baselines of words

    def leak_errors(self, name: str) -> float:
        """How much a reader knows without the right words, in standard errors; see `scores.leak`."""
        plain = self.readers.get(Features.NO_WORDS.value)
        return leak(
            self.swapped[name],
            None if plain is None else plain.at(self.places),
            self.truth.at(self.places),
        )


@dataclass(frozen=True, slots=True)
class Fluency:
    """How well the models expect tokens, and agree on them."""

    losses: dict[str, Losses]  # of target, draft and most common
    views: Mapping[str, Matches]  # by field, at temperature 1
    greedy_views: Mapping[str, Matches]  # at temperature 0
    paths: Matches


def read(
    cases: Sequence[Case],
    training: Sequence[Case],
    authors: Mapping[str, Author],
    stage: Stage,
    trusts: Mapping[str, Trust] = MappingProxyType({}),
) -> Views:
    """Views of models and baselines, at temperature 0; a model's confidence is taken as it has proved.

    Raises InvalidInput where an author refuses.
    """
    others = shuffled(cases)
    places, swapped_cases = [place for place, _ in others], [case for _, case in others]
    readers: dict[str, Said] = {}
    swapped: dict[str, Said] = {}
    for name, author in authors.items():
        trust = trusts.get(name, AS_STATED)
        readers[name] = _views(cases, author, trust, stage(f"{name}: views"))
        swapped[name] = _views(swapped_cases, author, trust, stage(f"{name}: views of others' headlines"))
    baselines: dict[str, Fitted] = {}
    missing = ""
    for features in Features:
        progress = stage(f"logistic regression: {features.value}")
        try:
            fitted = fit(training, features)
        except MissingExtra as error:
            missing = str(error)
            break
        progress(len(training), len(training))
        baselines[features.value] = fitted
        readers[features.value] = fitted.read(cases)
        swapped[features.value] = fitted.read(swapped_cases)
    readers[MOST_COMMON] = most_common(training, len(cases))
    readers[CEILING] = said([case.best for case in cases])
    return Views(said([case.truth for case in cases]), readers, places, swapped, baselines, missing)


def listen(
    cases: Sequence[Case], training: Sequence[Case], target: LocalAuthor, draft: LocalAuthor, stage: Stage
) -> Fluency:
    """Perplexities and agreement of two models of the mini dialect. Raises InvalidInput where one refuses."""
    heard = [reading.labelled(case.passage, target.vocabulary) for case in cases[:NUM_HEARD]]
    known = [reading.labelled(case.passage, target.vocabulary) for case in training[:NUM_UNIGRAM]]
    losses = {
        name: reading.model_losses(author.sessions.network, heard, stage(f"{name}: perplexity"))
        for name, author in ((TARGET, target), (DRAFT, draft))
    }
    losses[MOST_COMMON] = reading.unigram_losses(known, heard, target.vocabulary.tokenizer.vocab_size)
    matches: list[Mapping[str, Matches]] = []
    warm = reading.requests(cases[:NUM_WRITTEN], target, temperature=1.0)
    writings = reading.write(target, warm, stage("target: views at temperature 1"))
    for temperature in (1.0, 0.0):
        asked, written = warm, writings
        if not temperature:
            asked = reading.requests(cases[:NUM_WRITTEN], target, temperature)
            written = reading.write(target, asked, stage("target: views at temperature 0"))
        progress = stage(f"draft: agreement at temperature {temperature:g}")
        matches.append(reading.view_matches(draft, asked, written, progress))
    paths = reading.path_matches(
        target, draft, warm[:NUM_PATHS], writings[:NUM_PATHS], stage("both: paths at temperature 1")
    )
    return Fluency(losses, matches[0], matches[1], paths)


def _views(cases: Sequence[Case], author: Author, trust: Trust, progress: Progress) -> Said:
    asked = reading.requests(cases, author, temperature=0.0)
    return said(reading.understood(reading.write(author, asked, progress), trust))
