"""A decision: what was known, forecast and judged, in the form that the ledger keeps for good.

`Decision` is what pipeline records and releases; governance stores its canonical bytes; apps show it.
Nothing here depends on the wall clock, the machine or the output folder, so a replay gives the same bytes.
"""

from enum import StrEnum
from functools import lru_cache

import msgspec

from htfi.domain.errors import IntegrityError
from htfi.domain.governance import GovernanceFacts
from htfi.domain.news import NewsContext
from htfi.domain.news_view import NewsView
from htfi.domain.plan import FidelityPlan as FidelityPlan
from htfi.domain.plan import Rung as Rung
from htfi.domain.time import format_ns

Quantiles = list[list[float]]  # [H, Q], never decreasing along Q
TICKS_PER_UNIT = 1e10  # of log return
BAND_LEVELS = (0.05, 0.95)  # the central 90% that rationale and policy state
MEDIAN_SHARE = (
    0.4  # share of what it may move a band end by which news may move the median: moving that is directional
)


class Regime(StrEnum):
    """The market's state, from quiet to broken."""

    CALM = "calm"
    NORMAL = "normal"
    STRESSED = "stressed"
    SHOCK = "shock"


class PolicyOutcome(StrEnum):
    """The outcome of policy: release the forecast, release it marked, or record it and withhold it."""

    RELEASE = "release"
    CAUTION = "caution"
    WITHHOLD = "withhold"


class DecisionInputs(msgspec.Struct, frozen=True):
    """What was read since the decision before: a digest chained over every event, and the rows it covers."""

    digest: str
    num_events: int
    rows: dict[str, tuple[int, int]]  # source → first and last row, counted from 1


class NewsTilt(msgspec.Struct, frozen=True):
    """How a view of the news moved a forecast: q ← q + weight·(shift + (stretch − 1)·(q − median)), per horizon.

    Shapes: shift, stretch, weight [H]. Units: shift in log return; stretch multiplies distances from the median;
    weight 0–1 follows from the narrator's track record. `divergence` 0–1 states how far the view, at full
    weight, lies from the numbers at the first horizon; its rank 0–1 is the share of the narrator's tilts before that
    diverged less, so that one in twenty has 0.95 or more. At any weight an end of the 90% band moves by `max_moved` of
    that band at most, and the median by 0.4 of that: shift and stretch are cut to it (unset before narrator version 2).
    """

    narrator: str
    shift: list[float]
    stretch: list[float]
    weight: list[float]
    divergence: float
    divergence_rank: float = 0.0
    max_moved: float | msgspec.UnsetType = msgspec.UNSET


class Forecast(msgspec.Struct, frozen=True):
    """Predictive quantiles of the log return over each horizon, fused and per expert.

    Shapes: quantiles [H, Q]; expert_ticks {name: [H, Q]}; weights {name: [H, Z]}, summing to 1 over the names, for
    the zones of the distribution (lower tail, middle, upper tail) between which they are linear in the level;
    calibration [H], the stretch about the median that holds the stated coverage. `tilt` is what the news changed
    in `quantiles` after that, None where no view was weighed.
    Units: natural-log return over `horizons` bars of the series; a tick is 1e-10 of it. Whole ticks keep a
    record exact and small.
    """

    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    quantiles: Quantiles
    expert_ticks: dict[str, list[list[int]]]
    weights: dict[str, list[list[float]]]
    calibration: list[float]
    tilt: NewsTilt | None = None

    @property
    def central_band(self) -> tuple[float, float]:
        """The ends of the central 90% at the first horizon, as log returns."""
        nearest = self.quantiles[0]
        return nearest[self.levels.index(BAND_LEVELS[0])], nearest[self.levels.index(BAND_LEVELS[1])]

    @property
    def shares(self) -> dict[str, list[float]]:
        """Each expert's mean weight over the zones, by horizon [H]: for words and tables."""
        return {
            name: [sum(zones) / len(zones) for zones in by_horizon]
            for name, by_horizon in self.weights.items()
        }

    @property
    def first_shares(self) -> dict[str, float]:
        """Each expert's mean weight over the zones at the first horizon."""
        return {name: sum(by_horizon[0]) / len(by_horizon[0]) for name, by_horizon in self.weights.items()}

    @property
    def experts(self) -> dict[str, Quantiles]:
        """The experts' quantiles [H, Q] as log returns, by name."""
        return {
            name: [[tick / TICKS_PER_UNIT for tick in row] for row in table]
            for name, table in self.expert_ticks.items()
        }


