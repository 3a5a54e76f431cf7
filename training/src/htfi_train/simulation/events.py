"""Events of a simulated world: what is said to have happened, what it ought to do to each asset, how far to trust it.

The causes' modules under `headlines` draw them; `stories` decides what came true.
"""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from htfi_train.simulation.companies import SimulatedAsset, factor_exposure
from htfi_train.simulation.rng import Rng


class NewsEventKind(StrEnum):
    CENTRAL_BANK = "central_bank"  # policy, the data that move it, and help for banks
    EARNINGS = "earnings"
    GUIDANCE = "guidance"  # what a company announces about its own future: outlook, payouts, deals
    LEGAL = "legal"
    SUPPLY = "supply"
    GEOPOLITICS = "geopolitics"
    RUMOUR = "rumour"


class ClaimStatus(StrEnum):
    """What became of what was said."""

    TRUE = "true"
    FALSE = "false"  # nothing came of it
    REVERSED = "reversed"  # it came, and prices went the other way
    FORGED = "forged"
    PRICED = "priced"  # true and already in the price


class NewsEvent(msgspec.Struct, frozen=True, gc=False):
    """One event as a headline reports it. Sizes are in sigmas of one bar, signed, before prices are looked at.

    `own` and `other` are what it should do to its subject and to the counterpart, `factors` how many sigmas of a
    common factor it is worth. `phrases` are its wordings and `slots` their facts; `why` is the reason in a few words.
    `credibility` is the chance, given the text, that the effect comes with the sign that it claims.
    """

    kind: NewsEventKind
    subkind: str
    phrases: tuple[str, ...]
    slots: dict[str, str]
    why: str
    own: float = 0.0
    other: float = 0.0
    factors: tuple[tuple[str, float], ...] = ()
    subject: str = ""  # none: the whole market
    counterpart: str = ""
    grade: int = 1
    credibility: float = 0.9
    volatility_multiplier: float = 1.5
    half_life_bars: float = 2.0
    delay_bars: int = 0
    effects: tuple[tuple[str, float], ...] | None = None  # by symbol, where they are known one by one
    is_nameless: bool = False  # the text has a name for its subject that no one is told: the tag links them
    is_line: bool = False  # worded as one of `corpora/facts`, which the reader of facts learnt from

    @property
    def symbols(self) -> tuple[str, ...]:
        """Whom a wire would tag."""
        return tuple(symbol for symbol in (self.subject, self.counterpart) if symbol)

    def effect_on(self, asset: SimulatedAsset) -> float:
        """The effect in sigmas that the text claims for `asset`; 0 where it has none to speak of."""
        if self.effects is not None:
            return dict(self.effects).get(asset.symbol, 0.0)
        if asset.symbol == self.subject:
            return self.own
        if asset.symbol == self.counterpart:
            return self.other
        total = sum(size * factor_exposure(asset, factor) for factor, size in self.factors)
        return total if abs(total) >= MIN_SIGMAS else 0.0

    def concerns(self, asset: SimulatedAsset) -> bool:
        """Whether the asset is named, or of those that such news moves; the news may still be too small to."""
        if self.effects is not None:
            return asset.symbol in dict(self.effects)
        return asset.symbol in self.symbols or any(
            factor_exposure(asset, factor) for factor, _ in self.factors
        )


# Draws an event for a world of these assets; None where it finds none that fits.
EventSource = Callable[[Rng, tuple[SimulatedAsset, ...]], NewsEvent | None]

MIN_SIGMAS = 0.4
