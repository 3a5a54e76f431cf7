"""Builds the decision loop over any feed, ledger and sink, with its components. Runs, scenarios and the library ask."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from htfi import __version__
from htfi.domain.decision import Rung
from htfi.domain.file_digests import DigestFile, file_digest
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.ports import Expert
from htfi.governance import policy
from htfi.market.state import MarketState
from htfi.narrative.ports import NewsReader
from htfi.narrative.rationale.drivers import FeatureBaseline
from htfi.narrative.rationale.versions import MODEL_KEY, VERSION
from htfi.narrative.readers import TemplateReader
from htfi.pipeline.amendments import wait_until
from htfi.pipeline.audit.keys import NOISE_KEY, PROMOTED_DRAFTS_KEY
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.operator_actions import HeldNewsStore
from htfi.pipeline.point_telemetry import NO_TELEMETRY, PointTelemetry
from htfi.pipeline.ports import DecisionLedger, DecisionSink, EventFeed
from htfi.pipeline.prepared_views import PreparedViews
from htfi.pipeline.recorder import DecisionRecorder, Subscriber, Watcher, no_subscriber
from htfi.pipeline.view_cache import READINGS_VERSION as READINGS
from htfi.pipeline.view_cache import ViewCache
from htfi.scheduling import fidelity
from htfi.scheduling.fidelity import ReadingTimes
from htfi.wiring.calendar import open_calendar
from htfi.wiring.experts import open_experts
from htfi.wiring.news import build_news_processor
from htfi.wiring.settings import Settings, settings_digest

if TYPE_CHECKING:  # in memory there is none
    from htfi.wiring.models.caching import RunCache


def build_components(
    settings: Settings,
    readers: Mapping[Rung, NewsReader] | None = None,
    cache: "RunCache | None" = None,
    reading_clock: Callable[[], int] | None = None,
    digest_file: DigestFile | None = file_digest,
    governance: RunGovernance | None = None,
    more_experts: Sequence[Expert] = (),
    telemetry: PointTelemetry = NO_TELEMETRY,
) -> Components:
    """New components, without history. Without readers news is cited and not read.

    `more_experts` forecast beside those that the settings name.
    """
    readers = readers or {Rung.TEMPLATE: TemplateReader(settings.narrative)}
    times = ReadingTimes(settings.scheduling, reading_clock)
    readings = ViewCache(readers, settings.narrative.max_symbols, times, telemetry)
    has_frontier = bool(settings.models.frontier_url) and Rung.DEEP in readers
    processor = build_news_processor(settings, cache, has_frontier=has_frontier, digest_file=digest_file)
    calendar = open_calendar(settings.narrative.calendar)
    return Components(
        market=MarketState(settings.market),
        forecaster=Forecaster(
            settings.forecasting,
            (*open_experts(settings.forecasting, settings.forecasting.foundation), *more_experts),
            calendar.events,
        ),
        views=readings,
        news=processor,
        typical_features=FeatureBaseline(settings.narrative),
        prepared=PreparedViews(calendar, settings.prefetching, processor, readings),
        governance=governance or RunGovernance(settings.policy),
    )


def build_loop(
    settings: Settings,
    feed: EventFeed,
    ledger: DecisionLedger,
    outlet: DecisionSink,
    watch: Watcher = lambda _: None,
    readers: Mapping[Rung, NewsReader] | None = None,
    cache: "RunCache | None" = None,
    held: HeldNewsStore | None = None,
    reading_clock: Callable[[], int] | None = None,
    digest: str = "",
    digest_file: DigestFile | None = file_digest,
    subscriber: Subscriber = no_subscriber,
    is_recorded: bool = True,
    governance: RunGovernance | None = None,
    more_experts: Sequence[Expert] = (),
    promoted: Mapping[str, str] = MappingProxyType({}),
    mark_key_id: str = "",
    telemetry: PointTelemetry = NO_TELEMETRY,
) -> DecisionLoop:
    """The loop over any feed, ledger and sink, with new components; `held` keeps the news in quarantine.

    `digest` is that of the run's settings.json, where it has one; `digest_file` gives those of the encoder's files,
    which are computed at its first text without it; `subscriber` gets each decision at the moment of its release. Where
    nothing is recorded no entry is made. `more_experts` are as in `build_components`; decisions name what was
    `promoted` (lineage to digest). `mark_key_id` names the marking key of the readers' noise.
    """
    components = build_components(
        settings, readers, cache, reading_clock, digest_file, governance, more_experts, telemetry
    )
    recorder = DecisionRecorder(
        ledger,
        outlet,
        group_entries=settings.pipeline.group_entries,
        group_ms=settings.pipeline.group_ms,
        elapsed_ns=time.monotonic_ns,
        governance=components.governance,
        subscriber=subscriber,
        watcher=watch,
        is_recorded=is_recorded,
        telemetry=telemetry,
    )
    terms = RunContext(
        pipeline=settings.pipeline,
        fidelity=settings.scheduling,
        settings_digest=digest or settings_digest(settings),
        models={
            "htfi": __version__,
            "policy": policy.VERSION,
            MODEL_KEY: VERSION,
            "readings": READINGS,
            "fidelity": fidelity.VERSION,
            **({PROMOTED_DRAFTS_KEY: "promoted while it runs"} if settings.models.promoted_drafts else {}),
            **({NOISE_KEY: mark_key_id} if mark_key_id else {}),
            **components.news.models,
            **components.views.models,
            **components.prepared.models,
            **components.forecaster.models,
            **{f"promoted.{lineage}": digest for lineage, digest in promoted.items()},
        },
        triggers=settings.triggers,
        is_recorded=is_recorded,
    )
    linger = wait_until(settings.pipeline.late_wait_ms, time.monotonic, time.sleep)
    return DecisionLoop(feed, components, recorder, terms, linger, held, telemetry)
