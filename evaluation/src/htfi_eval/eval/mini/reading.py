"""Model output for cases: views, the probability of each token, and how often a draft model agrees with its target.

`htfi eval mini` calls it; the prompts are those of `htfi run`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.forward_pass import forward_text
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Network
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import Completion, ControlToken, GenerationRequest, PlainText, RequestRefused
from htfi.narrative.answer import MAX_CITED, ConfidenceCalibration, ParsedAnswer, parse_answer, view_grammar
from htfi.narrative.ports import TextGenerator
from htfi.narrative.question import build_prompt, shown_items
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.mini.scores import EvaluationCase, Floats
from htfi_train.agreement import measure_agreement
from htfi_train.paths.sample import count_path_matches, sample_paths
from htfi_train.simulation.corpus import TokenKind, TrainingSegment

HEADLINES, PATH = "headlines", "path"
FIELDS = ("cites", "cause", "consistency", "words", "direction", "size", "volatility", "confidence")
HORIZON, NUM_PATHS_PER_STORY = 24, 4
LABELS = (HEADLINES, *FIELDS, PATH)
_FIELD_ORDER = ("cites",) * MAX_CITED + FIELDS[1:]
_CHUNK = 16  # stories at a time: the batch size of the engine
_FIELD_OF = {f"cite{turn}": "cites" for turn in range(MAX_CITED)}

_T = TypeVar("_T")


def requests(
    cases: Sequence[EvaluationCase], model: TextGenerator, temperature: float
) -> list[GenerationRequest]:
    """The request of a news reader; the seed is the case's index."""
    batch: list[GenerationRequest] = []
    for place, case in enumerate(cases):
        prompt, shared = build_prompt(case.question, model.dialect)
        form = view_grammar(model.dialect, len(shown_items(case.question)))
        batch.append(GenerationRequest(prompt, form, seed=place, temperature=temperature, shared=shared))
    return batch


def complete_all(
    model: TextGenerator, batch: Sequence[GenerationRequest], progress: ProgressCallback
) -> list[Completion]:
    """One completion per request. Raises InvalidInput if the model refuses one."""
    completions: list[Completion] = []
    for begin in range(0, len(batch), 4 * _CHUNK):
        answers = model.write(batch[begin : begin + 4 * _CHUNK])
        completions += [_accepted(answer, model.version) for answer in answers]
        progress(len(completions), len(batch))
    return completions


def understandings(completions: Sequence[Completion], trust: ConfidenceCalibration) -> list[ParsedAnswer]:
    return [parse_answer(completion.fields, trust) for completion in completions]


def labels(passage: Sequence[TrainingSegment]) -> list[str]:
    """One label per part: headlines, a field of the view, the path, or '' for everything else."""
    found: list[str] = []
    before: ControlToken | None = None
    place = 0  # in the view
    for segment, kind, weight in passage:
        label = ""
        if kind is TokenKind.PATH:
            label = PATH
        elif (
            kind is TokenKind.TEXT
            and isinstance(segment, PlainText)
            and before not in (ControlToken("on"), ControlToken("asset"))
        ):
            label = HEADLINES
        elif kind is TokenKind.VIEW and weight:
            label = _FIELD_ORDER[place]
            place += label != "words" or segment == ControlToken("end")
        found.append(label)
        before = segment if isinstance(segment, ControlToken) else None
    return found


class LabelledPassage(NamedTuple):
    """A passage in ids [T], and for each the number of its label in LABELS, or −1."""

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]


def label_passage(passage: Sequence[TrainingSegment], vocabulary: Vocabulary) -> LabelledPassage:
    ids: list[int] = []
    numbers: list[int] = []
    for part, label in zip(passage, labels(passage), strict=True):
        tokens = vocabulary.segment(part.segment)
        ids += tokens
        numbers += [LABELS.index(label) if label else -1] * len(tokens)
    return LabelledPassage(np.array(ids, np.int64), np.array(numbers, np.int64))


@dataclass(frozen=True, slots=True)
class TokenLosses:
    """Nats of each token by label, as sum and number for every passage: [N, labels]."""

    nats: Floats
    counts: NDArray[np.int64]

    def perplexity(self, *names: str) -> tuple[float, float]:
        """exp of the mean nats over these labels, and its standard error over passages (delta method)."""
        columns = [LABELS.index(name) for name in names]
        nats, counts = self.nats[:, columns].sum(axis=1), self.counts[:, columns].sum(axis=1)
        if not counts.sum():
            return float("nan"), float("nan")
        mean = nats.sum() / counts.sum()
        spread = np.sqrt(np.sum(np.square(nats - mean * counts))) / counts.sum()
        return float(np.exp(mean)), float(np.exp(mean) * spread)


