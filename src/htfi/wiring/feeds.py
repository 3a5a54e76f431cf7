"""Opens the sources that a person names as one feed, and says what they are. Apps and the engine call it."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event as Bell
from types import MappingProxyType
from typing import Any

from htfi.adapters.feeds.live import FeedContext, Inbox, LiveReader, StdinReceiver
from htfi.adapters.feeds.rate_limits import RateLimiter
from htfi.adapters.feeds.registry import FileReader, format_of, is_address, live_feed, open_file
from htfi.adapters.feeds.spool import SpoolReader
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import Event, SuspicionReset, TimePassed
from htfi.domain.time import Clock, SystemClock
from htfi.pipeline.intake.mapping import load_mapping, source_name
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.pipeline.intake.reorder import LEAP_NS, NO_LEAP_NS
from htfi.pipeline.intake.source import OrderedSource, RowReader
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.ports import Position, RowQuarantine
from htfi.wiring.bus import bus_source, is_bus, open_bus_source, stream_name
from htfi.wiring.cores import usable_cores
from htfi.wiring.market_data import fix_source, is_fix, open_fix_source

STDIN = "-"
_POLLING_KEYS = ("every", "agent", "tickers")  # may change during a run
_WEB_KEYS = ("publisher", "max_age")  # recorded only where stated, so that older runs can continue
_BLOCK_ROWS = (256, 4096)
_ALL_BLOCK_ROWS = 32_768  # rows of all sources in memory at once


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source as a run's manifest records it: the same wherever the file lies."""

    name: str
    origin: str  # file name, address or '-'
    num_bytes: int | None
    settings: dict[str, Any]


def resolve(paths: Sequence[str], mapping: Path | None = None, **defaults: str) -> list[SourceSpec]:
    """The sources that a command line names, with the mapping's settings: PATH, NAME=PATH, ws://…, http(s)://…,
    nats://…, kafka://…, fix://… or '-'.

    Without paths all sources of the mapping are opened; with paths only those, each with the settings of the
    source that has its name or its file's name. `defaults` fill in what neither states (zone, tolerance …).
    Raises: InvalidInput.
    """
    mapped = load_mapping(mapping) if mapping else []
    specs = [_named(path, mapped) for path in paths] if paths else mapped
    if not specs:
        raise InvalidInput(
            "no source: name a file, a ws:// address or '-', or a mapping with [[source]] tables"
        )
    specs = [_complete(spec, defaults) for spec in specs]
    if sum(spec.stdin for spec in specs) > 1:
        raise InvalidInput("standard input can be only one source: name '-' once")
    return [replace(spec, name=name) for spec, name in zip(specs, _distinct(specs), strict=True)]


def describe(specs: Sequence[SourceSpec]) -> list[SourceInfo]:
    """What distinguishes these sources from others, for the manifest and the settings' digest."""
    infos: list[SourceInfo] = []
    for spec in specs:
        settings = {
            key: value
            for key, value in asdict(replace(spec, columns={}, page={})).items()
            if key not in ("path", "columns", "page", *_POLLING_KEYS, *_WEB_KEYS)
        }
        settings["columns"] = dict(sorted(spec.columns.items()))
        settings |= {key: value for key in _WEB_KEYS if (value := getattr(spec, key))}
        if spec.page:
            settings["page"] = dict(sorted(spec.page.items()))
        for key in ("residency", "multiline", "dates"):
            if not getattr(spec, key):
                del settings[key]  # a run from before there was such a key continues
        origin = Path(spec.path).name if spec.path else spec.url or STDIN
        infos.append(SourceInfo(spec.name, origin, _size(Path(spec.path)) if spec.path else None, settings))
    return infos


