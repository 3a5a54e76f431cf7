"""Joins a target and a draft: which strategy guesses ahead and which plan says how far. wiring.models asks for it."""

import sys
from collections.abc import Callable, Sequence

from htfi.decoding.acceptance import AcceptanceAlarm
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.decoding.draft_length.closed_form import ClosedFormPlanner, DraftLengthConfig
from htfi.decoding.draft_length.pass_costs import DRAFT_PRIOR, NominalPassCosts
from htfi.decoding.draft_length.planner import (
    BanditPlanner,
    DraftLengthPlanner,
    FixedLengthPlanner,
    LengthRequest,
    RoundReport,
)
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.jacobi import JacobiStrategy
from htfi.decoding.strategies.lookup import LookupStrategy
from htfi.decoding.strategies.outcomes.strategy import OutcomeStrategy
from htfi.decoding.strategies.tree import TreeStrategy
from htfi.decoding.strategy import DraftStrategy, DraftVerification, NoDraft
from htfi.wiring.models.draft_process import has_core_for_draft, open_draft_process
from htfi.wiring.models.loading import LoadableModel

_STRATEGIES_WITHOUT_DRAFT = ("plain", "lookup", "jacobi")
_TYPICAL_ACCEPTANCE = (
    0.93  # at which a token drafted by the shipped pair stands, somewhat below what was measured
)
_REPLAYABLE_PLANS = ("nominal", "fixed")  # look-aheads under which a run drafts the same again


def speculative_author(target: LoadableModel, draft: LoadableModel, config: DecodingConfig) -> LocalGenerator:
    """The target as an author whose answers are guessed ahead as the settings say; they are the target's own.

    Raises: InvalidInput, DependencyUnavailable.
    """
    return LocalGenerator(
        target.network,
        target.tokenizer,
        target.name,
        config,
        target.tokenizer.opening,
        target.folder.digest,
        build_strategy(target, draft, config),
        build_draft_length_plan(config),
        drafted_by="" if config.strategy in _STRATEGIES_WITHOUT_DRAFT else draft.version,
        alarm=AcceptanceAlarm(),
        kept=target.cached_prompts(target.network),
    )


def build_strategy(target: LoadableModel, draft: LoadableModel, config: DecodingConfig) -> DraftStrategy:
    """The strategy that `config` names. Raises: InvalidInput, DependencyUnavailable when the draft cannot be loaded."""
    match config.strategy:
        case "chain":
            return ChainStrategy(KVSessions(draft.draft_network, config))
        case "tree":
            sessions = KVSessions(draft.draft_network, config)
            return _resetting_if_replayable(lambda: TreeStrategy(sessions), config)
        case "outcomes":
            here = ChainStrategy(
                KVSessions(draft.draft_network, config)
            )  # the same blocks, while the process is not up
            if not has_core_for_draft():
                return here
            return OutcomeStrategy(open_draft_process(draft, config, warn), here)
        case "lookup":
            vocab_size = target.network.shape.vocab_size
            return _resetting_if_replayable(lambda: LookupStrategy(vocab_size), config)
        case "jacobi":
            return _resetting_if_replayable(JacobiStrategy, config)
        case _:
            return NoDraft()


def build_draft_length_plan(config: DecodingConfig) -> DraftLengthPlanner:
    """The plan that `config` names."""
    limits = DraftLengthConfig(max_length=config.max_draft, plain_above_rows=config.plain_above)
    match config.lookahead:
        case "fixed":
            return FixedLengthPlanner(config.max_draft)
        case "measured":
            return ClosedFormPlanner(config=limits)
        case "bandit":
            return BanditPlanner([length for length in BanditPlanner.LENGTHS if length <= config.max_draft])
        case _:
            usual = AcceptanceCurves(max(config.max_draft, 1), _TYPICAL_ACCEPTANCE)
            return FrozenPlanner(
                ClosedFormPlanner(NominalPassCosts(), NominalPassCosts(DRAFT_PRIOR), usual, limits)
            )


def warn(line: str) -> None:
    """A line on standard error, of what goes on beside an answer and changes none."""
    print(f"htfi: {line}", file=sys.stderr)  # noqa: T201  # of a process beside ours, whoever runs us


def _resetting_if_replayable(make: Callable[[], DraftStrategy], config: DecodingConfig) -> DraftStrategy:
    return ResettingStrategy(make) if config.lookahead in _REPLAYABLE_PLANS else make()


class FrozenPlanner:
    """Plans as another does before it has seen anything: what a recorded run drafts tells nothing of earlier rounds."""

    def __init__(self, plan: DraftLengthPlanner) -> None:
        self.name = f"{plan.name}, unlearning"
        self._plan = plan

    def plan(self, asks: Sequence[LengthRequest]) -> list[int]:
        return self._plan.plan(asks)

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        pass


class ResettingStrategy:
    """A strategy that begins anew whenever no answer is under way, for the same reason."""

    def __init__(self, make: Callable[[], DraftStrategy]) -> None:
        self._make = make
        self._inner = make()
        self._stems: set[int] = set()
        self.name = self._inner.name

    def speculate(self, stems: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        self._stems.update(map(id, stems))
        return self._inner.speculate(stems, lengths)

    def verifying(self, stems: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        self._inner.verifying(stems, trees)

    def settle(self, stem: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        self._inner.settle(stem, tree, outcome)

    def leave(self, stem: SequenceState) -> None:
        self._inner.leave(stem)
        self._stems.discard(id(stem))
        if not self._stems:
            self._inner = self._make()
