"""What the loop works with: the components of a run, its context, and the chained digest of its inputs.

Wiring builds components and context; `state` saves the components.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import asdict

from htfi.decoding.prices import ScaledReturns
from htfi.domain.decision import DecisionInputs
from htfi.domain.events import Event, News, SuspicionReset
from htfi.forecasting.forecaster import Forecaster
from htfi.market.state import MarketState
from htfi.narrative.config import TriggersConfig
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.rationale.drivers import FeatureBaseline
from htfi.pipeline.config import PipelineConfig
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.prepared_views import PreparedViews
from htfi.pipeline.swap_tests import SwapTests
from htfi.pipeline.view_cache import ViewCache
from htfi.scheduling.config import FidelityConfig

FOLD_EVENTS = 4096
NUM_REMEMBERED_ROWS = 4096.0
MIN_ROWS = 100.0  # a bad row among the first few is not a share worth speaking of


_LATER_FIELDS = ("residency", "publisher", "corrects", "retracts", "released_by")  # fields of news


class InputChain:
    """`digest ← SHA-256(digest ‖ MessagePack of the next events)`, folded at each close and every 4,096 events.

    Two runs that read the same events decide with the same digests, however their files are cut.
    """

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._digest = hashlib.sha256(b"htfi/inputs/v1").digest()
        self._open = bytearray()
        self._num_events = 0
        self._rows: dict[str, tuple[int, int]] = {}
        self._newest_row: dict[str, int] = {}
        self._rows_seen = 0.0
        self._rows_missing = 0.0

    def add(self, event: Event | SuspicionReset) -> None:
        hashed = event if type(event) is not News else _hashed_fields(event)
        self._encoder.encode_into(hashed, self._open, -1)
        self._num_events += 1
        row, source = event.row, event.source
        first, last = self._rows.get(source, (row, row))
        self._rows[source] = (first if first < row else row, last if last > row else row)
        newest = self._newest_row.get(source, 0)
        if row > newest:
            self._newest_row[source] = row
            self._rows_seen += row - newest
            self._rows_missing += row - newest - 1
        else:
            self._rows_missing -= 1  # it came late, out of the gap it had left
        if self._num_events % FOLD_EVENTS == 0:
            self._fold()

    def missing_share(self) -> float:
        """The share of the sources' latest rows that never became events: 0–1, remembered over 4,096 rows."""
        return max(self._rows_missing, 0.0) / max(self._rows_seen, MIN_ROWS)

    def has_rows_from(self, source: str) -> bool:
        """Whether any row of a source became an event."""
        return source in self._newest_row

    def _fold(self) -> None:
        self._digest = hashlib.sha256(self._digest + self._open).digest()
        self._open.clear()

    def close(self) -> DecisionInputs:
        """The inputs since the last close; without any, the same digest again."""
        if self._open:
            self._fold()
        inputs = DecisionInputs(self._digest.hex(), self._num_events, self._rows)
        self._num_events = 0
        self._rows = {}
        if self._rows_seen > NUM_REMEMBERED_ROWS:
            kept = NUM_REMEMBERED_ROWS / self._rows_seen
            self._rows_seen *= kept
            self._rows_missing *= kept
        return inputs

    def state(self) -> dict[str, Any]:
        return {
            "digest": self._digest,
            "open": bytes(self._open),
            "num_events": self._num_events,
            "rows": {source: list(span) for source, span in self._rows.items()},
            "newest_row": dict(self._newest_row),
            "rows_seen": self._rows_seen,
            "rows_missing": self._rows_missing,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._digest = state["digest"]
        self._open = bytearray(state["open"])
        self._num_events = state["num_events"]
        self._rows = {source: (first, last) for source, (first, last) in state["rows"].items()}
        self._newest_row = dict(state["newest_row"])
        self._rows_seen = state["rows_seen"]
        self._rows_missing = state["rows_missing"]


def _hashed_fields(item: News) -> dict[str, Any]:
    """News without the fields that came later and are empty: their digests stay what they were."""
    fields = {"type": "news", **asdict(item)}
    for name in _LATER_FIELDS:
        if not fields[name]:
            del fields[name]
    return fields


@dataclass(frozen=True, slots=True)
class Components:
    """The parts of a run that have state of their own."""

    market: MarketState
    forecaster: Forecaster
    views: ViewCache
    news: NewsProcessor
    typical_features: FeatureBaseline
    prepared: PreparedViews
    governance: RunGovernance
    swap_tests: SwapTests = field(default_factory=SwapTests)
    scaled_returns: ScaledReturns = field(default_factory=ScaledReturns)
    inputs: InputChain = field(default_factory=InputChain)
    band_widths: dict[str, float] = field(
        default_factory=dict[str, float]
    )  # series → its last 90% band, log return

    def state(self) -> dict[str, Any]:
        return {
            "market": self.market.state(),
            "forecaster": self.forecaster.state(),
            "desk": self.news.state(),
            "usual": self.typical_features.state(),
            "readings": self.views.state(),
            "preparing": self.prepared.state(),
            "scaled": self.scaled_returns.state(),
            "inputs": self.inputs.state(),
            "widths": dict(self.band_widths),
            "governance": self.governance.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.market.restore(state["market"])
        self.forecaster.restore(state["forecaster"])
        self.news.restore(state["desk"])
        self.typical_features.restore(state["usual"])
        self.views.restore(state["readings"])
        self.prepared.restore(state["preparing"])
        self.scaled_returns.restore(state["scaled"])
        self.inputs.restore(state["inputs"])
        self.band_widths.clear()
        self.band_widths.update(state["widths"])
        if "governance" in state:  # not in one that an earlier version saved
            self.governance.restore(state["governance"])


@dataclass(frozen=True, slots=True)
class RunContext:
    """What holds for the whole run: limits, and the versions that a decision records."""

    pipeline: PipelineConfig
    fidelity: FidelityConfig
    settings_digest: str
    models: dict[str, str]
    triggers: TriggersConfig = field(default_factory=TriggersConfig)
    is_recorded: bool = True  # decisions that nothing keeps have no entry
