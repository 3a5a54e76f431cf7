"""How much work a decision is given: the rung of the fidelity ladder, the reasons for it, and what it was chosen from.

scheduling chooses a `FidelityPlan`; it is recorded with its decision. Reasons are codes; `reason` makes the words.
"""

import math
from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType


class Rung(StrEnum):
    """The fidelity ladder."""

    TEMPLATE = "template"
    EDGE = "edge"
    SPECULATIVE = "speculative"
    DEEP = "deep"
    SECURE = "secure"


class PlanReason(StrEnum):
    """Why a rung was chosen: SUSPICION to NO_TIME choose it, the others state how it was changed."""

    SUSPICION = "suspicion"
    SHOCK = "shock"
    SHORT_DEADLINE = "short_deadline"
    DISAGREEMENT = "disagreement"
    NORMAL = "normal"
    HIGH_LOAD = "high_load"
    NO_TIME = "no_time"
    UNAVAILABLE = "unavailable"  # the rung has no reader in this run
    LOW_INFLUENCE = "low_influence"  # what a model's reading could move of the forecast is too little
    NO_INFLUENCE = "no_influence"  # what any reading could move is too little, the encoder's as well
    TRIAL = "trial"  # read all the same, so that the reader may earn more weight
    DRAFT_SUFFICES = "draft_suffices"
    HIGH_VALUE = "high_value"
    PREPARED = "prepared"
    VERIFICATION = "verification"
    HELD = "held"  # governance holds the reader of the rung back


_WORDS = {
    PlanReason.SUSPICION: "manipulation suspected",
    PlanReason.SHOCK: "market in shock, so no model reads",
    PlanReason.SHORT_DEADLINE: "short deadline",
    PlanReason.DISAGREEMENT: "news and numbers disagree",
    PlanReason.NORMAL: "normal case",
    PlanReason.HIGH_LOAD: "high load",
    PlanReason.NO_TIME: "no time for a model",
    PlanReason.UNAVAILABLE: "no better reader is available",
    PlanReason.LOW_INFLUENCE: "a model's reading could hardly move the forecast",
    PlanReason.NO_INFLUENCE: "no reading could move the forecast",
    PlanReason.TRIAL: "a trial of the reader",
    PlanReason.DRAFT_SUFFICES: "the draft model suffices",
    PlanReason.HIGH_VALUE: "the news is worth the best reader",
    PlanReason.PREPARED: "prepared before the announcement",
    PlanReason.VERIFICATION: "verified against the news itself",
    PlanReason.HELD: "a better reader is held back by governance",
}

# The sentences of entries that record no codes (before "fidelity/2"), by how they begin.
_SENTENCES = {
    "manipulation suspected": PlanReason.SUSPICION,
    "shock: answer at once": PlanReason.SHOCK,
    "short deadline": PlanReason.SHORT_DEADLINE,
    "numbers and narrative disagree": PlanReason.DISAGREEMENT,
    "normal case": PlanReason.NORMAL,
    "high load": PlanReason.HIGH_LOAD,
    "no time for a model": PlanReason.NO_TIME,
    "the draft is enough": PlanReason.DRAFT_SUFFICES,
    "the news are worth the best reader": PlanReason.HIGH_VALUE,
    "prepared for ": PlanReason.PREPARED,
    "then the news itself": PlanReason.VERIFICATION,
}
_NOT_WIRED = " is not wired, so "


