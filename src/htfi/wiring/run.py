"""Builds a run: feed, components, ledger and outlet, joined by the loop. The run command and the benches ask for it."""

import gc
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

from htfi.adapters.keys.mark_key import mark_key_of
from htfi.adapters.onnx.session import default_cache_folder
from htfi.adapters.stores.admissions import AdmissionsFile
from htfi.adapters.stores.control_folder import ControlWatcher, DeadMansSwitch
from htfi.adapters.stores.decisions import JOURNAL, DecisionJournal, NullJournal
from htfi.adapters.stores.held_news import HELD_NEWS, HeldNewsFile, QuarantineFile
from htfi.adapters.stores.line_server import LineServer
from htfi.adapters.stores.released_lines import FollowingReader
from htfi.adapters.stores.snapshot import SnapshotFile, read_whole, write_whole
from htfi.domain.decision import Rung
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.file_digests import DigestFile, FileDigestCache, file_digest
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import SystemClock
from htfi.governance.ledger.log import TransparencyLog
from htfi.narrative.ports import Closable
from htfi.narrative.readers import TemplateReader
from htfi.pipeline.intake.adjusting import AdjustedFeed, SeriesAdjustments
from htfi.pipeline.intake.merged_feed import MergedFeed, PacedFeed
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, describe_refused_source
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.operator_actions import OperatorFeed
from htfi.pipeline.point_telemetry import NO_TELEMETRY, PointTelemetry
from htfi.pipeline.ports import DecisionSink, EventFeed, RowQuarantine
from htfi.pipeline.record.decoded_once import DecodedOnce
from htfi.pipeline.recorder import Watcher, no_subscriber
from htfi.pipeline.run_state import LedgerTruncated, RunStateStore, SavedRun
from htfi.wiring.calendar import open_calendar
from htfi.wiring.control import open_governance
from htfi.wiring.feeds import describe, open_feed, resolve
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.models.caching import RunCache, open_cache
from htfi.wiring.models.readers import open_readers
from htfi.wiring.news_ahead import news_ahead
from htfi.wiring.notices import warn
from htfi.wiring.outputs import (
    INBOX,
    QUARANTINE,
    STATE,
    OutputFile,
    changed_since_save,
    choose_outputs,
    claim_folder,
    recorded_run,
    repair_journal,
)
from htfi.wiring.pushed import PushedFeed
from htfi.wiring.settings import (
    SETTINGS_FILE,
    Settings,
    digest_of,
    override,
    settings_to_record,
)

if TYPE_CHECKING:  # a run without other machines loads none of their libraries
    from htfi.wiring.cluster.edge import EdgeNode
    from htfi.wiring.trading import OpenOrders

