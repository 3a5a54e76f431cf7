"""Fits a head to labelled, encoded texts: deterministic, with numpy alone. `htfi models heads` calls it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import ShapeMismatch
from htfi.narrative.encoding.heads import Floats, Head, cue_ids, softmax

_MOMENTS = (0.9, 0.999)
_RAREST_WEIGHT = 1.3  # weight of the rarest cue; the scale of logistic regression on unit rows


@dataclass(frozen=True, slots=True)
class FittingConfig:
    """How a head is fitted. `num_seen` features are learnt per token, by each of `num_fits` fits that are averaged.

    `decay` is AdamW's weight decay; `dropout` hides that share of the inputs; `smoothing` is label smoothing.
    `cue_share` of the sum comes from the words: logistic regression of cost `cue_cost`, fitted apart.
    """

    num_seen: int = 16
    num_fits: int = 4
    num_epochs: int = 3
    batch: int = 32
    rate: float = 4e-3
    decay: float = 0.5
    dropout: float = 0.2
    smoothing: float = 0.05
    cue_share: float = 0.5
    cue_cost: float = 4.0
    num_cue_steps: int = 200
    cue_rate: float = 0.2
    seed: int = 7


@dataclass(frozen=True, slots=True)
class HeadExamples:
    """Training examples of a head: points [n, D], states n × [T, D], texts, targets [n], and weights [n]."""

    points: Floats
    states: Sequence[NDArray[np.floating[Any]]]
    texts: Sequence[str]
    targets: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        sizes = {len(part) for part in (self.points, self.states, self.texts, self.targets, self.weights)}
        if len(sizes) != 1:
            raise ShapeMismatch(f"examples of several lengths: {sorted(sizes)}")


def fit_head(
    name: str, labels: Sequence[str], examples: HeadExamples, config: FittingConfig | None = None
) -> Head:
    """The head that predicts the examples' targets, places in `labels`. The same input gives the same head."""
    config = config or FittingConfig()
    fits = [HeadFit(len(labels), examples, config, config.seed + number) for number in range(config.num_fits)]
    for fit in fits:
        fit.learn()
    width, share = examples.points.shape[1], (1.0 - config.cue_share) / len(fits)
    scales = [fit.weights * share for fit in fits]
    seen = config.num_seen
    highest = [scale[width : width + seen] for scale in scales]
    means = [scale[width + seen :] for scale in scales]
    points = np.sum([scale[:width] for scale in scales], axis=0)
    known, cues = fit_cues(len(labels), examples, config)
    return Head(
        name=name,
        labels=tuple(labels),
        weights=np.concatenate([points, *highest, *means]).astype(np.float32),
        bias=np.sum([fit.bias * share for fit in fits], axis=0).astype(np.float32),
        token_weights=np.concatenate([fit.token_weights for fit in fits], axis=1),
        token_biases=np.concatenate([fit.token_biases for fit in fits]),
        cue_hashes=known,
        cue_weights=cues * np.float32(config.cue_share),
    )


def fit_cues(
    num_labels: int, examples: HeadExamples, config: FittingConfig
) -> tuple[NDArray[np.uint32], Floats]:
    """The cues in the examples, [K], and their weight for each label, [K, labels].

    Logistic regression on the words alone; a cue weighs the more, the fewer texts hold it.
    """
    found = [cue_ids(text) for text in examples.texts]
    num = len(found)
    rows = np.repeat(np.arange(num), [len(ids) for ids in found])
    ids = np.array([one for of_text in found for one in of_text], dtype=np.int64)
    values = np.array([len(of_text) ** -0.5 for of_text in found for _ in of_text])
    known, places, counts = np.unique(ids, return_inverse=True, return_counts=True)
    rarity = np.log((1 + num) / (1 + counts)) / np.log(1 + num) * _RAREST_WEIGHT
    values *= rarity[places]
    cues = np.zeros((len(known), num_labels))
    first, second = np.zeros_like(cues), np.zeros_like(cues)
    goal = np.zeros((num, num_labels))
    goal[np.arange(num), examples.targets] = 1.0
    weight = (examples.weights / examples.weights.sum())[:, None]
    slow, slower = _MOMENTS
    for step in range(1, config.num_cue_steps + 1):
        logits = np.stack(
            [np.bincount(rows, cues[places, label] * values, num) for label in range(num_labels)], axis=1
        )
        error = (softmax(logits.astype(np.float64)) - goal) * weight
        grad = np.stack(
            [np.bincount(places, error[rows, label] * values, len(known)) for label in range(num_labels)],
            axis=1,
        )
        grad += cues / (config.cue_cost * num)
        first += (1 - slow) * (grad - first)
        second += (1 - slower) * (grad**2 - second)
        rate = config.cue_rate * (1.0 - (step - 1) / config.num_cue_steps)
        usual = np.sqrt(second / (1 - slower**step)) + 1e-12
        cues -= rate * (first / (1 - slow**step)) / usual
    return known.astype(np.uint32), (cues * rarity[:, None]).astype(np.float32)