class FeatureDriver(msgspec.Struct, frozen=True):
    """A feature that moved the forecast: its value, what is usual for it, and their ratio."""

    feature: str
    value: float
    usual: float
    ratio: float


class Rationale(msgspec.Struct, frozen=True):
    """Why, in words. Every figure in `text` is a slot that code computed.

    One that was stated and not worded yet has no text, and the slots alone that nothing else in its decision gives
    (`pipeline.record.wording.with_words`).
    """

    text: str
    template: str
    slots: dict[str, str]
    drivers: list[FeatureDriver]
    cited: list[str]  # ids of news items


class BarCircumstances(msgspec.Struct, frozen=True):
    """What policy judges besides the forecast: the bar's span, the newest quote's age, the share of rows missing."""

    bar_start_ns: int
    bar_end_ns: int
    quote_age_ns: int | None  # None for a series without quotes
    quarantine_share: float = msgspec.field(name="missing_share")  # of the sources' latest rows, 0–1
    # The mid of the quotes, where sound ones came since the bar began. Unset in entries before policy/2.
    quote_mid: float | msgspec.UnsetType = msgspec.UNSET


class EventFactor(msgspec.Struct, frozen=True, gc=False):
    """A scheduled event and its own factor of the band's width. `kind` is what its effect is learnt by, such as
    'us_payrolls', or what the bar itself is, such as 'half_day'; `time_ns` an instant within its day where no hour is
    stated. `follows`: the event is over when the bar begins, or a result came while the exchange was closed.
    """

    kind: str
    time_ns: int
    factor: float
    follows: bool | msgspec.UnsetType = msgspec.UNSET  # true, or left out


class KnownEvents(msgspec.Struct, frozen=True, gc=False):
    """What was known of the next bar, events of a calendar, gaps, quiet days and hours, and what it did to the width of
    its band: all together, and the strongest by themselves. Several are joined as docs/forecasting.md says.
    """

    factor: float
    events: tuple[EventFactor, ...]


class PolicyVerdict(msgspec.Struct, frozen=True):
    """The outcome of policy, with the objections of its rules."""

    outcome: PolicyOutcome
    reasons: list[str]


class DecisionTrigger(StrEnum):
    """What made a decision due, where it was not the close of a bar."""

    NEWS = "news"


class TriggerItem(msgspec.Struct, frozen=True, gc=False):
    """An item of the news that a decision between two bars answers, and why it matters to the series."""

    id: str
    reasons: tuple[str, ...]


class NewsTrigger(msgspec.Struct, frozen=True, gc=False):
    """The news that a decision between two bars answers, oldest first, and the decision that stood until then.

    `replaces` is the id of that standing decision, made when the newest bar closed: the horizons end where its do.
    `elapsed_bars` 0–1 is the part of the next bar that had passed, by which the horizons are shorter; 0 where no price
    came since the bar. `num_suppressed` counts the items since the last such decision of the series that mattered and
    were left to the bars by a quiet rule.
    """

    items: tuple[TriggerItem, ...]
    replaces: str
    elapsed_bars: float = 0.0
    num_suppressed: int = 0