LEDGER_ORIGIN = "htfi.run"
CACHE_FLUSH_S = (
    0.2  # a transaction of the folder's cache takes milliseconds; a crash costs no more than what it held
)
_NOT_ROW_REASONS = (
    QuarantineReason.UNREACHABLE,
    QuarantineReason.BAD_DOCUMENT,
    QuarantineReason.HIDDEN_TEXT,
)  # a source, or a part of an item


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is open: what it is made of, and `go`."""

    loop: DecisionLoop
    ledger: TransparencyLog
    quarantine: RowQuarantine
    resume: RunStateStore
    snapshot_s: float
    num_resumed: int  # decisions made before this start
    outputs: frozenset[OutputFile]
    controls: ControlWatcher
    mirror: FollowingReader | None = None  # who reads decisions from standard output
    cache: RunCache | None = None
    orders: "OpenOrders | None" = None
    events: Sequence[ScheduledEvent] = ()  # of the calendar
    calendar_notices: Sequence[str] = ()  # what is wrong with it
    decoded: DecodedOnce | None = None  # the decisions of which lines were made, of a run that ends

    def rejected_sources(self) -> list[str]:
        """A line on each source whose every row was quarantined."""
        aside = {
            source: {reason: num for reason, num in by_reason.items() if reason not in _NOT_ROW_REASONS}
            for source, by_reason in self.quarantine.counts_by_source().items()
            if not self.loop.components.inputs.has_rows_from(source)
        }
        lines: list[str] = []
        for source, counts in aside.items():
            if counts:
                most = max(counts, key=counts.__getitem__)
                lines.append(describe_refused_source(source, counts, self.quarantine.example(source, most)))
        return lines

    def run_to_end(self, after_item: Callable[[], None]) -> None:
        """Run the loop to the end of its feed or to `loop.stop`, saving its state now and then and at the end."""
        next_save_s = time.monotonic() + self.snapshot_s
        next_flush_s = 0.0

        def keep() -> None:
            nonlocal next_save_s, next_flush_s
            after_item()
            now_s = time.monotonic()
            if self.cache is not None and now_s >= next_flush_s:
                self.cache.tiers.flush()
                next_flush_s = now_s + CACHE_FLUSH_S
            if now_s >= next_save_s:
                self.resume.save(self.loop, self.quarantine)
                gc.collect()
                next_save_s = time.monotonic() + self.snapshot_s

        with deferred_garbage_collection():
            self.loop.run(keep)
        recorder = self.loop.recorder
        if recorder.cursor.is_replaying and not self.loop.stopped:
            raise IntegrityError(
                f"the inputs end before what the ledger holds: {recorder.num_recorded} of {self.ledger.size} decisions "
                "could be made again; give the same inputs, or use a new folder"
            )
        self.resume.save(self.loop, self.quarantine, is_last=True)


@contextmanager
def deferred_garbage_collection() -> Generator[None]:
    """No cyclic collection inside: a full one takes 20 ms in the middle of a decision. The loop makes no cycles.

    What lives before is not looked at again: it is modules and models, nearly all of which last as long as the process.
    """
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # as old as the rest: else the next collection begins with all that was made inside
        gc.enable()
        gc.unfreeze()


@contextmanager
def open_run(
    settings: Settings,
    folder: Path,
    files: Sequence[str],
    mapping: Path | None = None,
    *,
    zone: str = "",
    mirror: BinaryIO | None = None,
    pace: float | None = None,
    watch: Watcher = lambda _: None,
    edge: "EdgeNode | None" = None,
    releases: Path | None = None,
    outputs: Collection[OutputFile] | None = None,
    pushed: PushedFeed | None = None,
    listen: str = "",
    with_models: bool = True,
    switch: DeadMansSwitch | None = None,
    governance_folder: Path | None = None,
    promoted: Mapping[str, str] = MappingProxyType({}),
    with_orders: bool = False,
    venue_files: Sequence[Path] = (),
    telemetry: PointTelemetry = NO_TELEMETRY,
) -> Generator[OpenRun]:
    """A run in `folder`, new or taken up where it was left; everything is closed on the way out.

    `zone` is that of times without one, where the mapping states none. With an `edge` the news is read by its readers,
    whose targets are elsewhere. `releases` is the released.jsonl of a run that this one repeats. `outputs` are the
    derived files wanted (`choose_outputs`). With `pushed` there are no files: who pushes events steps the loop.
    Decisions are served at the address `listen` (`LineServer`). Unless it is `with_models`, news is cited and no
    language model reads it. A supervisor that leaves the file of the `switch`
    untouched for too long stops everything. It goes by the policy bundle of the `governance_folder`. `promoted` are
    the digests of what was promoted there and shaped the settings, which every decision names. Where the folder holds
    a marking key, mark.key, the noise of readings follows from it. `with_orders` acts on released decisions by orders
    (`wiring.trading`): such a run is made again from its inputs when it goes on, and compares its orders with those
    that it recorded. They go through FIX where `venue_files` state the sessions. `telemetry` is told of each point.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    specs = resolve(files, mapping, zone=zone) if pushed is None else []
    infos = describe(specs)
    sources = [{"name": info.name, "settings": info.settings} for info in infos]
    if pushed is not None:
        sources = pushed.sources
    digest_file = _cached_digests()
    with ExitStack() as closing:
        ledger = open_ledger(
            folder, origin=LEDGER_ORIGIN
        )  # its lock keeps a second process out of the folder
        closing.push(_close_keeping_error(ledger.close))
        claim_folder(folder, warn)
        mark_key = mark_key_of(folder)
        cache = open_cache(settings.cache, folder, warn)
        if cache is not None:
            closing.push(_close_keeping_error(cache.tiers.close))
        if edge is not None:
            closing.enter_context(edge.peer_log.recording(folder, edge.monitor.changes()))
            readers = edge.readers
        elif not with_models:
            readers = {Rung.TEMPLATE: TemplateReader(settings.narrative)}
        else:
            readers = open_readers(
                settings.models,
                settings.narrative,
                settings.decoding,
                cache,
                digest_file,
                mark_key,
                telemetry,
            )
            for reader in readers.values():
                if isinstance(reader, Closable):
                    closing.push(_close_keeping_error(reader.close))
        read_by = {rung.value: reader.version for rung, reader in readers.items()}
        stated = settings_to_record(settings, read_whole(folder / SETTINGS_FILE))
        digest = digest_of(stated)
        calendar_notices: list[str] = []
        calendar = open_calendar(settings.narrative.calendar, calendar_notices.append)
        for line in calendar_notices:
            warn(line)
        identity = {
            "settings": digest,
            "sources": sources,
            "readers": read_by,
            "calendar": calendar.digest,
            "marking key": None if mark_key is None else mark_key.id,
        }
        if promoted:
            identity = {"promotions": dict(promoted), **identity}
        resume = RunStateStore(
            SnapshotFile(folder / STATE), identity, str(folder), lambda size: ledger.root(size).hex()
        )
        saved = None if with_orders else _load_saved_state(resume, folder, ledger)
        write_whole(folder / SETTINGS_FILE, stated)
        quarantine = QuarantineFile(folder / QUARANTINE, saved.quarantine if saved else None)
        closing.push(_close_keeping_error(quarantine.close))
        sizes = [info.num_bytes for info in infos]
        chosen = choose_outputs(folder, outputs, sizes, is_piped=mirror is not None or bool(listen))
        outlet: DecisionSink = NullJournal(ledger.size)
        ends = pushed is None and not any(spec.live for spec in specs)  # and its files are made then
        decoded = DecodedOnce() if ends else None
        if OutputFile.LINES in chosen:
            mended = repair_journal(folder, recorded_run(ledger).entries, saved.num_released if saved else 0)
            if mended:
                warn(f"{folder / JOURNAL} did not match the ledger ({mended}): it is written again")
            outlet = journal = DecisionJournal(folder, mirror, decoded)
            if listen:
                may_send = edge.may_publish if edge is not None else lambda: True
                closing.push(_close_keeping_error(LineServer(listen, journal.lines, may_send).close))
        closing.push(_close_keeping_error(outlet.close))
        held = HeldNewsFile(folder / HELD_NEWS, saved.held if saved else None)
        closing.push(_close_keeping_error(held.close))
        position = saved.feed["feed"] if saved else None
        feed: EventFeed
        if pushed is not None:
            feed = pushed
            if position is not None:
                pushed.restore(position)
        else:
            clock = SystemClock()
            feed = open_feed(
                specs, inbox=folder / INBOX, quarantine=quarantine, clock=clock, position=position
            )
        merged = feed if isinstance(feed, MergedFeed) else None
        closing.push(_close_keeping_error(feed.close))
        if pace is not None:
            feed = PacedFeed(feed, pace, time.monotonic_ns, time.sleep)
        released = AdmissionsFile(folder, releases)
        feed = operators = OperatorFeed(
            feed, held, released, time.monotonic_ns, saved.feed if saved else None
        )
        adjustments = SeriesAdjustments(settings.market.renames, settings.market.splits)
        if adjustments:
            feed = AdjustedFeed(feed, adjustments)
        live = feed.progress() is None
        if live or with_orders:  # the time of the next item is unknown, so no group may wait for it
            settings = override(settings, "pipeline", group_ms=0.0)
        # Files give the same decisions on any machine: only readings of a live run are measured.
        elapsed_ns = time.monotonic_ns if live else None
        governance, controls = closing.enter_context(
            open_governance(folder, settings.policy, switch, governance_folder)
        )
        orders: OpenOrders | None = None
        if with_orders:
            from htfi.wiring.trading import open_orders

            orders = closing.enter_context(
                open_orders(settings, folder, governance, ledger.size, venue_files)
            )
            feed = orders.follow(feed)
        loop = build_loop(
            settings,
            feed,
            ledger,
            outlet,
            watch,
            readers,
            cache,
            held,
            elapsed_ns,
            digest,
            digest_file,
            subscriber=no_subscriber if orders is None else orders.trader.subscribe,
            governance=governance,
            promoted=promoted,
            mark_key_id="" if mark_key is None else mark_key.id,
            telemetry=telemetry,
        )
        loop.recorder.subscribes_again = with_orders
        operators.is_repeating = lambda: loop.recorder.cursor.is_replaying
        if orders is not None:
            orders.trader.follow_dependence(loop.components.forecaster.surprises)
        news = loop.components.news
        if merged is not None:
            merged.announce = news.expect
            merged.on_silence = loop.release_answered
        if merged is not None and not live and (ahead := news_ahead(settings, news, warn)) is not None:
            news.items_ahead = ahead
            merged.on_end = ahead.close  # what follows needs their memory
            closing.push(_close_keeping_error(ahead.close))
        if saved is not None:
            loop.restore(saved.loop)
        yield OpenRun(
            loop,
            ledger,
            quarantine,
            resume,
            settings.pipeline.snapshot_s,
            loop.recorder.num_decided,
            chosen,
            controls,
            outlet.mirror if isinstance(outlet, DecisionJournal) else None,
            cache,
            orders,
            calendar.events,
            calendar_notices,
            decoded,
        )


def _cached_digests() -> DigestFile:
    """Digests of models' files, those that have not changed from the cache of this machine, where there is a home."""
    try:
        return FileDigestCache(default_cache_folder() / "digests").digest
    except RuntimeError:  # nobody has a home here
        return file_digest


def _load_saved_state(resume: RunStateStore, folder: Path, ledger: TransparencyLog) -> SavedRun | None:
    """The saved state; None where there is none, or it or a file that it goes with is not as it was saved."""
    try:
        saved = resume.load(ledger.size)
        problem = changed_since_save(folder, saved.quarantine, saved.held) if saved is not None else ""
    except LedgerTruncated:
        raise
    except IntegrityError as error:
        saved, problem = None, str(error)
    if problem:
        warn(
            f"{folder}: {problem}: the run begins again with its inputs, and what it decides must equal its ledger"
        )
        return None
    return saved


def _close_keeping_error(close: Callable[[], None]) -> Callable[[object, BaseException | None, object], None]:
    """Close on the way out; where something failed already, that is reported, not what follows from it."""

    def leave(kind: object, error: BaseException | None, trace: object) -> None:
        del kind, trace
        with suppress(DependencyUnavailable) if error is not None else nullcontext():
            close()

    return leave
