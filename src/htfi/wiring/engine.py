"""Builds a run: feed, rooms, ledger and outlet, joined by the loop. The run command and the benches ask for it."""

import gc
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from htfi import __version__
from htfi.adapters.stores.decisions import JOURNAL, DecisionJournal
from htfi.adapters.stores.held_news import HELD_NEWS, HeldNewsFile
from htfi.adapters.stores.quarantine import QuarantineFile
from htfi.adapters.stores.releases import ReleasesFile
from htfi.adapters.stores.snapshot import SnapshotFile, write_whole
from htfi.domain.decision import Decision, Rung
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.time import SystemClock
from htfi.forecasting.forecaster import Forecaster
from htfi.governance import policy
from htfi.governance.ledger.log import Log
from htfi.market.state import Market
from htfi.narrative import rationale
from htfi.narrative.ports import Closable, Reader
from htfi.narrative.template_reader import TemplateReader
from htfi.narrative.usual import Usual
from htfi.pipeline.amending import patience
from htfi.pipeline.intake.reasons import Reason, refused_whole
from htfi.pipeline.loop import Loop
from htfi.pipeline.ports import Feed, Ledger, Outlet, Quarantine
from htfi.pipeline.preparing import Preparing
from htfi.pipeline.reading import VERSION as READINGS
from htfi.pipeline.reading import Readings
from htfi.pipeline.recorded_reading import PROMOTED
from htfi.pipeline.recorder import Recorder
from htfi.pipeline.releases import HeldNews, ReleasingFeed
from htfi.pipeline.resume import LedgerCut, Resume, Saved
from htfi.pipeline.rooms import Rooms, Terms
from htfi.simulation.pacing import PacedFeed
from htfi.wiring.caching import OpenCache, open_cache
from htfi.wiring.calendar import open_calendar
from htfi.wiring.desk import open_desk
from htfi.wiring.experts import open_experts
from htfi.wiring.feeds import describe, open_feed, resolve
from htfi.wiring.ledger import open_ledger
from htfi.wiring.models import open_readers
from htfi.wiring.outputs import mend_journal, recorded
from htfi.wiring.run_folder import INBOX, QUARANTINE, STATE, take_up, written_as_saved
from htfi.wiring.settings import SETTINGS, Settings, encode_settings, override, settings_digest
from htfi.wiring.speculation import tell

if TYPE_CHECKING:  # a run without other machines loads none of their libraries
    from htfi.wiring.edge import Edge

ORIGIN = "htfi.run"
_NO_ROWS = (Reason.UNREACHABLE, Reason.BAD_DOCUMENT, Reason.HIDDEN_TEXT)  # a source, or a part of an item


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is open: what it is made of, and `go`."""

    loop: Loop
    ledger: Log
    quarantine: Quarantine
    resume: Resume
    snapshot_s: float
    resumed_at: int  # decisions made before this start
    cache: OpenCache | None = None

    def refused_whole(self) -> list[str]:
        """A line on each source whose every row was quarantined."""
        aside = {
            source: {reason: num for reason, num in by_reason.items() if reason not in _NO_ROWS}
            for source, by_reason in self.quarantine.counts_by_source().items()
            if not self.loop.rooms.inputs.has_heard(source)
        }
        lines: list[str] = []
        for source, counts in aside.items():
            if counts:
                most = max(counts, key=counts.__getitem__)
                lines.append(refused_whole(source, counts, self.quarantine.example(source, most)))
        return lines

    def go(self, after_item: Callable[[], None]) -> None:
        """Run the loop to the end of its feed or to `loop.stop`, saving its state now and then and at the end."""
        next_save_s = time.monotonic() + self.snapshot_s

        def keep() -> None:
            nonlocal next_save_s
            after_item()
            if self.cache is not None:
                self.cache.tiers.settle()
            if time.monotonic() >= next_save_s:
                self.resume.save(self.loop, self.quarantine)
                gc.collect()
                next_save_s = time.monotonic() + self.snapshot_s

        with collecting_at_leisure():
            self.loop.run(keep)
        recorder = self.loop.recorder
        if recorder.is_redeciding and not self.loop.stopped:
            raise IntegrityError(
                f"the inputs end before what the ledger holds: {recorder.num_recorded} of {self.ledger.size} decisions "
                "could be made again; give the same inputs, or use a new folder"
            )
        self.resume.save(self.loop, self.quarantine)


@contextmanager
def collecting_at_leisure() -> Generator[None]:
    """No cyclic collection inside: a full one takes 20 ms in the middle of a decision. The loop makes no cycles."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@contextmanager