class Decision(msgspec.Struct, frozen=True):
    """One forecast of one series at one instant, with everything needed to recompute it."""

    id: str  # 'SPX/1d@2008-10-10T20:00:00Z'
    symbol: str
    interval: str
    as_of_ns: int
    last_price: float
    inputs: DecisionInputs
    settings_digest: str
    models: dict[str, str]  # component → version
    plan: FidelityPlan
    regime: Regime
    features: dict[str, float]
    forecast: Forecast
    view: NewsView | None  # None where no news was read
    rationale: Rationale
    circumstances: BarCircumstances
    verdict: PolicyVerdict
    amends: str = ""  # id of the provisional decision that this one takes the place of
    news_context: NewsContext | None = msgspec.field(
        default=None, name="hearing"
    )  # what was known of the news; None where there was none
    # Left out of the entries of decisions on bars.
    trigger: DecisionTrigger | msgspec.UnsetType = msgspec.UNSET
    news_trigger: NewsTrigger | msgspec.UnsetType = msgspec.UNSET
    # Left out of the entries of runs that no bundle governs and nothing was stopped in.
    governance: GovernanceFacts | msgspec.UnsetType = msgspec.UNSET
    # Left out where events change the next bar's band by less than a tenth, and of decisions between bars.
    known_events: KnownEvents | msgspec.UnsetType = msgspec.UNSET

    @property
    def series(self) -> str:
        return series_id(self.symbol, self.interval)

    @property
    def is_between_bars(self) -> bool:
        """Whether it was made between two bars, because of news."""
        return self.trigger is not msgspec.UNSET

    @property
    def awaits_amendment(self) -> bool:
        """Whether an amendment may follow: its view is provisional, or a deeper one was asked."""
        late = self.view is not None and self.view.provisional
        return (late or self.plan.rung_after_release is not None) and not self.amends

    @property
    def is_checkpoint_release(self) -> bool:
        """Whether it releases an earlier decision, which had waited for people."""
        return bool(self.amends) and self.id == checkpoint_release_id(self.amends)

    @property
    def has_own_reading(self) -> bool:
        """Whether its view was read for it, and not kept from an earlier decision of the series."""
        return self.view is not None and self.view.read_at_ns == self.as_of_ns


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """Proof of recording: the entry's place in the ledger and its RFC 9162 leaf hash (hex)."""

    index: int
    leaf_hash: str


def decision_id(series: str, as_of_ns: int) -> str:
    """The id of a decision on a bar."""
    return f"{series}@{_instant_text(as_of_ns)}"


_instant_text = lru_cache(maxsize=8)(format_ns)  # all series of a decision point share it


def amendment_id(first_id: str) -> str:
    """The id of the decision that replaces a provisional one."""
    return f"{first_id}/amended"


def checkpoint_release_id(first_id: str) -> str:
    """The id of the decision that releases one which waited for people."""
    return f"{first_id}/released"


def news_decision_id(series: str, as_of_ns: int) -> str:
    """The id of a decision that answers news between two bars."""
    return f"{decision_id(series, as_of_ns)}/news"


def series_id(symbol: str, interval: str) -> str:
    """The name of one forecast series: a symbol seen through one bar clock."""
    return f"{symbol}/{interval}"


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Decision)


def encode_decision(decision: Decision) -> bytes:
    """Canonical bytes: JSON with fields in declared order, maps in the order they were filled, shortest floats.

    Raises: IntegrityError where a number is not finite: JSON cannot express it.
    """
    entry = _ENCODER.encode(decision)
    if entry.count(b"null") > _num_none_fields(decision):
        try:
            _DECODER.decode(entry)
        except msgspec.ValidationError as error:
            raise IntegrityError(
                f"{decision.id}: a number is not finite and cannot be recorded: {error}"
            ) from error
    return entry


def _num_none_fields(decision: Decision) -> int:
    """How many fields are None, each of which is encoded as null; a number that is not finite is as well."""
    view, news_context = decision.view, decision.news_context
    absent: list[object] = [
        view,
        news_context,
        decision.plan.rung_after_release,
        decision.forecast.tilt,
        decision.circumstances.quote_age_ns,
    ]
    if view is not None:
        absent.append(view.trace)
    if news_context is not None:
        absent += [item.scores for item in (*news_context.considered, *news_context.set_aside)]
    return sum(item is None for item in absent)  # `count` would compare by value


def decode_decision(entry: bytes) -> Decision:
    """The inverse of `encode_decision`. Raises: msgspec.ValidationError."""
    return _DECODER.decode(entry)
