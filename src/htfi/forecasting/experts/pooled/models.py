"""Fitted models of the pooled learner in one file: several by date, so that none forecasts what it was fitted to."""

import hashlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import write_atomically
from htfi.forecasting.experts.pooled.features import FEATURES
from htfi.forecasting.experts.pooled.trees import ScaleTrees
from htfi.forecasting.experts.pooled.typical import typical_trees

FILE = "pooled.json"
FORMAT = "htfi-pooled-1"
_MAX_DEPTH, _MAX_TREES, _MAX_MODELS, _MAX_LEAF = 8, 2_000, 400, 2**26
_MAX_BYTES = 256 * 2**20

Count = Annotated[int, msgspec.Meta(ge=0)]


class EncodedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One fit. It may forecast from bars that end at `from_ns` or later: all that it was fitted to was known by then.

    `linear` [F + 1, H], `features` and `thresholds` [M, D], `leaves` [M, 2^D, H].
    """

    from_ns: int
    num_samples: Count
    linear: list[list[float]]
    features: list[list[Count]]
    thresholds: list[list[float]]
    leaves: list[list[list[int]]]


class EncodedModels(msgspec.Struct, frozen=True, kw_only=True):
    """The file. `fitted_to` names the data."""

    format: str
    horizons: list[int]
    features: list[str]
    fitted_to: list[str]
    models: list[EncodedModel]


class PooledModels:
    """The fits of one file by date. `digest` is that of the file; without fits the typical terms forecast."""

    def __init__(
        self,
        horizons: tuple[int, ...],
        starts_ns: Sequence[int] = (),
        trees: Sequence[ScaleTrees] = (),
        digest: str = "",
    ) -> None:
        self.horizons = horizons
        self.digest = digest
        self._starts_ns, self._trees = starts_ns, trees
        self._typical = typical_trees(horizons)

    @property
    def starts_ns(self) -> tuple[int, ...]:
        """From when on each fit may forecast, rising."""
        return tuple(self._starts_ns)

    def predict(self, x: NDArray[np.float32], ends_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Log scales [n, H] after bars that ended then; by typical terms before the first fit."""
        found = np.empty((len(x), len(self.horizons)))
        first, last = int(ends_ns.min()), int(ends_ns.max())
        ends = [first] if first == last else sorted(set(ends_ns.tolist()))
        for end_ns in ends:
            place = bisect_right(self._starts_ns, end_ns) - 1
            which = slice(None) if first == last else ends_ns == end_ns
            found[which] = (self._trees[place] if place >= 0 else self._typical).predict(x[which])
        return found


def encode_model(trees: ScaleTrees, from_ns: int, num_samples: int) -> EncodedModel:
    return EncodedModel(
        from_ns=from_ns,
        num_samples=num_samples,
        linear=trees.linear.tolist(),
        features=trees.features.tolist(),
        thresholds=trees.thresholds.tolist(),
        leaves=trees.leaves.tolist(),
    )


def write_models(folder: Path, data: bytes) -> None:
    """Write the file of a folder, whole or not at all. Raises: DependencyUnavailable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / FILE, data, private=False)
    except OSError as error:
        raise DependencyUnavailable(f"cannot write {folder / FILE}: {error.strerror}") from error


def read_models(folder: Path, horizons: tuple[int, ...]) -> PooledModels:
    """The fits of a folder, for these horizons. Raises: InvalidInput with what is wrong and what to do."""
    file = folder / FILE
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidInput(f"{file} is larger than {_MAX_BYTES // 2**20} MiB: no pooled model is")
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{folder}: no {FILE}: name a folder that `htfi models fit` wrote") from error
    return decode_models(data, horizons, str(file))


def decode_models(data: bytes, horizons: tuple[int, ...], file: str) -> PooledModels:
    """The fits of a file's content. Raises: InvalidInput."""
    again = "fit it again by `htfi models fit`"
    try:
        encoded = msgspec.json.decode(data, type=EncodedModels)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} is damaged ({error}): {again}") from error
    if encoded.format != FORMAT:
        raise InvalidInput(f"{file} is of the format '{encoded.format}', not '{FORMAT}': {again}")
    if encoded.features != list(FEATURES):
        other = sorted(set(encoded.features) ^ set(FEATURES))
        what = ", ".join(other[:3]) if other else "their order"
        raise InvalidInput(f"{file} was fitted to other features ({what}): {again}")
    missing = [horizon for horizon in horizons if horizon not in encoded.horizons]
    if missing:
        raise InvalidInput(
            f"{file} was fitted to the horizons {encoded.horizons}, not {missing}: {again} with "
            f"--set horizons={list(horizons)}"
        )
    starts = [model.from_ns for model in encoded.models]
    if not starts or len(starts) > _MAX_MODELS or starts != sorted(set(starts)):
        raise InvalidInput(f"{file} is damaged (its fits do not rise in time): {again}")
    kept = [encoded.horizons.index(horizon) for horizon in horizons]
    try:
        trees = [_decode(model, len(encoded.horizons), kept) for model in encoded.models]
    except ValueError as error:
        raise InvalidInput(f"{file} is damaged ({error}): {again}") from error
    return PooledModels(horizons, starts, trees, hashlib.sha256(data).hexdigest())


def _decode(model: EncodedModel, num_outputs: int, kept: list[int]) -> ScaleTrees:
    """Raises: ValueError where shapes or numbers do not fit each other."""
    num = len(model.features)
    depth = len(model.features[0]) if num else 0
    linear = np.array(model.linear, np.float64)
    if linear.shape != (len(FEATURES) + 1, num_outputs) or not bool(np.isfinite(linear).all()):
        raise ValueError(f"its linear terms are {list(linear.shape)}")
    if num > _MAX_TREES or depth > _MAX_DEPTH or (num and not depth):
        raise ValueError(f"{num} trees of depth {depth}")
    features = np.array(model.features, np.int64).reshape(num, depth)
    thresholds = np.array(model.thresholds, np.float32).reshape(num, depth)
    leaves = np.array(model.leaves, np.int64).reshape(num, 2**depth, num_outputs)
    if num and (int(features.max()) >= len(FEATURES) or int(np.abs(leaves).max()) > _MAX_LEAF):
        raise ValueError("a feature or a leaf is out of range")
    if any(math.isnan(threshold) for row in model.thresholds for threshold in row):
        raise ValueError("a threshold is NaN")
    return ScaleTrees(
        np.ascontiguousarray(linear[:, kept]), features, thresholds, np.ascontiguousarray(leaves[:, :, kept])
    )
