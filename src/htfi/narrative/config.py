"""Settings and constants of the narrative package: news, routing, the secure mode, views prepared before announcements,
the encoder.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import HOUR_MS, Count, Share, SpanNs, check_bounds, setting, setting_from
from htfi.domain.time import NS_PER_DAY

MIN_WEIGHT = 0.125  # three half-lives: an item that weighs less is forgotten
MAX_ITEMS_PER_SYMBOL = 32  # the newest are kept
MAX_HEADLINE_CHARS = 160  # of a headline in a rationale; the sanitiser reads more
MAX_BODY_CHARS = 8_000  # recorded in settings.json since the first ledgers; no body is kept
USUAL_HALF_LIFE_BARS = 60.0  # of what is usual of a feature
USUAL_MIN_BARS = 20  # before which nothing is called unusual


@dataclass(frozen=True, slots=True)
class NarrativeConfig:
    """How long news counts, how it is read and cited."""

    half_life_ns: SpanNs = setting(NS_PER_DAY, "time after which the weight of a news item has halved")
    max_symbols: Count = setting(4096, "symbols whose news is kept", "symbols")
    max_cited: Annotated[int, Meta(ge=0, le=3)] = setting(2, "headlines cited in a rationale", "headlines")
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = setting(
        0.0, "sampling temperature of a reading model; 0 takes the most likely tokens"
    )
    deep_paths: Annotated[int, Meta(ge=1, le=256)] = setting(
        16, "answers drawn for one reading in depth", "answers"
    )
    deep_temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = setting(
        1.0, "sampling temperature of a reading in depth"
    )
    symbol_names: dict[str, str] = setting_from(
        dict[str, str], "company names by symbol, as the news writes them"
    )
    trace: bool = setting(
        False,
        "record of each reading which words carried it, and digests of attention and last hidden states; "
        "one more pass of the model for each word of the headlines",
    )
    calendar: str = setting("", "file of scheduled events or announcements; 'recurring': by rule; 'sample'")

    def __post_init__(self) -> None:
        check_bounds("narrative", self)


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """Which model reads an item. Its worth is relevance · novelty · (½ + ½ position), all 0–1."""

    min_relevance: Share = setting(0.2, "items of lower relevance are not read", "0–1")
    min_tagged_relevance: Share = setting(0.5, "minimum relevance of an item that names a symbol", "0–1")
    min_novelty: Share = setting(0.05, "items of lower novelty are not read", "0–1")
    min_draft_worth: Share = setting(0.15, "value from which the draft model reads an item", "0–1")
    min_target_worth: Share = setting(0.3, "value from which the target model reads an item", "0–1")
    min_frontier_worth: Share = setting(
        0.9, "value from which the frontier model is asked, after the release", "0–1"
    )
    default_position: Share = setting(1.0, "position in a symbol that `positions` does not name", "0–1")
    positions: dict[str, Share] = setting_from(dict[str, float], "position by symbol", "0–1")
    frontier_cents_per_reading: Annotated[float, Meta(gt=0.0, le=1e9)] = setting(
        1.0, "estimated price of one question to the frontier model", "cents"
    )
    frontier_budget_cents: Annotated[float, Meta(ge=0.0, le=1e9)] = setting(
        100.0, "budget of a run for the frontier model", "cents"
    )

    def __post_init__(self) -> None:
        check_bounds("routing", self)
        if not self.min_draft_worth <= self.min_target_worth <= self.min_frontier_worth:
            raise InvalidInput("routing: need min_draft_worth <= min_target_worth <= min_frontier_worth")

    def position_in(self, symbol: str) -> float:
        """The position in a symbol, 0–1."""
        return self.positions.get(symbol, self.default_position)


# Suspicious share of all news from which the whole stream is suspected: a large stream has a few false alarms.
MIN_SHARE_FOR_ALL = 0.05
CALM_BELOW = 1_000  # suspicion beneath which the cool-down begins
FINDING_WEIGHT = 1_000  # thousandths that one finding adds
GRAVE_FINDING_WEIGHT = 2_000  # that a finding of GRAVE_RULES adds
SHARE_FOR_ALL = 0.25  # of a finding on some symbols that counts for all
SUSPICION_HALF_LIFE_NS = NS_PER_DAY // 4  # of suspicion
EXTREME_DIVERGENCE = (
    0.99  # rank of divergence that adds suspicion where the source is trusted less than LOW_TRUST
)
LOW_TRUST = 0.5  # see EXTREME_DIVERGENCE
MAX_SCOPES = 4_096  # symbols and sources under suspicion at once
GRAVE_RULES = ("injection", "impersonation", "contradicted", "hidden")  # what is done on purpose


@dataclass(frozen=True, slots=True)
class SuspicionConfig:
    """When the secure mode starts and ends. Suspicion is counted in thousandths and fades."""

    symbol_threshold: Count = setting(
        3_000, "suspicion of a symbol or source at which the secure mode starts", "thousandths"
    )
    market_threshold: Count = setting(
        6_000, "suspicion of the whole stream at which it starts for all symbols", "thousandths"
    )
    cool_down_ns: SpanNs = setting(NS_PER_DAY, "time without new suspicion after which the secure mode ends")
    max_view_weight: Share = setting(0.25, "maximum weight of a view in the secure mode", "0–1")

    def __post_init__(self) -> None:
        check_bounds("suspicion", self)
        if not CALM_BELOW <= self.symbol_threshold <= self.market_threshold:
            raise InvalidInput(f"suspicion: need {CALM_BELOW} <= symbol_threshold <= market_threshold")


_DAY_S = 86_400.0


MIN_TRIGGER_RELEVANCE = 0.5  # items of lower relevance are left to the next bar
MIN_TRIGGER_NOVELTY = 0.2  # items of lower novelty are left to the next bar


@dataclass(frozen=True, slots=True)
class TriggersConfig:
    """Which news gives a series a decision of its own between two bars, and how often."""

    enabled: bool = setting(True, "answer news that matters when it comes, not only when a bar closes")
    min_sentiment: Share = setting(
        0.5, "sentiment, or a central bank's stance, from which an item matters", "0–1"
    )
    min_event_confidence: Share = setting(
        0.6, "confidence in the kind of event from which an item matters", "0–1"
    )
    moment_ms: Annotated[float, Meta(ge=0.0, le=60_000.0)] = setting(
        0.0,
        "how long the first item waits for others of its series; 0: items of one instant are answered together",
    )
    min_interval_s: Annotated[float, Meta(gt=0.0, le=_DAY_S)] = setting(
        30.0,
        "time between two such decisions of a series; what comes meanwhile is answered together at its end",
    )
    max_per_hour: Annotated[int, Meta(ge=1, le=100_000)] = setting(
        120, "such decisions of a run in one hour of event time, at most", "decisions"
    )

    def __post_init__(self) -> None:
        check_bounds("triggers", self)


EARLY_S = 1.0  # an item may come that long before its announcement: clocks differ
READING_MS = 80.0  # of one reading on any machine, so that a replay prepares the same views


@dataclass(frozen=True, slots=True)
class PrefetchingConfig:
    """Views that are prepared before a scheduled announcement."""

    lead_s: Annotated[float, Meta(gt=0.0, le=_DAY_S)] = setting(
        300.0, "how long before a scheduled announcement views are prepared"
    )
    window_s: Annotated[float, Meta(gt=0.0, le=_DAY_S)] = setting(
        1_800.0, "how long after it prepared views are kept"
    )
    budget_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = setting(
        2_000.0, "reading time spent on one announcement"
    )

    def __post_init__(self) -> None:
        check_bounds("prefetching", self)
        if not self.lead_s > EARLY_S:
            raise InvalidInput(f"prefetching: lead_s must be more than {EARLY_S:g} s")

    @property
    def max_readings(self) -> int:
        """How many readings are prepared for one announcement."""
        return int(self.budget_ms / READING_MS)


WEIGHTS = ("auto", "none")


MAX_TOKENS = 64  # of a text: headlines are shorter, bodies say the same again
MAX_RECENT = 512  # items that a new one is compared with
RECENT_HALF_LIFE_NS = 2 * NS_PER_DAY  # of the likeness to an earlier item


@dataclass(frozen=True, slots=True)
class EncodingConfig:
    """Which encoder scores the news."""

    model: str = setting(
        "auto",
        "auto (the shipped encoders), heads (without that of facts), none, or the folder of a BERT encoder",
    )
    precision: str = setting("int8", "int8 or fp32")
    threads: Annotated[int, Meta(ge=0, le=64)] = setting(
        0,
        "threads that share a batch, 0 for all cores; on each core after the first, up to 3, a process reads news "
        "of files ahead",
        "threads",
    )

    def __post_init__(self) -> None:
        check_bounds("encoding", self)
        if not self.model:
            raise InvalidInput(f"encoding.model must be one of {', '.join(WEIGHTS)}, or a folder")
        if self.precision not in ("int8", "fp32"):
            raise InvalidInput(f"encoding.precision must be int8 or fp32, not '{self.precision}'")
