"""Joins a target and a draft: the strategy, the draft lengths and the acceptance rule that the settings name."""

from typing import assert_never

from htfi.decoding.acceptance import AcceptanceAlarm
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.decoding.draft_length.closed_form import DraftLengthConfig, ThroughputPlanner
from htfi.decoding.draft_length.pass_costs import DRAFT_PRIOR, NominalPassCosts
from htfi.decoding.draft_length.planner import (
    BanditPlanner,
    DraftLengthPlanner,
    FixedLengthPlanner,
    FrozenPlanner,
)
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.rules.coupled import CoupledRule
from htfi.decoding.rules.rejection import EntropyAwareRule, RejectionRule
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies import build_strategy
from htfi.decoding.strategies.sampled import SampledStrategy
from htfi.decoding.strategy import AcceptanceRule, DraftStrategy, OutcomeDraft, StrategyParts
from htfi.domain.errors import InvalidInput
from htfi.wiring.models.loading import LoadableModel
from htfi.wiring.notices import warn

_TYPICAL_ACCEPTANCE = 0.93  # of the shipped pair's drafted tokens, somewhat below what was measured


def speculative_generator(
    target: LoadableModel,
    draft: LoadableModel,
    config: DecodingConfig,
    rule: AcceptanceRule | None = None,
) -> LocalGenerator:
    """The target as a generator whose answers are drafted and accepted as the settings say, or by another rule.

    Raises: InvalidInput, DependencyUnavailable.
    """
    parts = strategy_parts(target, draft, config)
    strategy = build_strategy(parts)
    return LocalGenerator(
        target.network,
        target.tokenizer,
        target.name,
        config,
        target.tokenizer.opening,
        target.folder.digest,
        strategy,
        build_draft_length_planner(config),
        drafted_by=draft.version if parts.uses_draft else "",
        rule=rule or build_rule(config, strategy),
        alarm=AcceptanceAlarm(),
        kept=target.cached_prompts(target.network),
    )


def strategy_parts(target: LoadableModel, draft: LoadableModel, config: DecodingConfig) -> StrategyParts:
    """What a strategy of this pair is built from."""

    def start_draft_process() -> OutcomeDraft | None:
        from htfi.wiring.models.draft_process import has_core_for_draft, open_draft_process

        return open_draft_process(draft, config, warn) if has_core_for_draft() else None

    return StrategyParts(
        config,
        target.network.shape.vocab_size,
        lambda: KVSessions(draft.draft_network, config),
        start_draft_process,
    )


def build_rule(config: DecodingConfig, strategy: DraftStrategy) -> AcceptanceRule:
    """The acceptance rule that `config` names."""
    widths = strategy.widths if isinstance(strategy, SampledStrategy) else ()
    match config.rule:
        case "coupled":
            return CoupledRule()
        case "rejection":
            return RejectionRule(widths=widths)
        case "entropy_aware":
            return RejectionRule(EntropyAwareRule(), widths)
        case _:
            assert_never(config.rule)


def require_shared_noise(config: DecodingConfig, what: str) -> None:
    """Raises: InvalidInput unless drafted tokens are accepted by the shared noise, which `what` relies on."""
    if config.rule != "coupled":
        raise InvalidInput(
            f"decoding.rule is '{config.rule}'; {what} needs 'coupled', the shared noise: under another rule an answer "
            "depends on what was drafted for it"
        )


def build_draft_length_planner(config: DecodingConfig) -> DraftLengthPlanner:
    """The planner of draft lengths that `config` names."""
    limits = DraftLengthConfig(max_length=config.max_draft_length, plain_above_rows=config.plain_above)
    match config.draft_length:
        case "fixed":
            return FixedLengthPlanner(config.max_draft_length)
        case "measured":
            return ThroughputPlanner(config=limits)
        case "bandit":
            return BanditPlanner(
                [length for length in BanditPlanner.LENGTHS if length <= config.max_draft_length]
            )
        case "nominal":
            typical = AcceptanceCurves(max(config.max_draft_length, 1), _TYPICAL_ACCEPTANCE)
            return FrozenPlanner(
                ThroughputPlanner(NominalPassCosts(), NominalPassCosts(DRAFT_PRIOR), typical, limits)
            )
        case _:
            assert_never(config.draft_length)
