"""The experts that settings name: the numeric ones, and those over models, which are opened here.

A run's engine and the evaluations ask for them. Only what is named is loaded.
"""

from dataclasses import replace
from pathlib import Path

from htfi.adapters.chronos.model import open_foundation
from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import EXPERTS, build_experts
from htfi.forecasting.experts.foundation import Foundation
from htfi.forecasting.experts.trajectory import Trajectory
from htfi.forecasting.ports import Expert
from htfi.wiring.trajectories import open_trajectories

MODELLED = (Trajectory.name, Foundation.name)


def open_experts(config: ForecastConfig, foundation: str = "", mini: str = "") -> tuple[Expert, ...]:
    """Fresh experts in the order of `config.experts`.

    'mini' reads with the model in the folder `mini`, the shipped target where that is empty; 'chronos' with the
    folder `foundation`. Raises: InvalidInput for an unknown name or a folder that does not serve, MissingExtra,
    DependencyUnavailable.
    """
    known = sorted({*EXPERTS, *MODELLED})
    unknown = [name for name in config.experts if name not in known]
    if unknown:
        raise InvalidInput(f"forecasting.experts: unknown {unknown}: the experts are {', '.join(known)}")
    numeric = tuple(name for name in config.experts if name not in MODELLED)
    found: dict[str, Expert] = {}
    if numeric:
        found |= {expert.name: expert for expert in build_experts(replace(config, experts=numeric))}
    if Trajectory.name in config.experts:
        sampler = open_trajectories(Path(mini)) if mini else open_trajectories()
        found[Trajectory.name] = Trajectory(config, sampler)
    if Foundation.name in config.experts:
        if not foundation:
            raise InvalidInput(
                "forecasting.experts names 'chronos': name its folder as forecasting.foundation"
            )
        found[Foundation.name] = Foundation(config, open_foundation(Path(foundation)))
    return tuple(found[name] for name in config.experts)
