"""What tools give back, typed: the SDK makes each tool's outputSchema of these. Text from news is an `Untrusted`."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from htfi.apps.mcp.untrusted import Untrusted

Outcome = Literal["release", "caution", "withhold", "deleted"]


class HorizonForecast(BaseModel):
    """A horizon's distribution."""

    bars: int = Field(description="How many bars of the series ahead.")
    log_returns: list[float] = Field(description="Quantiles of the log return at the forecast's levels.")
    prices: list[float] = Field(description="The same as prices.")
    low: float = Field(description="Lower end of the 90% band, a price.")
    high: float = Field(description="Upper end of the 90% band, a price.")


class ForecastGiven(BaseModel):
    """A released forecast of one series. Prices are in the units of its feed."""

    series: str
    symbol: str
    interval: str
    as_of: str = Field(description="UTC, the instant that the forecast is made at.")
    decision_id: str
    index: int | None = Field(description="Of its entry in the ledger; null where nothing was recorded.")
    regime: str
    rung: str = Field(description="The fidelity at which news was read.")
    verdict: str = Field(description="Policy's outcome: release, or caution.")
    last_price: float
    levels: list[float]
    horizons: list[HorizonForecast]
    weights: dict[str, float] = Field(description="Experts' weights at the first horizon; they sum to 1.")
    rationale: Untrusted


class ForecastsGiven(BaseModel):
    """Forecasts in order of their series' names."""

    items: list[ForecastGiven]
    next: str | None = Field(description="Ask again with `after` set to this; null on the last page.")


class PostedForecastsGiven(BaseModel):
    """Forecasts of prices that were given; nothing is recorded."""

    items: list[ForecastGiven]
    withheld: dict[str, list[str]] = Field(description="Series that policy withholds, with its reasons.")
    notes: list[str] = Field(description="Rows set aside, and why.")


class DecisionGiven(BaseModel):
    """A decision in one line."""

    index: int
    id: str
    series: str
    as_of: str
    outcome: Outcome
    reasons: list[str] = Field(
        description="Objections of policy, or the retention class of what was deleted."
    )
    last_price: float | None
    low: float | None = Field(description="Lower end of the 90% band at the first horizon, a price.")
    high: float | None
    regime: str
    has_news: bool = Field(description="Whether a reading of news went into it.")
    amends: str = Field(description="Id of the earlier decision that it takes the place of, or empty.")


class DecisionsGiven(BaseModel):
    """Decisions, newest first."""

    items: list[DecisionGiven]
    next: int | None = Field(description="Ask again with `before` set to this; null where there are no more.")


class DecisionDetail(BaseModel):
    """A decision with its forecast, where that was released."""

    decision: DecisionGiven
    leaf_hash: str = Field(description="RFC 9162 leaf hash of its ledger entry, hex.")
    forecast: ForecastGiven | None
    models: dict[str, str] = Field(description="Version of each component that took part.")
    settings_digest: str


class ExplanationPart(BaseModel):
    """A part of an explanation."""

    title: str
    lines: list[Untrusted]


class ExplanationGiven(BaseModel):
    """What became of the news in a decision: read, set aside, weighed, disputed."""

    index: int
    sections: list[ExplanationPart]


class Driver(BaseModel):
    """A feature that moved the forecast."""

    feature: str
    value: float | None
    usual: float | None
    ratio: float | None = Field(description="value over usual")


class View(BaseModel):
    """The opinion on the news that a forecast was tilted by."""

    reader: str
    direction: float = Field(description="−1 down to 1 up")
    size_sigmas: float = Field(description="In standard deviations of one bar.")
    volatility_multiplier: float
    confidence: float
    cause: str
    reason: Untrusted
    cited: list[Untrusted] = Field(description="Ids of the items that it rests on.")
    weight: float | None = Field(description="0–1, from the reader's track record; at the first horizon.")
    median_moved: float | None = Field(description="Of the first horizon, in log return.")
    divergence: float | None = Field(description="0–1: how far the view is from the numbers.")


class NewsItem(BaseModel):
    """An item of news as a decision knew it."""

    id: Untrusted
    source: Untrusted
    screening: str
    trust: float
    rules: list[str] = Field(description="The sanitiser's rules that object.")
    route: str
    event: str
    direction: int | None = Field(
        description="What its facts state for the asset: −1, 0, 1; null if not read."
    )
    size_sigmas: float | None


