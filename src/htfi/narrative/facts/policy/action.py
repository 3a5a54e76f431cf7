"""An action of a central bank: on what, which way, by how much, how surely, and how it compares with expectations."""

from dataclasses import dataclass
from enum import StrEnum

from htfi.narrative.facts.policy.votes import NO_VOTE, Vote


class PolicyInstrument(StrEnum):
    """What an action is taken on."""

    RATE = "policy rate"
    LENDING = "lending rate"
    RESERVES = "reserve requirement"
    PURCHASES = "asset purchases"


class PolicyMove(StrEnum):
    """What is done: to a rate, or to purchases."""

    CUT = "cut"
    HOLD = "hold"
    RAISE = "raise"
    START = "start"
    STOP = "stop"
    TAPER = "taper"
    EXPAND = "expand"


class PolicyModality(StrEnum):
    """Whether an action is done, announced, possible, expected by others, or denied."""

    DID = "did"
    WILL = "will"
    MAY = "may"
    EXPECTED = "expected"
    DENIES = "denies"


class PolicyExpectation(StrEnum):
    """How an action compares with what was expected, as the text states it."""

    UNKNOWN = "unknown"
    AS_EXPECTED = "as expected"
    SURPRISE = "surprise"
    LARGER = "larger than expected"
    SMALLER = "smaller than expected"


@dataclass(frozen=True, slots=True)
class PolicyAction:
    """One action of a central bank; `bank` is its key ('fed'), '' where no bank is named.

    Units: `size_bp` in basis points, 0 for a hold, None where no size is stated; `low` and `high` are the new level in
    percent, alike for a single figure; `prior` the level before, `expected` the level that was expected,
    `expected_move` the move, where a text says that another one was.
    """

    bank: str
    instrument: PolicyInstrument
    move: PolicyMove
    modality: PolicyModality
    size_bp: int | None = None
    low: float | None = None
    high: float | None = None
    prior: float | None = None
    expected: float | None = None
    expected_move: PolicyMove | None = None
    expectation: PolicyExpectation = PolicyExpectation.UNKNOWN
    vote: Vote = NO_VOTE
    evidence: str = ""