def open_feed(
    specs: Sequence[SourceSpec],
    *,
    inbox: Path,
    quarantine: RowQuarantine,
    clock: Clock,
    position: Position | None = None,
    stdin: int = 0,
    report: Callable[[str], None] | None = None,
    tables: Mapping[str, Any] = MappingProxyType({}),
) -> MergedFeed:
    """The feed over these sources, from the start or from a saved position.

    `inbox` is the folder of what live sources said and of files that were sorted; `stdin` a descriptor;
    `report` hears a line when a web source begins to fail, and when it is back (standard error without it);
    `tables` (arro3.core.Table) are the sources whose rows are in memory, by name.

    Raises: InvalidInput, DependencyUnavailable: one line that names the file and what to do.
    """
    bell, context = Bell(), FeedContext(RateLimiter(), report or _to_stderr)
    least, most = _BLOCK_ROWS
    block_rows = max(least, min(most, _ALL_BLOCK_ROWS // len(specs)))
    not_before_ns = 0 if position is None else max(position["time_ns"], 0)
    sources: list[OrderedSource] = []
    files = _open_files(
        [spec for spec in specs if not spec.live and spec.name not in tables], block_rows, inbox
    )
    try:
        for spec in specs:
            if spec.live:
                live = Inbox(inbox / f"{spec.name}.jsonl", clock, bell, not_before_ns)
                reader: RowReader = _open_live(spec, live, stdin, context)
            elif spec.name in tables:
                reader = _sorted_if_needed(
                    _open_table(spec, tables[spec.name], block_rows), spec, inbox, block_rows
                )
            else:
                reader = files.pop(spec.name)
            tolerance_ns = 0 if spec.by_arrival else spec.tolerance_ns
            keep = spec.duplicates == "keep"
            leap_ns = NO_LEAP_NS if spec.by_arrival else LEAP_NS
            source = OrderedSource(spec.name, reader, tolerance_ns, keep_duplicates=keep, leap_ns=leap_ns)
            sources.append(source)
        return MergedFeed(sources, quarantine, bell, position)
    except BaseException:
        for reader in (*(source.reader for source in sources), *files.values()):
            reader.close()
        raise


def table_events(
    spec: SourceSpec, tables: Mapping[str, Any], folder: Path, quarantine: RowQuarantine
) -> Iterator[Event]:
    """The events of a table in memory or of a file, in order of time. Raises: InvalidInput, DependencyUnavailable."""
    feed = open_feed([spec], inbox=folder, quarantine=quarantine, clock=SystemClock(), tables=tables)
    try:
        for item in feed:
            if not isinstance(item, SuspicionReset | TimePassed):
                yield item
    finally:
        feed.close()


def _open_live(spec: SourceSpec, inbox: Inbox, stdin: int, context: FeedContext) -> LiveReader:
    if spec.stdin:
        return LiveReader(spec, inbox, StdinReceiver(inbox, stdin))
    if is_fix(spec.url):
        return open_fix_source(spec, inbox, context.notify)
    if is_bus(spec.url):
        return open_bus_source(spec, inbox, context.notify)
    feed = live_feed(spec)
    return LiveReader(spec, inbox, feed.open_receiver(spec, inbox, context), feed.ROWS())


def _open_files(specs: Sequence[SourceSpec], block_rows: int, inbox: Path) -> dict[str, RowReader]:
    """The readers of files, by their sources' names, opened side by side where cores are free: each begins with a wait
    until another process has read the first rows. Raises: as the first that cannot be opened; all are closed then.
    """

    def attempt(spec: SourceSpec) -> RowReader | Exception:
        try:
            return _open_file(spec, block_rows, inbox)
        except Exception as error:  # noqa: BLE001 - raised again when all have been tried
            return error

    num_threads = min(len(specs), len(usable_cores()))
    if num_threads > 1:
        from concurrent.futures import ThreadPoolExecutor  # late: many feeds are of one file

        with ThreadPoolExecutor(num_threads, "htfi-open-file") as threads:
            found = list(threads.map(attempt, specs))
    else:
        found = [attempt(spec) for spec in specs]
    readers = {
        spec.name: one for spec, one in zip(specs, found, strict=True) if not isinstance(one, Exception)
    }
    for one in found:
        if isinstance(one, Exception):
            for reader in readers.values():
                reader.close()
            raise one
    return readers


def _open_file(spec: SourceSpec, block_rows: int, inbox: Path) -> RowReader:
    path = Path(spec.path)
    _size(path)
    return _sorted_if_needed(open_file(spec, source_name(spec.path), block_rows), spec, inbox, block_rows)


def _open_table(spec: SourceSpec, table: Any, block_rows: int) -> FileReader:
    from htfi.adapters.feeds.parquet.reader import ArrowReader
    from htfi.adapters.feeds.parquet.rows import TableRows

    return ArrowReader(TableRows(spec.name, table), spec, spec.name, block_rows)


def _sorted_if_needed(reader: FileReader, spec: SourceSpec, inbox: Path, block_rows: int) -> RowReader:
    if spec.order == "sort" or (not spec.order and reader.needs_sort):
        return SpoolReader(reader, inbox / f"{spec.name}.sorted", block_rows)
    return reader


def _named(text: str, mapped: Sequence[SourceSpec]) -> SourceSpec:
    if text.startswith("fix:") and not is_fix(text):
        raise InvalidInput(f"'{text}': a FIX session is written fix://FILE")
    name, found, path = text.partition("=")
    if found and any(spec.name == name for spec in mapped):
        return _at(next(spec for spec in mapped if spec.name == name), path)
    for spec in mapped:
        alike = Path(spec.path).name == Path(text).name if spec.path else (spec.url or STDIN) == text
        if alike or spec.name == source_name(text):
            return _at(spec, text)
    return _at(
        SourceSpec(
            name="stdin" if text == STDIN else _name_at(text) if is_address(text) else source_name(text)
        ),
        text,
    )


def _at(spec: SourceSpec, text: str) -> SourceSpec:
    if text == STDIN:
        return replace(spec, path="", url="", stdin=True)
    if is_address(text):
        return replace(spec, path="", url=text, stdin=False)
    return replace(spec, path=text, url="", stdin=False)


def _complete(spec: SourceSpec, defaults: dict[str, str]) -> SourceSpec:
    plain = SourceSpec(name=spec.name)
    missing = {
        key: value for key, value in defaults.items() if value and getattr(spec, key) == getattr(plain, key)
    }
    spec = replace(spec, **missing)
    if not (spec.path or spec.url or spec.stdin):
        raise InvalidInput(
            f"source '{spec.name}' has no path, url or stdin: state one, or name its file as {spec.name}=PATH"
        )
    if is_fix(spec.url):
        spec = fix_source(spec)
    elif is_bus(spec.url):
        spec = bus_source(spec)
    elif spec.url:
        live_feed(spec).check(spec)
    if spec.path:
        spec = replace(spec, format=format_of(spec))
    return spec


def _distinct(specs: Sequence[SourceSpec]) -> list[str]:
    names: list[str] = []
    for spec in specs:
        name, again = spec.name, 2
        while name in names:
            name, again = f"{spec.name}-{again}", again + 1
        names.append(name)
    return names


def _size(path: Path) -> int:
    try:
        if not path.is_file():
            what = (
                "is a folder"
                if path.is_dir()
                else "does not exist"
                if not path.exists()
                else "is not a regular file"
            )
            raise InvalidInput(f"{path} {what}: check the path")
        return path.stat().st_size
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror}: check the path and its rights") from error


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _name_at(url: str) -> str:
    if is_fix(url):
        return Path(url).stem
    if is_bus(url):
        return stream_name(url)
    return url.split("//", 1)[1].split("/", 1)[0].replace(":", "-") or url
