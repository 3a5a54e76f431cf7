"""The bundle's table `[fairness]`: when a view fails its swap test, and what follows."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import Share, check_bounds, setting


@dataclass(frozen=True, slots=True)
class FairnessConfig:
    """Limits of the swap test of views."""

    test_views: bool = setting(False, "whether views are put to the swap test")
    max_move_sigmas: Annotated[float, Meta(ge=0.0, le=10.0)] = setting(
        0.1, "largest change of a view by a swap of names that is noise", "standard deviations of one bar"
    )
    num_swaps: Annotated[int, Meta(ge=1, le=16)] = setting(3, "swaps of each kind that a view must pass")
    min_weight: Share = setting(
        0.0, "share of a view that stands under all swaps, up to which the decision is withheld", "0–1"
    )

    def __post_init__(self) -> None:
        check_bounds("fairness", self)
