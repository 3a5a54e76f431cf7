"""Which feed reads which address and which reader which file: one line each. docs/extend-a-feed.md adds one."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from htfi.adapters.feeds.live import FeedContext, Inbox, Receiver
from htfi.adapters.feeds.records import JsonRows
from htfi.domain.errors import InvalidInput, require_extra
from htfi.pipeline.intake.source import RowReader
from htfi.pipeline.intake.spec import SourceSpec

_PACKAGE = __package__
_ELSEWHERE = ("nats", "nats+tls", "kafka", "kafka+tls", "fix")  # addresses that other adapters read


class LiveFeed(Protocol):
    """A module that reads addresses of one sort. `ROWS` decodes the rows that it writes into the inbox."""

    ROWS: type[JsonRows]

    def check(self, spec: SourceSpec) -> None:
        """What would stop the source, before the run begins. Raises: InvalidInput, DependencyUnavailable."""
        ...

    def open_receiver(self, spec: SourceSpec, inbox: Inbox, context: FeedContext) -> Receiver:
        """What fills the inbox, not yet started. Raises: InvalidInput, DependencyUnavailable."""
        ...


class FileReader(RowReader, Protocol):
    """The port `RowReader` over one file. `needs_sort`: its rows are not in order of time."""

    needs_sort: bool


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """A module beside this one, and the libraries of an extra that it imports."""

    module: str
    extra: str = ""
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A reader as 'module:Class' beside this one, and the endings of its files."""

    reader: str
    endings: tuple[str, ...]


# Scheme of an address: the module that reads it.
FEEDS: dict[str, FeedEntry] = {
    "http": FeedEntry("web.feed", "web", ("httpcore", "selectolax")),
    "https": FeedEntry("web.feed", "web", ("httpcore", "selectolax")),
    "ws": FeedEntry("websocket", "web", ("websockets",)),
    "wss": FeedEntry("websocket", "web", ("websockets",)),
}

# Format as a mapping states it: its reader.
FORMATS: dict[str, FileFormat] = {
    "parquet": FileFormat("parquet.reader:ParquetReader", (".parquet", ".pq")),
    "csv": FileFormat("text_files:TextFileReader", (".csv", ".tsv", ".txt")),
    "jsonl": FileFormat("text_files:TextFileReader", (".jsonl", ".ndjson", ".json")),
}


def is_address(text: str) -> bool:
    """Whether a text is an address and no path: 'scheme://…'."""
    scheme, found, _ = text.partition("://")
    return bool(found) and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()


def live_feed(spec: SourceSpec) -> LiveFeed:
    """The module that reads a source's address. Raises: InvalidInput for a scheme that none reads, MissingExtra."""
    scheme = spec.url.partition("://")[0].lower() if is_address(spec.url) else ""
    entry = FEEDS.get(scheme)
    if entry is None:
        what = f"no feed reads {scheme}:// addresses" if scheme else "the address has no scheme"
        raise InvalidInput(
            f"source '{spec.name}': {what}: begin it with one of "
            f"{', '.join(f'{known}://' for known in (*FEEDS, *_ELSEWHERE))}, or name a file"
        )
    if entry.extra:
        require_extra(f"source '{spec.name}' ({scheme}://)", entry.extra, *entry.libraries)
    return cast(LiveFeed, import_module(f"{_PACKAGE}.{entry.module}"))


def format_of(spec: SourceSpec) -> str:
    """The format of a source's file: as stated, else by its ending, '.gz' aside. Raises: InvalidInput."""
    path = spec.path
    if spec.format:
        if spec.format not in FORMATS:
            raise InvalidInput(
                f"source '{spec.name}': format = '{spec.format}': choose one of {', '.join(FORMATS)}"
            )
        return spec.format
    endings = [ending.lower() for ending in Path(path).suffixes if ending != ".gz"]
    for name, known in FORMATS.items():
        if endings and endings[-1] in known.endings:
            return name
    first = [known.endings[0] for known in FORMATS.values()]
    raise InvalidInput(
        f"{path}: its name does not show its format: it must end in {', '.join(first[:-1])} or {first[-1]}"
    )


def open_file(spec: SourceSpec, source_name: str, block_rows: int) -> FileReader:
    """The reader of a source's file. Raises: InvalidInput, DependencyUnavailable."""
    module, _, name = FORMATS[spec.format].reader.partition(":")
    reader: Callable[[Path, SourceSpec, str, int], Any] = getattr(import_module(f"{_PACKAGE}.{module}"), name)
    return cast(FileReader, reader(Path(spec.path), spec, source_name, block_rows))
