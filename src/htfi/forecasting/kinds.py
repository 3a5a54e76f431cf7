"""What kind of series a name, a bar's length and a volatility suggest, and what follows from it: which experts forecast
it when the settings say "auto", and the weights that they start from.

Weights are in fusion_priors.toml: what the best fixed mix had on staged panels (docs/decisions/d05-fusion.md).
"""

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, NS_PER_S, parse_duration

Array = NDArray[np.float64]

AUTO = "auto"
EQUITY, CURRENCY, WILD, INTRADAY = range(4)
KINDS = ("equity", "currency", "wild", "intraday")
_SHARED = ("historical_simulation", "log_range_har", "market_har", "random_walk")
WHY = (
    "with bars of a day or more",
    "named as a pair of currencies",
    "with moves above 3.5% a day",
    "with bars of four hours or less",
)
EXPERTS_BY_KIND = (
    ("ewma", *_SHARED),
    ("garch_t", *_SHARED),
    ("ewma", *_SHARED),
    ("ewma", *_SHARED),
)
AUTO_EXPERTS = tuple(sorted({name for names in EXPERTS_BY_KIND for name in names}))

CLASSIFYING_BARS = (20, 250)  # bars of a series after which its volatility says whether it is wild
_WILD_SIGMA = 0.035  # of a day, in log returns: volatility indices, gas, coins
_MAX_INTRADAY_NS = 4 * 3600 * NS_PER_S  # longer bars show no pattern of a day
_CODES = (
    "AUD BRL CAD CHF CLP CNH CNY COP CZK DKK EUR GBP HKD HUF IDR ILS INR JPY KRW MXN MYR NOK NZD PEN PHP PLN RON RUB "
    "SAR SEK SGD THB TRY TWD UAH USD XAG XAU XPD XPT ZAR"
)  # parted by spaces, which no code of three letters holds
_SEPARATORS = str.maketrans("", "", "/-_. ")
# Yields as CBOE, FRED and vendors name them: ^TNX, DGS10, TB3MS; US10Y, DE10YB=RR, USGG10YR Index, 10YR; 10USY.B; US3M.
_YIELD = re.compile(
    r"\^?(?:IRX|FVX|TNX|TYX)(?:\.X)?|(?:DGS|GS|DFII)\d{1,2}(?:MO)?|(?:DTB|TB)\d{1,2}(?:WK|MS|YR)?"
    r"|\^?(?:[A-Z]{2,})?\d{1,2}YR?(?:[BGT]?(?:=\w+)?| INDEX)|\d{1,2}[A-Z]{2}Y\.B"
    r"|(?:AU|CA|DE|EU|FR|GB|IT|JP|UK|US)\d{1,2}MY?(?:T?=\w+)?"
)


def expand(experts: Sequence[str]) -> tuple[str, ...]:
    """The experts that settings name, each once, "auto" replaced by those that any kind of series may choose."""
    named = [name for name in experts if name != AUTO]
    chosen = [*AUTO_EXPERTS, *named] if AUTO in experts else named
    return tuple(dict.fromkeys(chosen))


def kind_of(symbol: str, interval: str) -> int:
    """The place in KINDS that a new series has: by its bars' length and its name, before its volatility is known."""
    length_ns = bar_length_ns(interval)
    if 0 < length_ns <= _MAX_INTRADAY_NS:
        return INTRADAY
    return CURRENCY if is_currency_pair(symbol) else EQUITY


def bar_length_ns(interval: str) -> int:
    """The length of a bar; 0 where the interval is not a time."""
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 0


def trading_days(length_ns: int) -> float:
    """The trading days that a bar of this length holds; 0 for one without a length."""
    days = length_ns / NS_PER_DAY
    return days if days <= 1.0 else max(1.0, days * 5.0 / 7.0)


def is_currency_pair(symbol: str) -> bool:
    """Whether a symbol is two codes of currencies or metals, such as EURUSD, EUR/USD or XAUUSD=X."""
    letters = symbol.upper().removesuffix("=X").translate(_SEPARATORS)
    codes = {letters[:3], letters[3:]}
    return (
        len(letters) == 6 and len(codes) == 2 and letters.isalpha() and all(code in _CODES for code in codes)
    )


def is_yield(symbol: str) -> bool:
    """Whether a symbol is named as the yield of a bond or bill: a level that carries no premium for risk."""
    return _YIELD.fullmatch(symbol.upper()) is not None


def by_volatility(kinds: NDArray[np.int64], sigma: Array, lengths_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The kinds [n] once a usual deviation of a bar `sigma` [n] is known: equity or wild by that of a day."""
    days = np.maximum(lengths_ns, NS_PER_DAY) / NS_PER_DAY
    by_size = np.where(sigma / np.sqrt(days) > _WILD_SIGMA, WILD, EQUITY)
    return np.where((kinds == EQUITY) | (kinds == WILD), by_size, kinds)


@dataclass(frozen=True, slots=True)
class KindChoice:
    """A kind of series, why it is one, how many of a run have it, one of them, and the experts that forecast it."""

    kind: str
    why: str
    num_series: int
    example: str
    experts: tuple[str, ...]


class _PriorTable(msgspec.Struct, frozen=True):
    """Weights by kind, expert and horizon: those at 1, 5 and 22 bars."""

    horizons: tuple[int, ...]
    weights: dict[str, dict[str, tuple[float, ...]]]


@cache
def _priors() -> _PriorTable:
    text = (files("htfi.forecasting") / "fusion_priors.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _PriorTable)


def starting_weights(experts: Sequence[str], horizons: Sequence[int]) -> Array:
    """The weights [S, H, K] from which K experts start on each kind of series: those learnt, linear in the logarithm
    of the horizon; a share of 1/K for an expert of which nothing was learnt."""
    table = _priors()
    at = [math.log(horizon) for horizon in horizons]
    known = [math.log(horizon) for horizon in table.horizons]
    weights = np.empty((len(KINDS), len(horizons), len(experts)))
    for place, kind in enumerate(KINDS):
        for k, name in enumerate(experts):
            learnt = table.weights[kind].get(name)
            even = 1.0 / len(experts)
            weights[place, :, k] = even if learnt is None else np.interp(at, known, learnt)
    return np.round(weights, 6)


def steady_kinds(experts_by_kind: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """The kinds of series whose starting weights say more than first losses do: currencies and parts of a day, where
    those of all experts that forecast the kind were learnt on it (docs/decisions/d05-fusion.md)."""
    learnt = _priors().weights
    return tuple(
        kind for kind in (CURRENCY, INTRADAY) if learnt[KINDS[kind]].keys() >= set(experts_by_kind[kind])
    )
