"""Joins a target and a draft: which strategy guesses ahead and which plan says how far. wiring.models asks for it."""

from collections.abc import Sequence

from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.costs import DRAFT_PRIOR, NominalCosts
from htfi.decoding.lookahead import Ask, ClosedForm, Fixed, Lookahead, LookaheadConfig, Round
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.chain import Chain
from htfi.decoding.strategy import Plain, Strategy
from htfi.domain.errors import InvalidInput
from htfi.wiring.open_folder import OpenFolder


def speculative_author(target: OpenFolder, draft: OpenFolder, config: DecodingConfig) -> LocalAuthor:
    """The target as an author whose answers are guessed ahead as the settings say; they are the target's own.

    Raises: InvalidInput, DependencyUnavailable.
    """
    strategy = build_strategy(draft, config)
    return LocalAuthor(
        target.network,
        target.tokenizer,
        target.name,
        config,
        target.tokenizer.opening,
        target.folder.digest,
        strategy,
        build_lookahead(config),
        drafted_by=draft.version if config.strategy in DRAFTED else "",
    )


DRAFTED = ("chain", "tree", "jacobi", "outcomes")


def build_strategy(draft: OpenFolder, config: DecodingConfig) -> Strategy:
    """Raises: InvalidInput, DependencyUnavailable when the draft cannot be loaded."""
    match config.strategy:
        case "plain":
            return Plain()
        case "chain":
            return Chain(Sessions(draft.network, config))
        case other:
            raise InvalidInput(f"decoding.strategy '{other}' is not known")


def build_lookahead(config: DecodingConfig) -> Lookahead:
    limits = LookaheadConfig(max_length=config.max_draft, off_above_rows=config.plain_above)
    match config.lookahead:
        case "fixed":
            return Fixed(config.max_draft)
        case "measured":
            return ClosedForm(config=limits)
        case _:
            return Unlearning(ClosedForm(NominalCosts(), NominalCosts(DRAFT_PRIOR), config=limits))


class Unlearning:
    """Plans as another does before it has seen anything: what a recorded run drafts tells nothing of earlier rounds."""

    def __init__(self, plan: Lookahead) -> None:
        self.name = f"{plan.name}, unlearning"
        self._plan = plan

    def plan(self, asks: Sequence[Ask]) -> list[int]:
        return self._plan.plan(asks)

    def learn(self, rounds: Sequence[Round]) -> None:
        pass