class LadderInputs(msgspec.Struct, frozen=True, gc=False):
    """What the ladder saw of the load when it chose the rung of a series with news to read.

    `num_waiting` readings wait at this instant, this one included; `left_ms` of the instant's deadline are left for
    them. `edge_ms` and `speculative_ms`: the time of one reading, that of the settings or of recent readings where
    these took longer. `divergence` 0–1 is the rank of the disagreement between the view that the series has on the same
    news and its forecast; 0 where it has none. `edge_influence`, `speculative_influence` and `encoder_influence` are
    the shares of the 90% band that the draft's, the target's or the encoder's reading could move at most: what its
    items may move, times the weight that its track record gives it. Unset before "fidelity/3", the draft's where it has
    read this news already, the encoder's where it has not scored it. `held` are the rungs whose reader governance holds
    back, lowest first; unset where none is.
    """

    num_waiting: int
    left_ms: float
    edge_ms: float
    speculative_ms: float
    divergence: float = 0.0
    edge_influence: float | UnsetType = UNSET
    speculative_influence: float | UnsetType = UNSET
    encoder_influence: float | UnsetType = UNSET
    held: tuple[Rung, ...] | UnsetType = UNSET

    @property
    def left_out(self) -> frozenset[Rung]:
        """`held`; none where it is unset."""
        return frozenset() if self.held is UNSET else frozenset(self.held)

    @property
    def load(self) -> float:
        """The time that the waiting readings need over the time left; above 1 not all can be read."""
        needed_ms = self.num_waiting * self.speculative_ms
        return needed_ms / self.left_ms if self.left_ms > 0.0 else math.inf


class FidelityPlan(
    msgspec.Struct,
    frozen=True,
    rename={"legacy_reason_text": "reason", "reason_codes": "reasons", "rung_after_release": "then"},
):
    """Which rung was chosen, and why; `rung_after_release` reads again after the release, which amends.

    Entries before "fidelity/2" have a `legacy_reason_text` and no `reason_codes`, later ones the codes alone.
    """

    rung: Rung
    legacy_reason_text: str | UnsetType = UNSET
    deadline_ms: float = 0.0
    rung_after_release: Rung | None = None
    reason_codes: tuple[PlanReason, ...] | UnsetType = UNSET
    inputs: LadderInputs | UnsetType = UNSET  # where there was news to read

    @property
    def reasons(self) -> tuple[PlanReason, ...]:
        return self.reason_codes if self.reason_codes is not UNSET else _codes(self.legacy_reason_text or "")

    @property
    def left_out(self) -> frozenset[Rung]:
        """The rungs whose reader governance holds back."""
        return frozenset() if self.inputs is UNSET else self.inputs.left_out

    @property
    def counts_encoder_alone(self) -> bool:
        """Whether the encoder's readings count instead of a model's.

        So it is where a model's could hardly move the forecast, and where governance holds every model back; but not of
        what is suspected, which only a reading in secure mode may weigh.
        """
        reasons = self.reasons
        is_held = PlanReason.HELD in reasons and not {PlanReason.SUSPICION, PlanReason.NO_INFLUENCE} & {
            *reasons
        }
        return self.rung is Rung.TEMPLATE and (is_held or PlanReason.LOW_INFLUENCE in reasons)

    @property
    def reason_text(self) -> str:
        """The reasons in words."""
        if self.legacy_reason_text is not UNSET:
            return self.legacy_reason_text
        return "; ".join(self._words(code) for code in self.reasons)

    def _words(self, code: PlanReason) -> str:
        if code is PlanReason.HIGH_LOAD and self.inputs is not UNSET:
            seen = self.inputs
            needed_ms = seen.num_waiting * seen.speculative_ms
            return f"high load: {seen.num_waiting} readings need {needed_ms:,.0f} ms, {seen.left_ms:,.0f} ms are left"
        return _WORDS[code]

    def with_reason(self, code: PlanReason, rung: Rung | None = None) -> "FidelityPlan":
        """The plan with one more reason, and another rung where one is given."""
        codes = (*self.reasons, code)
        return FidelityPlan(
            rung or self.rung, UNSET, self.deadline_ms, self.rung_after_release, codes, self.inputs
        )


def _codes(sentence: str) -> tuple[PlanReason, ...]:
    found: list[PlanReason] = []
    for part in sentence.split("; "):
        code = next((code for words, code in _SENTENCES.items() if part.startswith(words)), None)
        if code is None and _NOT_WIRED in part:
            code = PlanReason.UNAVAILABLE
        if code is not None:
            found.append(code)
    return tuple(found)
