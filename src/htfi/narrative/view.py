"""A view: what a reader makes of the news, in numbers that forecasting can weigh. Readers return it."""

import msgspec


class View(msgspec.Struct, frozen=True, gc=False):
    """An opinion on one symbol, drawn from text, that fades with its half-life.

    Units: direction −1..1 (down..up); size in standard deviations of one bar; volatility_multiplier scales
    the band (1 leaves it); confidence 0..1, where 0 says that there is no opinion.
    """

    direction: float
    size_sigmas: float
    volatility_multiplier: float
    confidence: float
    cited: tuple[str, ...]  # ids of the items read
    as_of_ns: int
    half_life_ns: int
