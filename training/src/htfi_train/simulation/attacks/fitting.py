"""Fits the weights of `narrative.sanitising.wording` to text that this project wrote; deterministic, numpy alone."""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.sanitising import wording_model as wording
from htfi_train.simulation.attacks import honest, injections, pumps
from htfi_train.simulation.rng import Rng

Array = NDArray[np.float64]

_NUM_ATTACKS = 24_000  # of each class
_NUM_HONEST = 60_000
_NUM_WORLDS = 120
_MIN_COUNT = 4
_MAX_FEATURES = 16_000
_RIDGE = 2e-5
_STEPS = 300
_RATE = 8.0


def fit_weights(seed: int, share: float = 1.0, progress: Callable[[int, int], None] | None = None) -> bytes:
    """The weights as a file, from that share of the usual number of texts. The same seed gives the same bytes."""
    num_attacks = max(int(share * _NUM_ATTACKS), 1)
    rng = Rng(seed, 0x5A)
    texts = [injections.draw(rng) for _ in range(num_attacks)]
    texts += [pumps.draw(rng) for _ in range(num_attacks)]
    texts += [honest.draw(rng) for _ in range(int(share * _NUM_HONEST))]
    texts += honest.headlines(seed, int(share * _NUM_WORLDS))
    labels = np.zeros((len(texts), 2))
    labels[:num_attacks, 0] = 1.0
    labels[num_attacks : 2 * num_attacks, 1] = 1.0
    found = [wording.features(text) for text in texts]
    counts = Counter(feature for one in found for feature in set(one))
    names = sorted(name for name, count in counts.items() if count >= _MIN_COUNT and "\n" not in name)
    place = {name: index for index, name in enumerate(names)}
    rows = np.repeat(np.arange(len(found)), [sum(f in place for f in one) for one in found])
    columns = np.array([place[f] for one in found for f in one if f in place])
    norms = np.sqrt(np.array([max(len(one), 1) for one in found], dtype=np.float64))
    values = np.zeros((len(names), 2))
    biases = np.zeros(2)
    for number in range(2):
        values[:, number], biases[number] = _logistic_regression(
            rows, columns, 1.0 / norms[rows], labels[:, number], len(names)
        )
        if progress is not None:
            progress(number + 1, 2)
    kept = np.sort(np.argsort(-np.abs(values).max(axis=1), kind="stable")[:_MAX_FEATURES])
    return wording.write_weights(
        [names[index] for index in kept.tolist()], values[kept], (float(biases[0]), float(biases[1]))
    )


def _logistic_regression(
    rows: NDArray[np.int64], columns: NDArray[np.int64], entries: Array, labels: Array, num_features: int
) -> tuple[Array, float]:
    """Logistic regression with a ridge, by gradient steps with momentum over all texts at once."""
    num = len(labels)
    weights: Array = np.zeros(num_features)
    bias = 0.0
    pull: Array = np.zeros(num_features)
    bias_pull = 0.0
    share = float(labels.mean())
    balance: Array = np.where(labels > 0, 0.5 / share, 0.5 / (1.0 - share))
    for _ in range(_STEPS):
        scores: Array = np.bincount(rows, weights[columns] * entries, minlength=num).astype(np.float64) + bias
        miss: Array = (balance * (1.0 / (1.0 + np.exp(-scores)) - labels)).astype(np.float64)
        gradient: Array = (
            np.bincount(columns, miss[rows] * entries, minlength=num_features) / num + _RIDGE * weights
        )
        pull = 0.95 * pull - _RATE * gradient
        bias_pull = 0.95 * bias_pull - 0.1 * _RATE * float(miss.mean())
        weights, bias = weights + pull, bias + bias_pull
    return weights, bias
