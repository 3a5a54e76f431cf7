"""A view: what a reader concluded from the news on one symbol, and the readings that went into it."""

import msgspec

from htfi.domain.generation_trace import GenerationTrace


class CalibratedEffect(msgspec.Struct, frozen=True, gc=False):
    """The measured effect of views of this kind on the return over `horizon` bars: a shift, in standard deviations of
    one bar, and a factor of its distances from the median.
    """

    horizon: int
    shift_sigmas: float
    stretch: float


class ViewPart(msgspec.Struct, frozen=True, gc=False):
    """One reading that went into a merged view, as it was: units as in `NewsView`; `trust` 0–1 is that of its items.

    `is_worded`: the view took its text and generation trace from this reading.
    """

    reader: str
    direction: float
    size_sigmas: float
    volatility_multiplier: float
    confidence: float
    cited: tuple[str, ...]
    as_of_ns: int
    half_life_ns: int
    trust: float = 1.0
    cause: str = ""
    calibrated_effects: tuple[CalibratedEffect, ...] = msgspec.field(default=(), name="meant")
    is_worded: bool = False


class NewsView(msgspec.Struct, frozen=True, gc=False):
    """A reader's opinion of the news on one symbol, which fades with its half-life.

    Units: direction −1..1 (down..up); size in standard deviations of one bar; volatility_multiplier scales
    the band (1 leaves it); confidence 0..1, where 0 means that there is no opinion. `words` hold no digit:
    a figure is a slot in braces. `calibrated_effects`, by rising horizon, is what such words have proved to mean, where
    that was measured: a forecast is tilted by it, and else by the view at its word. Where several readings went into
    it, or one that is not fully trusted, `parts` are those, and the numbers follow from them (`narrative.merging`).
    """

    direction: float
    size_sigmas: float
    volatility_multiplier: float
    confidence: float
    cited: tuple[str, ...]  # ids of the items that matter
    as_of_ns: int
    half_life_ns: int
    cause: str = ""  # what kind of event, where the reader names one
    consistency: str = ""  # of recent prices with the news
    words: str = ""
    reader: str = ""  # name and version of who read
    trace: GenerationTrace | None = msgspec.field(
        default=None, name="wording"
    )  # where it was read for this very decision
    provisional: bool = (
        False  # the draft's, where the target was late, or prepared ahead of a release; an amendment follows
    )
    calibrated_effects: tuple[CalibratedEffect, ...] = msgspec.field(default=(), name="meant")
    parts: tuple[ViewPart, ...] = ()
    prepared: str = (
        ""  # release and outcome that it was read ahead for, where it was: '{id}, {outcome in words}'
    )

    @property
    def read_at_ns(self) -> int:
        """The instant that a model read for, which merging with other readings leaves as it was."""
        return next((part.as_of_ns for part in self.parts if part.is_worded), self.as_of_ns)
