"""Speculative-speculative decoding: during verification the draft works on the likeliest outcomes."""

from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.outcomes.strategy import OutcomeStrategy
from htfi.decoding.strategy import DraftStrategy, StrategyParts


def build(parts: StrategyParts) -> DraftStrategy:
    """The strategy 'outcomes' of the settings; a chain writes the same blocks while the draft's process is down."""
    chain = ChainStrategy(parts.draft_sessions())
    process = parts.start_draft_process()
    return chain if process is None else OutcomeStrategy(process, chain)
