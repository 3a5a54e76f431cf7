"""Chronos, Chronos-Bolt and Chronos-2 as models of returns, loaded from a folder and never from the network.

The folder's own JSON is checked before a library sees it, and only safetensors are read: nothing in it is code.
"""

import hashlib
import json
import logging
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput, require_extra
from htfi.forecasting.scaled_returns import interpolate_levels, sum_quantiles

Array = NDArray[np.float64]

NUM_SAMPLES = 100
MAX_CONTEXT = 512  # returns: more costs time and adds little information about volatility
_MEDIAN = 0.5
_SAMPLE_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # what a hundred samples can show
_MAX_SERIES = 64  # of one pass
_LIBRARIES = ("chronos", "transformers")


class ChronosFamily(Enum):
    """Families by the architecture that a folder's config.json names."""

    SAMPLES = "T5ForConditionalGeneration"
    BOLT = "ChronosBoltModelForForecasting"
    SECOND = "Chronos2Model"


class ChronosModel:
    """Quantiles of coming returns, zero-shot. Implements forecasting's `ReturnModel`; one thread at a time."""

    def __init__(self, kind: ChronosFamily, pipeline: Any, version: str, num_samples: int, seed: int) -> None:
        self.version = version
        self.max_context = min(int(pipeline.model_context_length), MAX_CONTEXT)
        self._kind, self._pipeline = kind, pipeline
        self._num_samples, self._seed = num_samples, seed

    def quantiles(self, contexts: Sequence[Array], horizons: Sequence[int], levels: Sequence[float]) -> Array:
        """Quantiles [n, K, Q] of the sum of the next h returns after each context [T_i], oldest first, in its units.

        NaN for a context without two different finite values, and where the model says nothing finite. A context's
        gaps are left out. The same contexts in the same batch give the same numbers.
        Raises: DependencyUnavailable where the library fails.
        """
        found = np.full((len(contexts), len(horizons), len(levels)), np.nan)
        kept = [_usable_context(context, self.max_context) for context in contexts]
        known = [place for place, context in enumerate(kept) if len(context)]
        for begin in range(0, len(known), _MAX_SERIES):
            group = known[begin : begin + _MAX_SERIES]
            scales = np.array([np.abs(kept[place]).mean() for place in group])
            # The models scale for themselves, but add an epsilon that returns of a few basis points would drown in.
            inputs = [kept[place] / scale for place, scale in zip(group, scales, strict=True)]
            predicted = self._predict(inputs, horizons, levels)
            predicted[~np.isfinite(predicted).all(axis=(1, 2))] = np.nan
            found[group] = predicted * scales[:, None, None]
        return found

    def _predict(self, inputs: Sequence[Array], horizons: Sequence[int], levels: Sequence[float]) -> Array:
        torch: Any = import_module("torch")
        tensors = [torch.from_numpy(values.astype(np.float32)) for values in inputs]
        longest = horizons[-1]
        try:
            with torch.inference_mode(), torch.random.fork_rng(devices=[]), _silence_libraries():
                torch.manual_seed(self._seed)
                if self._kind is ChronosFamily.SAMPLES:
                    drawn = self._pipeline.predict(
                        tensors, prediction_length=longest, num_samples=self._num_samples
                    )
                    paths = np.cumsum(drawn.numpy().astype(np.float64), axis=2)  # [n, N, H]
                    ends = paths[:, :, np.array(horizons) - 1]
                    quantiles_by_level = np.moveaxis(
                        np.quantile(ends, _SAMPLE_LEVELS, axis=1), 0, 2
                    )  # [n, K, P]
                    return interpolate_levels(quantiles_by_level, _SAMPLE_LEVELS, levels)
                predicted = self._pipeline.predict(tensors, prediction_length=longest)
                rows = (
                    predicted
                    if isinstance(predicted, torch.Tensor)
                    else torch.stack([forecast[0] for forecast in predicted])
                )
                by_bar = rows.numpy().astype(np.float64).swapaxes(1, 2)  # [n, H, P]
        except (RuntimeError, ValueError, AssertionError, IndexError, TypeError) as error:
            raise DependencyUnavailable(f"{self.version} gave no forecast: {_first_line(error)}") from error
        own = [float(level) for level in self._pipeline.quantiles]
        ordered = np.sort(by_bar, axis=2)
        return interpolate_levels(sum_quantiles(ordered, own.index(_MEDIAN), horizons), own, levels)


