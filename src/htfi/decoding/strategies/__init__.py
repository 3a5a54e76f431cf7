"""Draft strategies, by the name of their module: `decoding.strategy` in the settings."""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from htfi.decoding.strategy import DraftStrategy, StrategyParts


def build_strategy(parts: StrategyParts) -> DraftStrategy:
    """The strategy that the settings name, built by its module (`config.STRATEGIES` lists them).

    Raises: InvalidInput, DependencyUnavailable if the draft cannot be loaded.
    """
    module = import_module(f"{__name__}.{parts.config.strategy}")
    build = cast("Callable[[StrategyParts], DraftStrategy]", module.build)
    return build(parts)
