"""Trains the heads of the encoder on lines drawn from the corpora, for `htfi models heads`."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.narrative.encoding.heads import Head, cue_ids, save_heads
from htfi.narrative.ports import TextEncoder
from htfi_train.head_fitting import HeadExamples, fit_head
from htfi_train.simulation.labelled_lines import LabelledLine, TemplateCorpus, draw_lines, read_corpus

SEED = 1
_HELD_BACK = 5  # one template in so many is held back to calibrate and to judge
_TEMPERATURES = np.geomspace(0.5, 4.0, 43)


@dataclass(frozen=True, slots=True)
class HeadScore:
    """How a head did on lines of templates that it did not learn from. Shares are 0–1; loss in nats."""

    head: str
    num_lines: int
    num_held_back: int
    macro_f1: float
    loss: float
    calibration_error: float
    temperature: float


def read_corpora(folder: Path) -> list[TemplateCorpus]:
    """Every corpus of a folder, by the name of its head. Raises: InvalidInput."""
    files = sorted(folder.glob("*.txt"))
    found = [read_corpus(file) for file in files if file.read_text("utf-8").startswith("#!")]
    if not found:
        raise InvalidInput(f"{folder}: no corpora; name the folder of the project's 'corpora' with --corpora")
    return sorted(found, key=lambda corpus: corpus.head)


LabelledText = tuple[str, str]  # a text, and the letter of its label in the head's corpus


def make_heads(
    corpora: Sequence[TemplateCorpus],
    encoder: TextEncoder,
    out: Path,
    progress: Callable[[str], None],
    unseen: Mapping[str, Sequence[LabelledText]] = MappingProxyType({}),
) -> tuple[str, list[HeadScore]]:
    """Fit, calibrate and write a head per corpus; the digest of what was written, and how each did.

    `unseen` are by head the texts to calibrate and judge by, where the encoder was tuned with lines of its templates:
    there a template that is held back is not new to it. Raises: InvalidInput.
    """
    heads: list[Head] = []
    judged: list[HeadScore] = []
    card: dict[str, str | float | int] = {"licence": "Apache-2.0", "seed": SEED}
    for corpus in corpora:
        progress(f"{corpus.head}: encoding")
        lines = draw_lines(corpus.templates, corpus.slots, corpus.per_template, SEED)
        examples = encode_lines(lines, corpus, encoder)
        progress(f"{corpus.head}: fitting on {len(lines):,} lines")
        labels = tuple(corpus.labels.values())
        if corpus.head in unseen:
            whole = fit_head(corpus.head, labels, examples)
            score = _score_head(whole, _unseen_examples(unseen[corpus.head], corpus, encoder), len(lines))
        else:
            held = np.array([_is_held_back(corpus, line) for line in lines])
            first = fit_head(corpus.head, labels, _subset(examples, ~held))
            score = _score_head(first, _subset(examples, held), len(lines))
            whole = fit_head(corpus.head, labels, examples)
        judged.append(score)
        heads.append(replace(whole, temperature=score.temperature))
        card |= _card_facts(corpus, score)
    return save_heads(out, heads, encoder.version, card), judged


def encode_lines(lines: Sequence[LabelledLine], corpus: TemplateCorpus, encoder: TextEncoder) -> HeadExamples:
    """The lines as examples in which every label counts alike."""
    letters = list(corpus.labels)
    targets = np.array([letters.index(line.label) for line in lines], dtype=np.int64)
    counts = np.bincount(targets, minlength=len(letters))
    points, states = encoder.read([line.text for line in lines])
    texts = [line.text for line in lines]
    return HeadExamples(points, states, texts, targets, len(lines) / counts[targets])


def _unseen_examples(
    unseen: Sequence[LabelledText], corpus: TemplateCorpus, encoder: TextEncoder
) -> HeadExamples:
    letters = list(corpus.labels)
    texts = [text for text, _ in unseen]
    points, states = encoder.read(texts)
    targets = np.array([letters.index(letter) for _, letter in unseen], dtype=np.int64)
    return HeadExamples(points, states, texts, targets, np.ones(len(texts)))


def calibration_error(shares: NDArray[np.float64], targets: NDArray[np.int64], num_bins: int = 10) -> float:
    """Mean gap between the stated chance of the likeliest label and how often it was right, by bins of the chance."""
    stated, right = shares.max(axis=1), shares.argmax(axis=1) == targets
    bins = np.minimum((stated * num_bins).astype(int), num_bins - 1)
    gaps = [abs(stated[bins == one].sum() - right[bins == one].sum()) for one in range(num_bins)]
    return float(sum(gaps) / max(1, len(targets)))


def macro_f1(targets: NDArray[np.int64], predicted: NDArray[np.int64], num_labels: int) -> float:
    """Mean over the labels of the harmonic mean of precision and recall; a label that no line has counts 0."""
    scores = [
        2
        * np.sum((predicted == one) & (targets == one))
        / max(1, np.sum(predicted == one) + np.sum(targets == one))
        for one in range(num_labels)
    ]
    return float(np.mean(scores))


def _is_held_back(corpus: TemplateCorpus, line: LabelledLine) -> bool:
    template = corpus.templates[line.family]
    return hashlib.sha256(template.text.encode()).digest()[0] % _HELD_BACK == 0


def _subset(examples: HeadExamples, chosen: NDArray[np.bool_]) -> HeadExamples:
    places = np.flatnonzero(chosen)
    if not len(places):
        raise InvalidInput("too few templates: none is left on one side of the split")
    states = [examples.states[place] for place in places.tolist()]
    texts = [examples.texts[place] for place in places.tolist()]
    return HeadExamples(
        examples.points[places], states, texts, examples.targets[places], examples.weights[places]
    )


def _score_head(head: Head, held: HeadExamples, num_lines: int) -> HeadScore:
    words = [cue_ids(text) for text in held.texts]
    logs = np.log(np.maximum(head.probabilities(held.points, held.states, words), 1e-9))
    rows = np.arange(len(logs))

    def at(temperature: float) -> NDArray[np.float64]:
        powers = np.exp(logs / temperature)
        return powers / powers.sum(axis=1, keepdims=True)

    losses = [-np.log(at(one)[rows, held.targets]).mean() for one in _TEMPERATURES]
    best = float(_TEMPERATURES[int(np.argmin(losses))])
    shares = at(best)
    return HeadScore(
        head=head.name,
        num_lines=num_lines,
        num_held_back=len(rows),
        macro_f1=macro_f1(held.targets, shares.argmax(axis=1), shares.shape[1]),
        loss=float(min(losses)),
        calibration_error=calibration_error(shares, held.targets),
        temperature=round(best, 4),
    )


def _card_facts(corpus: TemplateCorpus, score: HeadScore) -> Mapping[str, str | float | int]:
    return {
        f"{corpus.head}_corpus": corpus.digest,
        f"{corpus.head}_templates": len(corpus.templates),
        f"{corpus.head}_lines": score.num_lines,
        f"{corpus.head}_held_back_macro_f1": round(score.macro_f1, 3),
        f"{corpus.head}_held_back_calibration_error": round(score.calibration_error, 3),
    }
