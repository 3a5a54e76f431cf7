"""Joins a target and a draft: which strategy guesses ahead and which plan says how far. wiring.models asks for it."""

import sys
from collections.abc import Callable, Sequence

from htfi.decoding.acceptance_alarm import AcceptanceAlarm
from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft import DraftTree
from htfi.decoding.lookahead.bandit import Bandit
from htfi.decoding.lookahead.closed_form import ClosedForm, LookaheadConfig
from htfi.decoding.lookahead.costs import DRAFT_PRIOR, NominalCosts
from htfi.decoding.lookahead.plan import Ask, Fixed, Lookahead, Round
from htfi.decoding.lookahead.survival import Survival
from htfi.decoding.sessions import Sessions
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.chain import Chain
from htfi.decoding.strategies.jacobi import Jacobi
from htfi.decoding.strategies.lookup import Lookup
from htfi.decoding.strategies.outcomes import OutcomeStrategy
from htfi.decoding.strategies.tree import Tree
from htfi.decoding.strategy import Outcome, Plain, Strategy
from htfi.wiring.draft_process import has_core_for_draft, open_draft_process
from htfi.wiring.open_folder import OpenFolder

_WITHOUT_DRAFT = ("plain", "lookup", "jacobi")
_USUAL_RATE = 0.93  # at which a token drafted by the shipped pair stands, somewhat below what was measured
_REPLAYED = ("nominal", "fixed")  # look-aheads under which a run drafts the same again


def speculative_author(target: OpenFolder, draft: OpenFolder, config: DecodingConfig) -> LocalAuthor:
    """The target as an author whose answers are guessed ahead as the settings say; they are the target's own.

    Raises: InvalidInput, DependencyUnavailable.
    """
    return LocalAuthor(
        target.network,
        target.tokenizer,
        target.name,
        config,
        target.tokenizer.opening,
        target.folder.digest,
        build_strategy(target, draft, config),
        build_lookahead(config),
        drafted_by="" if config.strategy in _WITHOUT_DRAFT else draft.version,
        alarm=AcceptanceAlarm(),
        kept=target.kept(target.network),
    )


def build_strategy(target: OpenFolder, draft: OpenFolder, config: DecodingConfig) -> Strategy:
    """The strategy that `config` names. Raises: InvalidInput, DependencyUnavailable when the draft cannot be loaded."""
    match config.strategy:
        case "chain":
            return Chain(Sessions(draft.drafting, config))
        case "tree":
            sessions = Sessions(draft.drafting, config)
            return _replayed(lambda: Tree(sessions), config)
        case "outcomes":
            here = Chain(Sessions(draft.drafting, config))  # the same blocks, while the process is not up
            if not has_core_for_draft():
                return here
            return OutcomeStrategy(open_draft_process(draft, config, tell), here)
        case "lookup":
            vocab_size = target.network.shape.vocab_size
            return _replayed(lambda: Lookup(vocab_size), config)
        case "jacobi":
            return _replayed(Jacobi, config)
        case _:
            return Plain()


def build_lookahead(config: DecodingConfig) -> Lookahead:
    """The plan that `config` names."""
    limits = LookaheadConfig(max_length=config.max_draft, off_above_rows=config.plain_above)
    match config.lookahead:
        case "fixed":
            return Fixed(config.max_draft)
        case "measured":
            return ClosedForm(config=limits)
        case "bandit":
            return Bandit([length for length in Bandit.LENGTHS if length <= config.max_draft])
        case _:
            usual = Survival(max(config.max_draft, 1), _USUAL_RATE)
            return Unlearning(ClosedForm(NominalCosts(), NominalCosts(DRAFT_PRIOR), usual, limits))


def tell(line: str) -> None:
    """A line on standard error, of what goes on beside an answer and changes none."""
    print(f"htfi: {line}", file=sys.stderr)  # noqa: T201  # of a process beside ours, whoever runs us


def _replayed(make: Callable[[], Strategy], config: DecodingConfig) -> Strategy:
    return Afresh(make) if config.lookahead in _REPLAYED else make()


class Unlearning:
    """Plans as another does before it has seen anything: what a recorded run drafts tells nothing of earlier rounds."""

    def __init__(self, plan: Lookahead) -> None:
        self.name = f"{plan.name}, unlearning"
        self._plan = plan

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        return self._plan.plan(asks)

    def learn(self, rounds: Sequence[Round]) -> None:
        pass


class Afresh:
    """A strategy that begins anew whenever no answer is under way, for the same reason."""

    def __init__(self, make: Callable[[], Strategy]) -> None:
        self._make = make
        self._inner = make()
        self._stems: set[int] = set()
        self.name = self._inner.name

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        self._stems.update(map(id, stems))
        return self._inner.speculate(stems, lengths)

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        self._inner.verifying(stems, trees)

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        self._inner.settle(stem, tree, outcome)

    def leave(self, stem: Stem) -> None:
        self._inner.leave(stem)
        self._stems.discard(id(stem))
        if not self._stems:
            self._inner = self._make()