def open_run(
    settings: Settings,
    folder: Path,
    files: Sequence[str],
    mapping: Path | None = None,
    *,
    mirror: BinaryIO | None = None,
    pace: float | None = None,
    watch: Callable[[Decision], None] = lambda _: None,
    edge: "Edge | None" = None,
    releases: Path | None = None,
) -> Generator[Run]:
    """A run in `folder`, new or taken up where it was left; everything is closed on the way out.

    With an `edge` the news are read by its readers, whose targets are elsewhere. `releases` is the released.jsonl of a
    run that this one repeats.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    specs = resolve(files, mapping)
    sources = [{"name": info.name, "settings": info.settings} for info in describe(specs)]
    with ExitStack() as closing:
        ledger = open_ledger(folder, origin=ORIGIN)  # its lock keeps a second process out of the folder
        closing.push(_closing(ledger.close))
        take_up(folder, tell)
        cache = open_cache(settings.cache, folder, tell)
        if cache is not None:
            closing.push(_closing(cache.tiers.close))
        if edge is not None:
            closing.enter_context(edge.log.recording(folder, edge.watch.changes()))
            readers = edge.readers
        else:
            readers = open_readers(settings.models, settings.narrative, settings.decoding, cache)
            for reader in readers.values():
                if isinstance(reader, Closable):
                    closing.push(_closing(reader.close))
        read_by = {rung.value: reader.version for rung, reader in readers.items()}
        identity = {
            "settings": settings_digest(settings),
            "sources": sources,
            "readers": read_by,
            "calendar": open_calendar(settings.narrative.calendar).digest,
        }
        resume = Resume(
            SnapshotFile(folder / STATE), identity, str(folder), lambda size: ledger.root(size).hex()
        )
        saved = _load(resume, folder, ledger)
        write_whole(folder / SETTINGS, encode_settings(settings))
        quarantine = QuarantineFile(folder / QUARANTINE, saved.quarantine if saved else None)
        closing.push(_closing(quarantine.close))
        mended = mend_journal(folder, recorded(ledger).entries, saved.num_released if saved else 0)
        if mended:
            tell(f"{folder / JOURNAL} was not as the ledger has it ({mended}): it is written again")
        journal = DecisionJournal(folder, mirror)
        closing.push(_closing(journal.close))
        held = HeldNewsFile(folder / HELD_NEWS, saved.held if saved else None)
        closing.push(_closing(held.close))
        feed: Feed = open_feed(
            specs,
            inbox=folder / INBOX,
            quarantine=quarantine,
            clock=SystemClock(),
            position=saved.feed["feed"] if saved else None,
        )
        closing.push(_closing(feed.close))
        if pace is not None:
            feed = PacedFeed(feed, pace, time.monotonic_ns, time.sleep)
        released = ReleasesFile(folder, releases)
        feed = ReleasingFeed(feed, held, released, time.monotonic_ns, saved.feed if saved else None)
        live = feed.progress() is None
        if live:  # nobody knows when the next item comes, so no group may wait for it
            settings = override(settings, "pipeline", group_ms=0.0)
        loop = build_loop(settings, feed, ledger, journal, watch, readers, cache, held)
        if saved is not None:
            loop.restore(saved.loop)
        yield Run(
            loop, ledger, quarantine, resume, settings.pipeline.snapshot_s, loop.recorder.num_decided, cache
        )


def _load(resume: Resume, folder: Path, ledger: Log) -> Saved | None:
    """The saved state; None where there is none, or it or a file that it goes with is not as it was saved."""
    try:
        saved = resume.load(ledger.size)
        problem = written_as_saved(folder, saved.quarantine, saved.held) if saved is not None else ""
    except LedgerCut:
        raise
    except IntegrityError as error:
        saved, problem = None, str(error)
    if problem:
        tell(
            f"{folder}: {problem}: the run begins again with its inputs, and what it decides must equal its ledger"
        )
        return None
    return saved


def _closing(close: Callable[[], None]) -> Callable[[object, BaseException | None, object], None]:
    """Close on the way out; where something failed already, that is what a person is told, not what follows from it."""

    def leave(kind: object, error: BaseException | None, trace: object) -> None:
        del kind, trace
        with suppress(DependencyUnavailable) if error is not None else nullcontext():
            close()

    return leave


def build_rooms(
    settings: Settings, readers: Mapping[Rung, Reader] | None = None, cache: OpenCache | None = None
) -> Rooms:
    """Fresh rooms, without history. Without readers news are cited and not read."""
    readers = readers or {Rung.TEMPLATE: TemplateReader(settings.narrative)}
    readings = Readings(readers, settings.narrative.max_symbols)
    has_frontier = bool(settings.models.frontier_url) and Rung.DEEP in readers
    desk = open_desk(settings, cache, has_frontier=has_frontier)
    calendar = open_calendar(settings.narrative.calendar)
    return Rooms(
        market=Market(settings.market),
        forecaster=Forecaster(
            settings.forecasting, open_experts(settings.forecasting, settings.forecasting.foundation)
        ),
        readings=readings,
        desk=desk,
        usual=Usual(settings.narrative),
        preparing=Preparing(calendar, settings.buffering, desk, readings),
    )


def build_loop(
    settings: Settings,
    feed: Feed,
    ledger: Ledger,
    outlet: Outlet,
    watch: Callable[[Decision], None] = lambda _: None,
    readers: Mapping[Rung, Reader] | None = None,
    cache: OpenCache | None = None,
    held: HeldNews | None = None,
) -> Loop:
    """The loop over any feed, ledger and outlet, with fresh rooms; `held` keeps the news in quarantine."""
    rooms = build_rooms(settings, readers, cache)
    recorder = Recorder(
        ledger,
        outlet,
        group_entries=settings.pipeline.group_entries,
        group_ms=settings.pipeline.group_ms,
        elapsed_ns=time.monotonic_ns,
    )
    terms = Terms(
        pipeline=settings.pipeline,
        policy=settings.policy,
        fidelity=settings.scheduling,
        settings_digest=settings_digest(settings),
        models={
            "htfi": __version__,
            "policy": policy.VERSION,
            "rationale": rationale.VERSION,
            "readings": READINGS,
            **({PROMOTED: "promoted while it runs"} if settings.models.drafts else {}),
            **rooms.desk.models,
            **rooms.readings.models,
            **rooms.preparing.models,
            **rooms.forecaster.models,
        },
    )
    linger = patience(settings.pipeline.linger_ms, time.monotonic, time.sleep)
    return Loop(feed, rooms, recorder, terms, watch, linger, held)
