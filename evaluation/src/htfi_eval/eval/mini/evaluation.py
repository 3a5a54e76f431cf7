"""One evaluation of a pair of mini models: all readers on all cases, with the right and with swapped headlines.

`htfi eval mini` runs it and shows a table and a page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from htfi.decoding.local_generator import LocalGenerator
from htfi.domain.errors import MissingExtra
from htfi.narrative.answer import UNCALIBRATED, ConfidenceCalibration
from htfi.narrative.ports import TextGenerator
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.mini import reading
from htfi_eval.eval.mini.baselines import BagOfWordsReader, BaselineFeatures, fit, most_common
from htfi_eval.eval.mini.reading import DraftMatches, TokenLosses
from htfi_eval.eval.mini.scores import EvaluationCase, ReaderAnswers, answers_of, leak, shuffled

TARGET, DRAFT, MOST_COMMON, CEILING = "target", "draft", "usual", "ceiling"
NUM_SCORED_PASSAGES = 400  # passages of the perplexities
NUM_UNIGRAM = 3_000  # passages on which the unigrams are counted
NUM_COMPLETIONS, NUM_PATHS = 320, 96  # stories for the agreement at temperature 1

StageProgress = Callable[[str], ProgressCallback]  # a stage's name → its progress


@dataclass(frozen=True, slots=True)
class ReaderViews:
    """Each reader's answers. `swapped` are answers to other cases' headlines, for the cases at `places`."""

    truth: ReaderAnswers
    readers: dict[str, ReaderAnswers]
    places: list[int]
    swapped: dict[str, ReaderAnswers]
    baselines: dict[str, BagOfWordsReader]
    missing: str = ""  # why there are no baselines of words

    def leak_errors(self, name: str) -> float:
        """How well a reader answers without the right words, in standard errors; see `scores.leak`."""
        plain = self.readers.get(BaselineFeatures.NO_WORDS.value)
        return leak(
            self.swapped[name], None if plain is None else plain.at(self.places), self.truth.at(self.places)
        )


@dataclass(frozen=True, slots=True)
class Fluency:
    """How well the models predict tokens, and how often they agree."""

    losses: dict[str, TokenLosses]  # of target, draft and most common
    views: Mapping[str, DraftMatches]  # by field, at temperature 1
    greedy_views: Mapping[str, DraftMatches]  # at temperature 0
    paths: DraftMatches


def collect_views(
    cases: Sequence[EvaluationCase],
    training: Sequence[EvaluationCase],
    models: Mapping[str, TextGenerator],
    stage: StageProgress,
    trusts: Mapping[str, ConfidenceCalibration] = MappingProxyType({}),
) -> ReaderViews:
    """Views of models and baselines, at temperature 0; a model's confidence is calibrated.

    Raises InvalidInput if a model refuses the request.
    """
    others = shuffled(cases)
    places, swapped_cases = [place for place, _ in others], [case for _, case in others]
    readers: dict[str, ReaderAnswers] = {}
    swapped: dict[str, ReaderAnswers] = {}
    for name, model in models.items():
        trust = trusts.get(name, UNCALIBRATED)
        readers[name] = _views(cases, model, trust, stage(f"{name}: views"))
        swapped[name] = _views(swapped_cases, model, trust, stage(f"{name}: views of shuffled headlines"))
    baselines: dict[str, BagOfWordsReader] = {}
    missing = ""
    for features in BaselineFeatures:
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
    readers[CEILING] = answers_of([case.ideal for case in cases])
    return ReaderViews(
        answers_of([case.truth for case in cases]), readers, places, swapped, baselines, missing
    )


def measure_fluency(
    cases: Sequence[EvaluationCase],
    training: Sequence[EvaluationCase],
    target: LocalGenerator,
    draft: LocalGenerator,
    stage: StageProgress,
) -> Fluency:
    """Perplexities and agreement of two models of the mini dialect. Raises InvalidInput if one refuses."""
    passages = [
        reading.label_passage(case.passage, target.vocabulary) for case in cases[:NUM_SCORED_PASSAGES]
    ]
    known = [reading.label_passage(case.passage, target.vocabulary) for case in training[:NUM_UNIGRAM]]
    losses = {
        name: reading.model_losses(model.sessions.network, passages, stage(f"{name}: perplexity"))
        for name, model in ((TARGET, target), (DRAFT, draft))
    }
    losses[MOST_COMMON] = reading.unigram_losses(known, passages, target.vocabulary.tokenizer.vocab_size)
    matches: list[Mapping[str, DraftMatches]] = []
    warm = reading.requests(cases[:NUM_COMPLETIONS], target, temperature=1.0)
    completions = reading.complete_all(target, warm, stage("target: views at temperature 1"))
    for temperature in (1.0, 0.0):
        batch, written = warm, completions
        if not temperature:
            batch = reading.requests(cases[:NUM_COMPLETIONS], target, temperature)
            written = reading.complete_all(target, batch, stage("target: views at temperature 0"))
        progress = stage(f"draft: agreement at temperature {temperature:g}")
        matches.append(reading.view_matches(draft, batch, written, progress))
    paths = reading.path_matches(
        target, draft, warm[:NUM_PATHS], completions[:NUM_PATHS], stage("both: paths at temperature 1")
    )
    return Fluency(losses, matches[0], matches[1], paths)


def _views(
    cases: Sequence[EvaluationCase],
    model: TextGenerator,
    trust: ConfidenceCalibration,
    progress: ProgressCallback,
) -> ReaderAnswers:
    batch = reading.requests(cases, model, temperature=0.0)
    return answers_of(reading.understandings(reading.complete_all(model, batch, progress), trust))
