"""What governance says of a decision: the scope of a stop or a breaker, and why a decision is held back."""

import unicodedata
from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from htfi.domain.errors import InvalidInput

MAX_CAUSE_CHARS = 240  # of a person's reason, and of a name


class SystemName(StrEnum):
    """Whom the record names where no person asked. Breakers are named 'the breaker NAME'."""

    GOVERNANCE_LOG = "governance log"
    SETTINGS = "settings"
    POLICY_BUNDLE = "policy bundle"
    SIGNAL = "the signal USR1"
    STOP_FILE = "a STOP file"
    DEAD_MAN = "the dead man's switch"
    RUN = "the run itself"


BREAKER_NAME = "the breaker"  # and its name


def check_person_name(name: str, where: str) -> None:
    """Raises: InvalidInput for a name by which the record means the system, however it is written."""
    visible = "".join(one for one in unicodedata.normalize("NFKC", name) if unicodedata.category(one) != "Cf")
    plain = " ".join(visible.casefold().split())
    if plain in _SYSTEM_NAMES or plain.startswith(f"{BREAKER_NAME} "):
        raise InvalidInput(
            f"{where}: the name '{name[:60]}' is reserved: the record means the system itself by it; "
            "give the person's own name"
        )


_SYSTEM_NAMES = {name.value.casefold() for name in SystemName} | {BREAKER_NAME}


class ScopeLevel(StrEnum):
    """How far a stop or a breaker reaches."""

    FIRM = "firm"
    DESK = "desk"
    MODEL = "model"
    SERIES = "series"


class HoldKind(StrEnum):
    """What keeps a decision back."""

    STOP = "stop"
    BREAKER = "breaker"
    BUNDLE = "bundle"
    CHECKPOINT = "checkpoint"
    FAIRNESS = "fairness"


class BreakerState(StrEnum):
    """Closed: decisions pass. Open: they are withheld. Half-open: they are withheld while the evidence is tried."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Hold(msgspec.Struct, frozen=True, gc=False):
    """One reason of governance to keep a decision back: what kind, how far it reaches, and why."""

    kind: HoldKind
    scope: str
    cause: str

    @property
    def words(self) -> str:
        return f"{self.kind.value} of {self.scope}: {self.cause}"


class SwapMove(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a reader expects before and after a swap of names of a kind, in standard deviations of one bar."""

    reader: str
    kind: str
    before: float
    after: float


class SwapFacts(msgspec.Struct, frozen=True, gc=False):
    """The swap test of a view: the moves by swap, and the share 0–1 of the view that stands under all of them.

    A change up to `max_move_sigmas` was noise; up to `min_weight` the decision was withheld.
    """

    moves: tuple[SwapMove, ...]
    weight: float
    max_move_sigmas: float
    min_weight: float


class CheckpointRelease(msgspec.Struct, frozen=True, gc=False):
    """That a decision which waited for people is released: by whom, on the text of which SHA-256 (hex).

    Without approvers its deadline passed: what is released is the forecast from numbers alone.
    """

    approvers: tuple[str, ...]
    seen: str


class GovernanceFacts(msgspec.Struct, frozen=True, gc=False):
    """What governance knew when a decision was judged.

    `num_entries` of the run's governance log were in force, the newest with this leaf hash (hex); `bundle` is the
    digest (hex) of the policy bundle in force, empty where the settings' limits hold.
    """

    num_entries: int
    newest: str
    bundle: str = ""
    holds: tuple[Hold, ...] = ()
    # Of the view, where the bundle has swaps tested and there was a view to test.
    swaps: SwapFacts | UnsetType = UNSET
    # Of a decision that releases an earlier one.
    release: CheckpointRelease | UnsetType = UNSET
    # What reaches the readers of the view alone: it does not count, and the numbers decide. Absent where nothing does.
    view_holds: tuple[Hold, ...] | UnsetType = UNSET

    @property
    def is_view_set_aside(self) -> bool:
        """Whether the view does not count, because its readers are held."""
        return bool(self.set_aside)

    @property
    def set_aside(self) -> tuple[Hold, ...]:
        """`view_holds`; none where they are unset."""
        return () if self.view_holds is UNSET else self.view_holds


class Scope(NamedTuple):
    """What a stop or a breaker reaches: the firm, or the desk, model or series of a name."""

    level: ScopeLevel
    name: str

    def __str__(self) -> str:
        return self.level.value if self.level is ScopeLevel.FIRM else f"{self.level.value}:{self.name}"

    def covers(self, series: str, desks: Collection[str], models: Collection[str]) -> bool:
        """Whether it reaches a decision on this series of these desks that used these models."""
        match self.level:
            case ScopeLevel.FIRM:
                return True
            case ScopeLevel.DESK:
                return self.name in desks
            case ScopeLevel.MODEL:
                return self.name in models
            case ScopeLevel.SERIES:
                return self.name in (series, series.partition("/")[0])


DEFAULT_DESK = "default"  # of a symbol that no bundle puts on a desk
FIRM = Scope(ScopeLevel.FIRM, "")


def parse_scope(text: str) -> Scope:
    """The scope that a text names: firm, desk:NAME, model:NAME, series:SYMBOL[/interval]. Raises: InvalidInput."""
    level, _, name = text.partition(":")
    if level == ScopeLevel.FIRM.value and not name:
        return FIRM
    if level in (ScopeLevel.DESK, ScopeLevel.MODEL, ScopeLevel.SERIES) and name.strip() == name != "":
        return Scope(ScopeLevel(level), name)
    raise InvalidInput(
        f"scope '{text[:60]}' is none: write firm, desk:NAME, model:NAME or series:SYMBOL[/interval]"
    )
