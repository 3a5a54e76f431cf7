"""Schedules: the share of a parent order that is due by a share of its time or of the market's volume. Pure.

One shape serves all algorithms. With urgency u the share that is left at v is sinh(u·(1 − v)) / sinh(u): for u > 0
lots come sooner, u = 0 is a straight line, and u < 0 is the mirror image, later. It is the optimal trajectory of
Almgren and Chriss (2000, eq. 17) where v is time and u is κT.
"""

import math
from collections.abc import Sequence

_STRAIGHT = 1e-6
SPREAD_VOLUME_SHARE = (
    0.01  # trading this part of the volume costs a spread for the time being (ibid., section 4)
)
PERMANENT_VOLUME_SHARE = 0.1  # trading this part moves the price by a spread for good


def share_due(urgency: float, share: float) -> float:
    """Share 0–1 of the order that is due once `share` of its time, or of the volume, has passed."""
    v = min(1.0, max(0.0, share))
    if abs(urgency) < _STRAIGHT:
        return v
    if urgency < 0.0:
        return math.sinh(-urgency * v) / math.sinh(-urgency)
    return 1.0 - math.sinh(urgency * (1.0 - v)) / math.sinh(urgency)


def curve_at(curve: Sequence[float], share: float) -> float:
    """A cumulative curve at a share 0–1 of time: `curve` holds it at equal steps, from 0 to 1; empty: a line."""
    v = min(1.0, max(0.0, share))
    if len(curve) < 2:
        return v
    place = v * (len(curve) - 1)
    below = min(int(place), len(curve) - 2)
    return curve[below] + (curve[below + 1] - curve[below]) * (place - below)


def almgren_chriss_kappa(
    risk_aversion: float, sigma: float, temporary: float, permanent: float, step: float
) -> float:
    """κ of the optimal trajectory, per unit of time; 0 where there is no risk or no aversion to it.

    Units: `risk_aversion` λ in 1/currency, `sigma` in currency per share and root of time, `temporary` η in currency
    per share and (shares per time), `permanent` γ in currency per share and share, `step` τ in time.
    Source: Almgren and Chriss (2000), κ = arccosh(κ̃²τ²/2 + 1)/τ with κ̃² = λσ²/η̃ and η̃ = η − γτ/2.
    """
    adjusted = temporary - permanent * step / 2
    if adjusted <= 0.0 or risk_aversion <= 0.0 or sigma <= 0.0 or step <= 0.0:
        return 0.0
    squared = risk_aversion * sigma * sigma / adjusted
    return math.acosh(squared * step * step / 2 + 1) / step


def shortfall_urgency(
    risk_aversion: float,
    sigma: float,
    spread: float,
    volume_rate: float,
    duration_s: float,
    num_steps: int = 20,
) -> float:
    """κT of an order that is worked for `duration_s`; 0 where spread or volume is not known.

    Units: `sigma` in currency per share and √s, `spread` in currency, `volume_rate` in shares per second. Impact is
    that of Almgren and Chriss's example: a spread for each percent of the volume, and for good for each tenth of it.
    """
    if spread <= 0.0 or volume_rate <= 0.0:
        return 0.0
    step = duration_s / num_steps
    temporary = spread / (SPREAD_VOLUME_SHARE * volume_rate)
    permanent = spread / (PERMANENT_VOLUME_SHARE * volume_rate * duration_s)
    return almgren_chriss_kappa(risk_aversion, sigma, temporary, permanent, step) * duration_s
