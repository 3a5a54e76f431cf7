"""Bodies of requests and answers: what `htfi serve` takes and gives, and what its client reads."""

import msgspec

from htfi.tenancy.usage import UsageRow


class Horizon(msgspec.Struct, frozen=True):
    """A horizon's distribution: quantiles of the log return, and of the price, at the forecast's levels."""

    bars: int
    log_returns: list[float]
    prices: list[float]
    low: float  # ends of the 90% band, prices
    high: float


class ForecastBody(msgspec.Struct, frozen=True):
    """The newest forecast of a series. Prices in the units of the feed."""

    series: str
    symbol: str
    interval: str
    as_of: str
    as_of_ns: int
    decision_id: str
    index: int | None  # of its entry in the ledger; None of what is not recorded
    regime: str
    rung: str
    verdict: str
    last_price: float
    levels: list[float]
    horizons: list[Horizon]
    weights: dict[str, float]  # of the experts at the first horizon
    rationale: str


class SeriesBody(msgspec.Struct, frozen=True):
    """A series of the run."""

    series: str
    symbol: str
    interval: str
    num_decisions: int  # as far as the service has read
    newest_index: int
    newest_released: int | None


class ExplanationSection(msgspec.Struct, frozen=True):
    """A part of an explanation."""

    title: str
    lines: list[str]


class SeriesPage(msgspec.Struct, frozen=True):
    """The series of a run."""

    items: list[SeriesBody]


class ForecastPage(msgspec.Struct, frozen=True):
    """Forecasts, and what to ask for the next page with: None on the last."""

    items: list[ForecastBody]
    next: str | int | None


class PostedForecasts(msgspec.Struct, frozen=True):
    """Forecasts of bars that a client posted; of what policy withholds the reasons, by series."""

    items: list[ForecastBody]
    withheld: dict[str, list[str]]
    notes: list[str]  # rows set aside, and why


class ExplanationBody(msgspec.Struct, frozen=True):
    """Why a decision is as it is."""

    index: int
    sections: list[ExplanationSection]


class Health(msgspec.Struct, frozen=True):
    """Whether the service and its run are well."""

    status: str
    reason: str
    is_running: bool
    num_entries: int
    num_series: int


class ChartBody(msgspec.Struct, frozen=True):
    """Columns of n released decisions, oldest first, and of m points ahead of the newest. Prices in units of the feed.

    Shapes: times_s, prices, low, high, indexes [n]; fan_times_s [m]; fan_levels [5]; fan [m][5]. `low` and `high` are
    the ends of the 90% band that the decision before had forecast for a price; None where there is none.
    """

    series: str
    indexes: list[int]
    times_s: list[int]
    prices: list[float]
    low: list[float | None]
    high: list[float | None]
    fan_times_s: list[int]
    fan_levels: list[float]
    fan: list[list[float]]


class ForecastQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices to forecast from, oldest first or not: rows with a time and a close at least."""

    bars: list[dict[str, str | float | int | None]]
    symbol: str | None = None
    interval: str | None = None
    horizons: list[int] | None = None
    news: list[dict[str, str | float | int | list[str] | None]] | None = None


class ScenarioQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What if: shocks, headlines, macro surprises or stresses, on a book of positions in money."""

    shocks: list[str] = msgspec.field(default_factory=list[str])
    headlines: list[str] = msgspec.field(default_factory=list[str])
    on: list[str] = msgspec.field(default_factory=list[str])
    macro: list[str] = msgspec.field(default_factory=list[str])
    stresses: list[str] = msgspec.field(default_factory=list[str])
    positions: dict[str, float] | None = None
    horizon: int | None = None
    interval: str | None = None
    seed: int = 0
    draws: int = 4_000


class GivenKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key or token, to begin a session with."""

    key: str


class SessionBody(msgspec.Struct, frozen=True):
    """Who asks."""

    tenant: str
    name: str
    scopes: list[str]


class UsagePage(msgspec.Struct, frozen=True):
    """Rows by day and key; those with an empty key state the decisions of the run."""

    items: list[UsageRow]


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not answered (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str = ""


ANSWERS = (
    SeriesPage, ForecastPage, PostedForecasts, ExplanationBody, Health, ChartBody, SessionBody, UsagePage,
)  # fmt: skip
QUESTIONS = (ForecastQuestion, ScenarioQuestion, GivenKey)
