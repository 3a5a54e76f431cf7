"""Past returns of series in the window of a stress, and their responses to macro surprises. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_S

Array = NDArray[np.float64]

MIN_SURPRISES = 8  # changes of a macro series with a bar after them, to estimate a response at all
# A day's bar that ends so soon after midnight UTC is of the day before: New York's midnight comes by 5:00, Tokyo's
# and Shanghai's sessions end from 6:00 on.
_DAY_ENDS_NS = 19_800 * NS_PER_S
_MAX_CLOSED_DAYS = 5  # a market may be closed so long before a stress begins
_T_PRIOR = 1.0  # squared t-statistic at which a response is believed by half


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """One series' closes, oldest first: ends_ns and closes [T]; `is_daily` where a bar is a day or longer."""

    ends_ns: NDArray[np.int64]
    closes: Array
    is_daily: bool = True


@dataclass(frozen=True, slots=True)
class MacroResponse:
    """How series answered surprises of a macro series: [n] normal scores for one usual surprise.

    `t` [n] is each slope's t-statistic, `num` [n] how many surprises were answered; `surprise_std` is the standard
    deviation of the surprise in the series' own units.
    """

    slope: Array
    t: Array
    num: NDArray[np.int64]
    surprise_std: float
    newest: float


def return_over_window(past: PriceHistory, before: date, days: int) -> tuple[float, date, date] | None:
    """Log return over `days` days of trading from the last close on or before `before`, and its two dates.

    None where the series does not reach so far back, or ends within the window.
    """
    if not len(past.closes):
        return None
    lag_ns = _DAY_ENDS_NS if past.is_daily else 1
    dates = [_date(end - lag_ns) for end in past.ends_ns.tolist()]
    starts = [place for place, day in enumerate(dates) if day <= before]
    if not starts or dates[starts[-1]] < before - timedelta(days=_MAX_CLOSED_DAYS):
        return None
    start = starts[-1]
    later = sorted({day for day in dates[start + 1 :] if day > dates[start]})
    if len(later) < days or later[days - 1] > before + timedelta(days=2 * days + _MAX_CLOSED_DAYS + 2):
        return None
    last = max(place for place, day in enumerate(dates) if day == later[days - 1])
    return float(np.log(past.closes[last] / past.closes[start])), dates[start], dates[last]


def macro_response(
    name: str, values: Sequence[tuple[int, float]], ends_ns: NDArray[np.int64], scores: Array
) -> MacroResponse:
    """The response of n series to the changes of a macro series, from the run's own history.

    `values` are (known_ns, value) in order of time; `scores` [T, n] those of bars that ended at `ends_ns` [T]. A
    surprise is the change from the value before, since the expectation is unknown; it is assigned to the first bar that
    ends at or after it. Slopes are shrunk by t²/(t² + 1). Raises: InvalidInput where there are too few.
    """
    changes = [(at, new - old) for (_, old), (at, new) in pairwise(values) if new != old]
    surprises = [(int(np.searchsorted(ends_ns, at)), change) for at, change in changes]
    surprises = [(place, change) for place, change in surprises if place < len(ends_ns)]
    if len(surprises) < MIN_SURPRISES:
        raise InvalidInput(
            f"macro series '{name}': {len(surprises)} changes with a bar after them, {MIN_SURPRISES} are needed to "
            "estimate a response; name the shock itself, such as --shock 'SPX -2%'"
        )
    size = np.array([change for _, change in surprises])
    surprise_std = float(np.sqrt((size * size).mean()))
    answered = scores[[place for place, _ in surprises]]  # [E, n]
    seen = np.isfinite(answered)
    x, z = np.where(seen, (size / surprise_std)[:, None], 0.0), np.where(seen, answered, 0.0)
    num = seen.sum(axis=0)
    weight = np.maximum((x * x).sum(axis=0), 1e-12)
    slope = (x * z).sum(axis=0) / weight
    residual_variance = ((z - slope * x) ** 2).sum(axis=0) / np.maximum(num - 1, 1)
    t = slope / np.sqrt(np.maximum(residual_variance, 1e-12) / weight)
    shrinkage = np.where(num >= MIN_SURPRISES, t * t / (t * t + _T_PRIOR), 0.0)
    return MacroResponse(slope * shrinkage, t, num.astype(np.int64), surprise_std, values[-1][1])


def find_macro_series(name: str, known: Mapping[str, object]) -> str | None:
    """The macro series that a name means, written in any case and with any marks between its words."""

    def bare(text: str) -> str:
        return "".join(char for char in text.casefold().removeprefix("macro_") if char.isalnum())

    wanted = bare(name)
    return next((series for series in known if wanted and bare(series) == wanted), None)


def _date(at_ns: int) -> date:
    return datetime.fromtimestamp(at_ns // NS_PER_S, UTC).date()
