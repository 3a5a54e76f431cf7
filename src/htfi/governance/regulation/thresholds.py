"""Thresholds of the market-abuse patterns, with units. The rules name patterns and no numbers: these are measured.

`htfi eval governance regulation` reports detection and false findings on the seeds of simulated order flow that they
were chosen on, and on others (docs/regulation.md).
"""

from dataclasses import dataclass

from htfi.domain.time import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureThresholds:
    """Layering and spoofing: orders shown on one side while trading on the other, and taken back."""

    min_ratio: float = 2.0  # shown on the other side, over shown on the side that traded
    min_cancelled_share: float = 0.75  # of what was shown
    max_filled_share: float = 0.15
    window_ns: int = 12 * NS_PER_S  # from the trade to the cancels
    max_age_ns: int = 60 * NS_PER_S  # of a shown order when the trade came
    min_levels: int = 3  # prices of a layering; spoofing has fewer
    min_episodes: int = 3  # of a party in an instrument and day
    min_episode_share: float = 0.2  # of its trades


@dataclass(frozen=True, slots=True, kw_only=True)
class WashThresholds:
    """Wash trades: buying from oneself, or to and fro between two parties."""

    window_ns: int = 2 * NS_PER_S  # between the two sides, where the record has no match ids
    min_matched: int = 2
    min_matched_share: float = 0.02  # of the party's volume in the instrument
    min_inferred: int = 4
    min_inferred_share: float = 0.1
    min_circular: int = 6  # trades between two parties, to and fro
    min_circular_balance: float = 0.6  # the smaller way over the larger


@dataclass(frozen=True, slots=True, kw_only=True)
class RampThresholds:
    """Ramping: a party's own aggressive trades carry the price. Trading back lowers what is asked of the move."""

    window_ns: int = 300 * NS_PER_S
    min_fills: int = 8
    min_one_sided: float = 0.8
    min_extremes: float = 0.5  # of its trades at the farthest price so far
    min_share: float = 0.5  # of the market's volume, without trading back
    min_sigmas: float = 4.0  # of the price's usual move over the time, without trading back
    min_share_reversed: float = 0.2
    min_sigmas_reversed: float = 1.2
    reversal_ns: int = 900 * NS_PER_S
    min_reversed: float = 0.1  # of what it took


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnitionThresholds:
    """Momentum ignition: a burst that moves the price, and a profit on the other side of the followers."""

    burst_ns: int = 15 * NS_PER_S
    min_fills: int = 5
    min_sigmas: float = 1.3
    min_share: float = 0.35
    reversal_ns: int = 300 * NS_PER_S
    min_reversed: float = 0.5  # of the burst's quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseThresholds:
    """Marking the close: aggressive trades of the last minutes that move the closing price."""

    window_ns: int = 300 * NS_PER_S
    late_ns: int = 120 * NS_PER_S
    min_fills: int = 3
    min_share: float = 0.22  # of the market's volume in the late part
    min_sigmas: float = 0.3
    min_late: float = 0.6  # of its volume in the window that falls into the late part
    min_of_day: float = 0.4  # of its volume of the day that falls into the window


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveillanceThresholds:
    """All of them."""

    pressure: PressureThresholds = PressureThresholds()
    wash: WashThresholds = WashThresholds()
    ramp: RampThresholds = RampThresholds()
    ignition: IgnitionThresholds = IgnitionThresholds()
    close: CloseThresholds = CloseThresholds()