class ItemEffectGiven(BaseModel):
    """What an item did: the forecast with it, less the forecast without it, at the first horizon."""

    id: Untrusted
    headline: Untrusted
    median_moved: float | None = Field(description="In log return.")
    band_moved: float | None = Field(description="Change of the 90% band's width, in log return.")


class Factors(BaseModel):
    """What a forecast was made of."""

    index: int
    series: str
    weights: dict[str, float] = Field(description="Experts' weights at the first horizon.")
    drivers: list[Driver]
    features: dict[str, float | None]
    view: View | None
    considered: list[NewsItem]
    set_aside: list[NewsItem] = Field(description="In quarantine, or reported before.")
    suspicion: Untrusted = Field(description="Why manipulation was suspected; empty where it was not.")
    effects: list[ItemEffectGiven] | None = Field(description="Null unless `without_each_item` was asked.")


class ReadingGiven(BaseModel):
    """What a headline means for one asset."""

    symbol: str
    event: str
    event_confidence: float
    modality: str
    negated: bool
    direction: float
    size_sigmas: float
    volatility: float = Field(description="How many times the usual the day's move is.")
    confidence: float
    abstains: bool
    why: str = Field(description="Why it states nothing; empty where it does.")
    lines: list[int] = Field(description="Lines of the table of effects that spoke.")
    words: Untrusted
    parties: list[Untrusted]


class HeadlineReading(BaseModel):
    """A headline as it is understood; nothing is recorded."""

    headline: Untrusted
    readings: list[ReadingGiven]


class ScenarioPosition(BaseModel):
    """A series under a scenario: simple returns at the answer's levels."""

    series: str
    way: str = Field(description="How the scenario reaches it.")
    before: list[float]
    after: list[float]
    mean_profit: float


class ScenarioBook(BaseModel):
    """The book's profit: money, or a share of the book, as `unit` says."""

    mean: float
    deviation: float
    quantiles: list[float]
    var_99: float
    es_97_5: float


class ScenarioOutcome(BaseModel):
    """One scenario."""

    kind: str
    asked: Untrusted
    rationale: Untrusted
    book: ScenarioBook
    positions: list[ScenarioPosition]
    weight: float | None = Field(description="Of a headline: by the reader's track record, 0–1.")
    book_if_right: ScenarioBook | None = Field(description="Of a headline: if the reader is right.")
    notes: list[Untrusted]


class ScenarioGiven(BaseModel):
    """Scenarios beside today's forecast; nothing is recorded."""

    as_of: str
    interval: str
    horizon: int
    unit: str
    levels: list[float]
    today: ScenarioBook
    scenarios: list[ScenarioOutcome]
    notes: list[Untrusted]


class Stress(BaseModel):
    """A named past crisis: what each factor did over the window."""

    name: str
    title: str
    moves: dict[str, str]


class StressLibrary(BaseModel):
    """The named stresses."""

    window_days: int
    stresses: list[Stress]


class Verification(BaseModel):
    """Whether the record holds, and what was checked."""

    holds: bool
    problem: str
    recomputed: bool
    num_entries: int
    num_deleted: int
    num_checkpoints: int
    root: str
    log_key: str
    files: list[str] = Field(description="A line for each file beside the ledger that holds.")


class InclusionProofGiven(BaseModel):
    """That an entry is in the ledger under a signed checkpoint: `htfi ledger check-proof` takes it as a file."""

    index: int
    entry: str = Field(description="The entry's bytes, base64.")
    path: list[str] = Field(description="Hashes from leaf to root, base64.")
    checkpoint: str
    log_key: str


class CatalogueSeries(BaseModel):
    """A series of the run."""

    series: str
    symbol: str
    interval: str
    num_decisions: int = Field(description="As far as the server has read: the newest 20,000 entries.")
    newest_index: int
    newest_released: int | None
    newest_as_of: str | None


class Catalogue(BaseModel):
    """What there is to ask about."""

    series: list[CatalogueSeries]
    intervals: list[str]
    num_entries: int
    first_as_of: str | None
    newest_as_of: str | None
    is_running: bool = Field(description="Whether a process writes the record now.")
    models: dict[str, str] = Field(description="Version of each component, of the newest released decision.")
    horizons: list[int]
    levels: list[float]
    settings_digest: str
    settings: dict[str, Any] = Field(description="Of forecasting, market, policy and sanitiser.")
