"""The experts that settings name: the numeric ones, and those over models, which are opened here.

A run's engine and the evaluations ask for them. Only what is named is imported.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from htfi import models
from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import EXPERTS, build_experts
from htfi.forecasting.kinds import AUTO, expand
from htfi.forecasting.ports import Expert, ReturnModel

if TYPE_CHECKING:
    from htfi.decoding.trajectories import ReturnPathSampler

_TRAJECTORY, _FOUNDATION, _POOLED = "mini", "chronos", "pooled"
MODEL_EXPERTS = (_TRAJECTORY, _FOUNDATION, _POOLED)
_ARCH = "arch:"  # and the name of a model of that package
_ARCH_SERIES_PER_INSTANT = 16  # some milliseconds each


def open_experts(config: ForecastConfig, foundation: str = "", mini: str = "") -> tuple[Expert, ...]:
    """Fresh experts in the order of `config.experts`; "auto" stands for all that some kind of series has.

    'mini' reads with the model in the folder `mini`, the shipped target where that is empty; 'chronos' with the
    folder `foundation`, 'pooled' with `config.pooled`; 'arch:garch_t' is fitted by the package arch.
    Raises: InvalidInput for an unknown name or a folder that does not serve, MissingExtra, DependencyUnavailable.
    """
    known, names = sorted({*EXPERTS, *MODEL_EXPERTS}), expand(config.experts)
    of_arch = [name for name in names if name.startswith(_ARCH)]
    unknown = [name for name in names if name not in known and name not in of_arch]
    if unknown:
        named = ", ".join([AUTO, *known, f"{_ARCH}MODEL"])
        raise InvalidInput(f"forecasting.experts: unknown {unknown}: the experts are {named}")
    numeric = tuple(name for name in names if name in EXPERTS)
    found: dict[str, Expert] = {}
    if numeric:
        found |= {expert.name: expert for expert in build_experts(replace(config, experts=numeric))}
    if _TRAJECTORY in config.experts:
        from htfi.forecasting.experts.pretrained import TrajectoryExpert

        sampler = open_path_sampler(Path(mini)) if mini else open_path_sampler()
        found[_TRAJECTORY] = TrajectoryExpert(config, sampler)
    if _FOUNDATION in config.experts:
        from htfi.forecasting.experts.pretrained import FoundationExpert

        if not foundation:
            raise InvalidInput(
                "forecasting.experts names 'chronos': name its folder as forecasting.foundation"
            )
        found[_FOUNDATION] = FoundationExpert(config, open_foundation_model(Path(foundation)))
    if _POOLED in names:
        from htfi.forecasting.experts.pooled.expert import PooledExpert
        from htfi.forecasting.experts.pooled.models import read_models

        fitted = read_models(Path(config.pooled), config.horizons) if config.pooled else None
        found[_POOLED] = PooledExpert(config, fitted)
    for name in of_arch:
        from htfi.adapters.arch.model import ArchModel
        from htfi.forecasting.experts.pretrained import FittedExpert

        model = ArchModel(name.removeprefix(_ARCH))
        found[name] = FittedExpert(config, model, name=name, num_asked=_ARCH_SERIES_PER_INSTANT)
    return tuple(found[name] for name in names)


def open_foundation_model(folder: Path) -> ReturnModel:
    """Raises: MissingExtra; InvalidInput for a folder that holds no model of the Chronos family, or is broken."""
    from htfi.adapters.chronos.model import open_foundation

    return open_foundation(folder)


def open_path_sampler(
    folder: Path = models.TARGET, precision: str = "int8", temperature: float = 1.0
) -> "ReturnPathSampler":
    """Raises: InvalidInput for a folder that cannot be read or has no price tokens; DependencyUnavailable."""
    from htfi.decoding.trajectories import ReturnPathSampler
    from htfi.decoding.vocabulary import Vocabulary
    from htfi.wiring.models.loading import open_model

    opened = open_model(folder, precision)
    return ReturnPathSampler(opened.network, Vocabulary(opened.tokenizer), opened.version, temperature)