class HeadFit:
    """One fit from one seed: AdamW on cross-entropy."""

    def __init__(self, num_labels: int, examples: HeadExamples, config: FittingConfig, seed: int) -> None:
        self._examples, self._config, self._num_labels = examples, config, num_labels
        self._rng = np.random.Generator(np.random.PCG64(seed))
        width, seen = examples.points.shape[1], config.num_seen
        self.token_weights = self._draw((width, seen), width**-0.5)
        self.token_biases = np.zeros(seen, np.float32)
        self.weights = self._draw((width + 2 * seen, num_labels), 0.3 * (width + 2 * seen) ** -0.5)
        self.bias = np.zeros(num_labels, np.float32)
        params = [self.token_weights, self.token_biases, self.weights, self.bias]
        self._moments = [(array, np.zeros_like(array), np.zeros_like(array)) for array in params]
        self._step = 0

    def learn(self) -> None:
        """All epochs."""
        num, batch = len(self._examples.points), self._config.batch
        num_steps = self._config.num_epochs * -(-num // batch)
        for _ in range(self._config.num_epochs):
            order = self._rng.permutation(num)
            for start in range(0, num, batch):
                grads = self.gradients(order[start : start + batch])
                self._adam(grads, self._config.rate * (1.0 - self._step / num_steps))

    def gradients(self, rows: NDArray[np.int64]) -> list[Floats]:
        """Gradients of the loss on these rows, by token_weights, token_biases, weights and bias."""
        examples, width, seen = self._examples, self._examples.points.shape[1], self._config.num_seen
        states, mask = _padded(
            [examples.states[row] for row in cast(list[int], rows.tolist())]
        )  # [B, T, D], [B, T, 1]
        num_tokens = mask.sum(axis=1)  # [B, 1]
        inner = np.tanh(states @ self.token_weights + self.token_biases)  # [B, T, S]
        top = np.where(mask > 0, inner, -2.0).argmax(axis=1)[:, None, :]  # [B, 1, S]
        shown = np.concatenate(
            [
                examples.points[rows],
                np.take_along_axis(inner, top, axis=1)[:, 0],
                (inner * mask).sum(axis=1) / num_tokens,
            ],
            axis=1,
        )
        kept = self._rng.random(shown.shape) >= self._config.dropout
        shown = np.where(kept, shown / (1.0 - self._config.dropout), 0.0).astype(np.float32)
        logits = shown @ self.weights + self.bias
        smoothing = self._config.smoothing
        goal = np.full(logits.shape, smoothing / self._num_labels)
        goal[np.arange(len(rows)), examples.targets[rows]] += 1.0 - smoothing
        weight = examples.weights[rows][:, None]
        error = ((softmax(logits.astype(np.float64)) - goal) * weight / weight.sum()).astype(np.float32)
        back = np.where(kept, error @ self.weights.T / (1.0 - self._config.dropout), 0.0).astype(np.float32)
        back_inner = (back[:, None, width + seen :] / num_tokens[:, :, None]) * mask  # [B, T, S]
        share = np.take_along_axis(back_inner, top, axis=1) + back[:, None, width : width + seen]
        np.put_along_axis(back_inner, top, share, axis=1)
        back_inner *= 1.0 - inner**2
        flat = back_inner.reshape(-1, seen)
        return [
            states.reshape(-1, width).T @ flat,
            flat.sum(axis=0),
            shown.T @ error,
            error.sum(axis=0),
        ]

    def _adam(self, grads: Sequence[Floats], rate: float) -> None:
        """One step of AdamW (Loshchilov and Hutter, 2019), in place."""
        self._step += 1
        slow, slower = _MOMENTS
        for (array, first, second), grad in zip(self._moments, grads, strict=True):
            first += (1 - slow) * (grad - first)
            second += (1 - slower) * (grad**2 - second)
            usual = np.sqrt(second / (1 - slower**self._step)) + 1e-8
            array -= rate * (first / (1 - slow**self._step)) / usual
            if array.ndim == 2:
                array *= 1.0 - rate * self._config.decay

    def _draw(self, shape: tuple[int, int], spread: float) -> Floats:
        return (self._rng.standard_normal(shape) * spread).astype(np.float32)


def _padded(states: Sequence[NDArray[np.floating[Any]]]) -> tuple[Floats, Floats]:
    longest = max(len(state) for state in states)
    padded = np.zeros((len(states), longest, states[0].shape[1]), np.float32)
    mask = np.zeros((len(states), longest, 1), np.float32)
    for place, state in enumerate(states):
        padded[place, : len(state)] = state
        mask[place, : len(state)] = 1.0
    return padded, mask