def model_losses(
    network: Network, passages: Sequence[LabelledPassage], progress: ProgressCallback
) -> TokenLosses:
    """Teacher forcing: every token is predicted from the true tokens before it."""
    nats, counts = _no_losses(len(passages))
    order = sorted(range(len(passages)), key=lambda place: len(passages[place].ids))
    for begin in range(0, len(order), _CHUNK):
        places = order[begin : begin + _CHUNK]
        longest = len(passages[places[-1]].ids)
        ids = np.zeros((len(places), longest), np.int64)
        for row, place in enumerate(places):
            ids[row, : len(passages[place].ids)] = passages[place].ids
        logits = forward_text(network, ids).logits
        for row, place in enumerate(places):
            passage = passages[place]
            open_places = np.flatnonzero(passage.labels >= 0)
            before = logits[row, open_places - 1].astype(np.float64)  # [open, V]
            top = before.max(axis=1)
            total = top + np.log(np.exp(before - top[:, None]).sum(axis=1))
            lost = total - before[np.arange(len(open_places)), passage.ids[open_places]]
            _add(nats, counts, place, passage.labels[open_places], lost)
        progress(begin + len(places), len(order))
    return TokenLosses(nats, counts)


def unigram_losses(
    training: Sequence[LabelledPassage], passages: Sequence[LabelledPassage], vocab_size: int
) -> TokenLosses:
    """The same for unigrams: each label's token frequencies, without context."""
    seen = np.full((len(LABELS), vocab_size), 0.5)
    for passage in training:
        inside = passage.labels >= 0
        np.add.at(seen, (passage.labels[inside], passage.ids[inside]), 1.0)
    expected = -np.log(seen / seen.sum(axis=1, keepdims=True))
    nats, counts = _no_losses(len(passages))
    for place, passage in enumerate(passages):
        inside = passage.labels >= 0
        _add(
            nats, counts, place, passage.labels[inside], expected[passage.labels[inside], passage.ids[inside]]
        )
    return TokenLosses(nats, counts)


@dataclass(frozen=True, slots=True)
class DraftMatches:
    """Of the free places in the grammar, how many the draft fills like its target: one pair per group."""

    same: list[int]
    open_places: list[int]

    def rate(self) -> tuple[float, float]:
        """The share and its standard error over groups."""
        same, num = np.array(self.same, np.float64), np.array(self.open_places, np.float64)
        if not num.sum():
            return float("nan"), float("nan")
        share = same.sum() / num.sum()
        return float(share), float(np.sqrt(np.sum(np.square(same - share * num))) / num.sum())


def view_matches(
    draft: LocalGenerator,
    batch: Sequence[GenerationRequest],
    completions: Sequence[Completion],
    progress: ProgressCallback,
) -> Mapping[str, DraftMatches]:
    """Shared-noise agreement by field, along the target's own completion, at the request's temperature.

    Two untrained models agree as well, because the noise decides: read a rate together with the perplexities.
    """
    found = {field: DraftMatches([], []) for field in FIELDS}
    for begin, end in _chunks(len(batch)):
        counted = _accepted(
            measure_agreement(
                draft, batch[begin:end], [completion.tokens for completion in completions[begin:end]]
            ),
            draft.version,
        )
        for field, matches in found.items():
            names = [name for name in counted.num_choices if _FIELD_OF.get(name, name) == field]
            matches.same.append(sum(counted.num_matches[name] for name in names))
            matches.open_places.append(sum(counted.num_choices[name] for name in names))
        progress(end, len(batch))
    return found


def pooled(matches: Mapping[str, DraftMatches]) -> DraftMatches:
    """All fields together."""
    columns = list(matches.values())
    return DraftMatches(
        [sum(row) for row in zip(*(one.same for one in columns), strict=True)],
        [sum(row) for row in zip(*(one.open_places for one in columns), strict=True)],
    )


def path_matches(
    target: LocalGenerator,
    draft: LocalGenerator,
    batch: Sequence[GenerationRequest],
    completions: Sequence[Completion],
    progress: ProgressCallback,
) -> DraftMatches:
    """Agreement on price tokens at temperature 1, along paths that the target samples after its own views."""
    found = DraftMatches([], [])
    vocabulary = target.vocabulary
    for place, (request, completion) in enumerate(zip(batch, completions, strict=True)):
        prefix = [*vocabulary.encode(request.prompt), *completion.tokens, vocabulary.mark("path")]
        drawn = sample_paths(
            target.sessions, vocabulary, prefix, NUM_PATHS_PER_STORY, HORIZON, seed=request.seed
        )
        bins = _accepted(drawn, target.version).bins
        same, num = _accepted(
            count_path_matches(draft.sessions, draft.vocabulary, prefix, bins, seed=request.seed),
            draft.version,
        )
        found.same.append(same)
        found.open_places.append(num)
        if (place + 1) % _CHUNK == 0:
            progress(place + 1, len(batch))
    return found


def _accepted(answer: _T | RequestRefused, version: str) -> _T:
    if isinstance(answer, RequestRefused):
        raise InvalidInput(f"{version} refused: {answer.reason}")
    return answer


def _chunks(num: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + _CHUNK, num)) for begin in range(0, num, _CHUNK))


def _no_losses(num: int) -> tuple[Floats, NDArray[np.int64]]:
    return np.zeros((num, len(LABELS))), np.zeros((num, len(LABELS)), np.int64)


def _add(
    nats: Floats, counts: NDArray[np.int64], place: int, numbers: NDArray[np.int64], lost: Floats
) -> None:
    nats[place] += np.bincount(numbers, lost, len(LABELS))
    counts[place] += np.bincount(numbers, minlength=len(LABELS))
