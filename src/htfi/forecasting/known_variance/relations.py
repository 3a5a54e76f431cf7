"""How a series is related to an event: is it of one of its currencies, of its company, or of none?"""

import re

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration

OWN, OTHER, UNRELATED = 0, 1, -1
NUM_RELATIONS = 2
FX, VOLATILITY, OTHER_ASSETS = "fx", "volatility", "other"

_CURRENCIES = frozenset(
    ("AED", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNH", "CNY", "COP", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF",
     "IDR", "ILS", "INR", "ISK", "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PEN", "PHP", "PLN", "RON", "RUB", "SAR",
     "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "VND", "XAG", "XAU", "XPD", "XPT", "ZAR")
)  # fmt: skip
_VOLATILITY = re.compile(
    r"^[\^.$]?(VIX(1D|9D|3M|6M|1Y)?|V[XR]X|VXN|VXO|VXD|RVX|VVIX|OVX|GVZ|V2X|V2TX|VSTOXX|VDAX|VHSI|VNKY)$"
)
_PAIR = re.compile(r"^([A-Z]{3})[/_.\- ]?([A-Z]{3})(=X)?$")
HOME = "USD"  # of what is no pair of currencies: most listed shares and indices move with US figures


def currencies_of(symbol: str) -> tuple[str, ...]:
    """The two currencies (or metals) of a pair such as 'EURUSD', 'EUR/USD' or 'XAUUSD'; none for anything else."""
    match = _PAIR.match(symbol.upper())
    if match is None or not {match[1], match[2]} <= _CURRENCIES:
        return ()
    return match[1], match[2]


def asset_class(symbol: str) -> str:
    """'fx' for a pair of currencies, 'volatility' for an index of it by its usual names, 'other' for anything else:
    each has its own priors."""
    if currencies_of(symbol):
        return FX
    return VOLATILITY if _VOLATILITY.match(symbol.upper()) else OTHER_ASSETS


def relations(symbol: str, currencies: NDArray[np.str_], symbols: NDArray[np.str_]) -> NDArray[np.int8]:
    """`OWN`, `OTHER` or `UNRELATED` to events [K] of these currencies ('' for none) or companies ('' for none).

    A company's events are no other company's.
    """
    of_currency = np.where(np.isin(currencies, currencies_of(symbol) or (HOME,)), OWN, OTHER)
    of_company = np.where(symbols == symbol.upper(), OWN, UNRELATED)
    return np.where(symbols != "", of_company, of_currency).astype(np.int8)


def is_day_of_others(series: str) -> bool:
    """Whether a series ('SYMBOL/interval') has bars of a day or longer and is no pair: no economy's figures move it."""
    symbol, _, interval = series.rpartition("/")
    try:
        return parse_duration(interval) >= NS_PER_DAY and not currencies_of(symbol)
    except InvalidInput:
        return False
