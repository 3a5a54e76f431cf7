"""Settings of a run with what was promoted in its governance folder: beneath all that its user names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from htfi.wiring.sandbox.promotion import promoted_models
from htfi.wiring.settings import Settings, load_settings, override

Adapt = Callable[[Settings], Settings]
"""Puts what the command line says into settings."""


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """Settings, the digests of the promotions that they hold (by lineage), and a line on each for a person."""

    settings: Settings
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    lines: tuple[str, ...] = ()


def serve_promoted(
    file: Path | None, governance: Path | None, adapt: Adapt = lambda found: found
) -> ServedSettings:
    """The settings of a file and the environment, with those and the models that the governance folder promotes.

    What the user names counts before what is promoted. A user who names a target or a draft gets no promoted model: a
    pair is tried as a pair. Raises: InvalidInput; IntegrityError where something promoted is missing or altered.
    """
    named = adapt(load_settings(file))
    if governance is None:
        return ServedSettings(named)
    names_models = bool(named.models.target or named.models.draft)
    found = promoted_models(governance, with_models=not names_models)
    if not found.digests:
        return ServedSettings(named)
    settings = adapt(load_settings(file, promoted=found.tables))
    if found.folders:
        folders = {role: str(folder) for role, folder in found.folders.items()}
        settings = override(settings, "models", **folders)
    # Of several promotions that stand together all are named, the newest last.
    digests = {lineage: ",".join(one[:12] for one in stack) for lineage, stack in found.digests.items()}
    lines = [f"promoted {role} {folder}" for role, folder in found.folders.items()]
    lines += [f"promoted settings: {', '.join(f'[{name}]' for name in found.tables)}"] if found.tables else []
    return ServedSettings(
        settings, digests, tuple(f"{line} (governance folder {governance})" for line in lines)
    )
