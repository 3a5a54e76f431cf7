"""Introduces a language model's price tokens to forecasting: the shipped model or a folder, as a path sampler."""

from pathlib import Path

from htfi import models
from htfi.decoding.trajectories import Trajectories
from htfi.decoding.vocabulary import Vocabulary
from htfi.wiring.open_folder import open_folder


def open_trajectories(
    folder: Path = models.TARGET, precision: str = "int8", temperature: float = 1.0
) -> Trajectories:
    """Raises: InvalidInput for a folder that cannot be read or has no price tokens; DependencyUnavailable."""
    opened = open_folder(folder, precision)
    return Trajectories(opened.network, Vocabulary(opened.tokenizer), opened.version, temperature)
