"""The strategy 'plain': no guesses, one token per pass."""

from htfi.decoding.strategy import DraftStrategy, NoDraft, StrategyParts


def build(parts: StrategyParts) -> DraftStrategy:  # noqa: ARG001 (all strategies are built alike)
    return NoDraft()
