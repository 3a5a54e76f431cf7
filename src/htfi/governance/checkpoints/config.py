"""Table `[checkpoints]` of a policy bundle: which decisions wait for people, for how long, and what follows then."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from htfi.domain.decision import Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.plan import Rung
from htfi.domain.settings import NonNegativeFactor, Share, check_bounds, setting, setting_from

Money = Annotated[float, Meta(ge=0.0, le=1e18)]


class DeadlineDefault(StrEnum):
    """What becomes of a decision that has no answer in time."""

    WITHHOLD = "withhold"
    LOWER_RUNG = "lower_rung"


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """Limits beyond which a decision waits for people. None: the limit is not set, so nothing is asked for it."""

    notional: dict[str, Money] = setting_from(
        dict[str, float], "what is held or may be traded on a forecast, by symbol", "money"
    )
    default_notional: Money = setting(0.0, "the same of a symbol that is not in the table", "money")
    max_notional: Money | None = setting(None, "largest notional without a person", "money")
    max_loss: Money | None = setting(
        None, "largest loss at an end of the 90% band without a person, either side", "money"
    )
    max_novelty: NonNegativeFactor | None = setting(
        None, "largest deviation of a feature from what is usual, as |ln(value / usual)|", "natural log"
    )
    max_band_width: NonNegativeFactor | None = setting(
        None, "widest 90% band of the shortest horizon without a person", "log return"
    )
    max_expert_spread: NonNegativeFactor | None = setting(
        None, "largest distance between experts' medians relative to the 90% band", "band widths"
    )
    max_divergence_rank: Share | None = setting(
        None, "largest rank of the disagreement between news and numbers", "0–1"
    )
    regimes: tuple[Regime, ...] = setting((), "regimes in which every decision waits")
    rungs: tuple[Rung, ...] = setting((), "rungs at which every decision waits")
    suspected: bool = setting(False, "whether decisions wait while manipulation is suspected")
    num_approvals: Annotated[int, Meta(ge=1, le=2)] = setting(1, "how many people must approve")
    deadline_s: Annotated[float, Meta(gt=0.0, le=30 * 86_400.0)] = setting(300.0, "how long a decision waits")
    escalate_before_s: Annotated[float, Meta(ge=0.0, le=30 * 86_400.0)] = setting(
        60.0, "how long before the deadline further people are asked; 0: never"
    )
    on_deadline: DeadlineDefault = setting(
        DeadlineDefault.WITHHOLD, "what becomes of a decision that has no answer in time"
    )

    def __post_init__(self) -> None:
        check_bounds("checkpoints", self)
        if self.escalate_before_s >= self.deadline_s:
            raise InvalidInput(
                f"checkpoints.escalate_before_s ({self.escalate_before_s:g}) must be below "
                f"checkpoints.deadline_s ({self.deadline_s:g})"
            )

    @property
    def asks(self) -> bool:
        """Whether any limit is set, so that decisions may wait."""
        return bool(self.regimes or self.rungs or self.suspected) or any(
            limit is not None
            for limit in (
                self.max_notional,
                self.max_loss,
                self.max_novelty,
                self.max_band_width,
                self.max_expert_spread,
                self.max_divergence_rank,
            )
        )

    def notional_of(self, symbol: str) -> float:
        return self.notional.get(symbol, self.default_notional)
