"""Fits a head to labelled embeddings: deterministic, numpy alone. `htfi models heads` calls it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import ShapeMismatch
from htfi.narrative.encoding.cues import NUM_BUCKETS, cue_ids
from htfi.narrative.encoding.heads import Floats, Head, softmax


@dataclass(frozen=True, slots=True)
class FittingConfig:
    """`decay` and `cue_decay` are the weights of half the squared norms, per line; `num_steps` of Adam at `rate`."""

    decay: float = 1e-3
    cue_decay: float = 1e-3
    uses_cues: bool = True
    hidden: int = 0  # width of a hidden layer, 0 for none
    num_steps: int = 300
    rate: float = 0.05
    smoothing: float = 0.05  # of labels, against certainty
    seed: int = 7


def fit_head(
    name: str, labels: Sequence[str], embeddings: Floats, texts: Sequence[str], targets: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None, config: FittingConfig | None = None,
) -> Head:  # fmt: skip
    """The head that best tells `targets` [n] (places in `labels`) from embeddings [n, width] and texts.

    `weights` [n] say how much each line counts. The same input gives the same head. Raises: ShapeMismatch.
    """
    config = config or FittingConfig()
    num, width = embeddings.shape
    if not (num == len(texts) == len(targets)):
        raise ShapeMismatch(f"{num} embeddings, {len(texts)} texts, {len(targets)} targets")
    share = np.ones(num) if weights is None else np.asarray(weights, np.float64)
    share = share / share.sum()
    num_labels = len(labels)
    goal = np.full((num, num_labels), config.smoothing / num_labels)
    goal[np.arange(num), targets] += 1.0 - config.smoothing
    mean = embeddings.mean(axis=0, dtype=np.float64)
    spread = embeddings.std(axis=0, dtype=np.float64) + 1e-6
    inputs = (embeddings - mean) / spread / np.sqrt(width)
    rows, ids, values = _cue_entries(texts if config.uses_cues else [""] * num)
    dice = np.random.Generator(np.random.PCG64(config.seed))
    widths = (width, config.hidden, num_labels) if config.hidden else (width, num_labels)
    params: list[NDArray[np.float64]] = []
    for wide, narrow in itertools.pairwise(widths):
        scale = 0.0 if not config.hidden else 1.0 / np.sqrt(wide) if params else 1.0
        params += [dice.standard_normal((wide, narrow)) * scale, np.zeros(narrow)]
    params.append(np.zeros((NUM_BUCKETS, num_labels)))
    decays = [config.decay if array.ndim == 2 else 0.0 for array in params[:-1]] + [config.cue_decay]
    adam = _Adam(params, config.rate)
    for step in range(config.num_steps):
        hiddens = [inputs]
        for depth in range(0, len(params) - 1, 2):
            before = np.tanh(hiddens[-1]) if depth else hiddens[-1]
            hiddens.append(before @ params[depth] + params[depth + 1])
        logits = hiddens[-1].copy()
        if len(ids):
            np.add.at(logits, rows, params[-1][ids] * values[:, None])
        error = (softmax(logits) - goal) * share[:, None]
        grads: list[NDArray[np.float64]] = [np.zeros(0)] * len(params)
        grads[-1] = np.zeros_like(params[-1])
        if len(ids):
            np.add.at(grads[-1], ids, error[rows] * values[:, None])
        back = error
        for depth in range(len(params) - 3, -1, -2):
            before = np.tanh(hiddens[depth // 2]) if depth else inputs
            grads[depth], grads[depth + 1] = before.T @ back, back.sum(axis=0)
            if depth:
                back = (back @ params[depth].T) * (1.0 - before**2)
        grads = [grad + decay * array for grad, decay, array in zip(grads, decays, params, strict=True)]
        adam.step(grads, 1.0 - step / config.num_steps)
    first = params[0] / spread[:, None] / np.sqrt(width)
    layers = [(first, params[1] - mean @ first)]
    layers += [(params[place], params[place + 1]) for place in range(2, len(params) - 1, 2)]
    return Head(
        name=name,
        labels=tuple(labels),
        layers=tuple((weight.astype(np.float32), bias.astype(np.float32)) for weight, bias in layers),
        cues=params[-1].astype(np.float32) if config.uses_cues else None,
    )


def _cue_entries(
    texts: Sequence[str],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The cues of all texts as a sparse matrix: row, bucket, value of each entry; rows have unit length."""
    found = [cue_ids(text) for text in texts]
    rows = np.repeat(np.arange(len(found)), [len(ids) for ids in found])
    ids = np.array([one for ids in found for one in ids], dtype=np.int64)
    values = np.array([1.0 / np.sqrt(len(ids)) for ids in found for _ in ids], dtype=np.float64)
    return rows, ids, values


class _Adam:
    """Adam (Kingma and Ba, 2015) on a list of arrays, changed in place."""

    def __init__(self, params: list[NDArray[np.float64]], rate: float) -> None:
        self._params, self._rate, self._step = params, rate, 0
        self._first = [np.zeros_like(array) for array in params]
        self._second = [np.zeros_like(array) for array in params]

    def step(self, grads: list[NDArray[np.float64]], share: float) -> None:
        """One step at `share` of the full rate."""
        self._step += 1
        for array, grad, first, second in zip(self._params, grads, self._first, self._second, strict=True):
            first += 0.1 * (grad - first)
            second += 0.001 * (grad**2 - second)
            usual = np.sqrt(second / (1 - 0.999**self._step)) + 1e-8
            array -= self._rate * share * (first / (1 - 0.9**self._step)) / usual