def open_foundation(folder: Path, *, num_samples: int = NUM_SAMPLES, seed: int = 0) -> ChronosModel:
    """Load a folder of the Chronos family on the CPU.

    Raises: MissingExtra; InvalidInput for a folder that holds none of them, or is broken.
    """
    require_extra("forecasting.foundation", "foundation", "chronos", "torch")
    kind = _kind(folder)
    chronos: Any = import_module("chronos")
    torch: Any = import_module("torch")
    classes: dict[ChronosFamily, Any] = {
        ChronosFamily.SAMPLES: chronos.ChronosPipeline,
        ChronosFamily.BOLT: chronos.ChronosBoltPipeline,
        ChronosFamily.SECOND: chronos.Chronos2Pipeline,
    }
    try:
        with _silence_libraries(), _without_progress():
            pipeline = classes[kind].from_pretrained(
                str(folder), local_files_only=True, use_safetensors=True, dtype=torch.float32
            )
    except Exception as error:  # whatever a library makes of a broken folder
        raise InvalidInput(f"{folder}: cannot be loaded as {kind.value}: {_first_line(error)}") from error
    if kind is not ChronosFamily.SAMPLES and _MEDIAN not in pipeline.quantiles:
        raise InvalidInput(f"{folder}: the model states no median: its quantiles are {pipeline.quantiles}")
    return ChronosModel(kind, pipeline, f"{folder.name}@{_digest(folder)[:12]}", num_samples, seed)


def _kind(folder: Path) -> ChronosFamily:
    """What a folder says it is. Raises: InvalidInput."""
    file = folder / "config.json"
    try:
        config: object = json.loads(file.read_bytes())
    except OSError as error:
        raise InvalidInput(f"{folder}: no config.json: name the folder of a Chronos model") from error
    except ValueError as error:
        raise InvalidInput(f"{file} is not JSON: copy the whole model folder") from error
    if not isinstance(config, dict):
        raise InvalidInput(f"{file} is not an object: copy the whole model folder")
    known = cast("dict[str, Any]", config)
    named, inner = known.get("architectures"), known.get("chronos_config")
    name = str(cast("list[Any]", named)[0]) if isinstance(named, list) and named else "none"
    if name not in [kind.value for kind in ChronosFamily] or not isinstance(inner, dict):
        raise InvalidInput(
            f"{folder} holds no model of the Chronos family (its architecture: {name}): take Chronos, Chronos-Bolt or "
            "Chronos-2"
        )
    kind = ChronosFamily(name)
    if (
        kind is ChronosFamily.SAMPLES
        and cast("dict[str, Any]", inner).get("tokenizer_class") != "MeanScaleUniformBins"
    ):
        raise InvalidInput(f"{file}: an unknown tokenizer of Chronos; only MeanScaleUniformBins is read")
    if not any(folder.glob("*.safetensors")):
        raise InvalidInput(f"{folder}: no *.safetensors: other weights are not read, for they may hold code")
    return kind


def _usable_context(context: Array, most: int) -> Array:
    """The last finite values; none where fewer than two differ."""
    values = np.asarray(context, np.float64)
    values = values[np.isfinite(values)][-most:]
    return values if len(values) and (values != values[0]).any() else values[:0]


def _digest(folder: Path) -> str:
    """SHA-256 (hex) over configuration and weights."""
    digest = hashlib.sha256()
    for file in sorted([folder / "config.json", *folder.glob("*.safetensors")]):
        digest.update(file.name.encode())
        with file.open("rb") as opened:
            while block := opened.read(2**20):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def _silence_libraries() -> Generator[None]:
    """No progress, hints or warnings of the libraries on a person's screen."""
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _without_progress() -> Generator[None]:
    of_transformers: Any = import_module("transformers.utils.logging")
    shown = of_transformers.is_progress_bar_enabled()
    of_transformers.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            of_transformers.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
