"""One source as settings: where it is, what it holds, how its rows are read. Mapping and wiring make them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_S, parse_duration
from htfi.domain.written_days import DAY_ORDERS, DayOrder
from htfi.pipeline.intake.bar_spacing import read_interval

KINDS = ("trade", "quote", "bar", "news", "macro")
UNITS = {"s": NS_PER_S, "ms": 1_000_000, "us": 1_000, "ns": 1}
MAX_TAG_CHARS = 32
TAG_RULE = f"a tag has 1 to {MAX_TAG_CHARS} printable characters, no space and none of , ; |"
_CHOICES = {
    "kind": ("", *KINDS),
    "unit": ("", *UNITS),
    "bar_stamp": ("", "start", "end"),
    "duplicates": ("quarantine", "keep"),
    "order": ("", "time", "sort"),
    "stamp": ("", "row", "arrival"),
    "dates": ("", *DAY_ORDERS),
}
WEB_FORMATS = ("rss", "atom", "edgar", "page")
PAGE_KEYS = ("item", "link", "title", "date", "heading", "dated", "text", "drop")
MIN_EVERY_NS = NS_PER_S


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """An empty text means: not stated, so recognised from the rows or by the rule in docs/feeds.md.

    `path`, `url` or `stdin` is where the rows come from. `columns` maps a field's own name to the source's.
    Raises: InvalidInput, naming the key.
    """

    name: str
    path: str = ""
    url: str = ""
    stdin: bool = False
    format: str = ""
    kind: str = ""
    symbol: str = ""
    only: tuple[str, ...] = ()  # symbols or series wanted; other rows are not read
    zone: str = ""  # of timestamps without one
    unit: str = ""  # of timestamps that are numbers
    dates: DayOrder = ""  # which number of 03/04/2021 is the day
    interval: str = ""
    bar_stamp: str = ""
    date_at: str = ""  # when a row that is dated by day becomes known, such as 16:00
    date_zone: str = "America/New_York"
    delay: str = ""  # from the row's time to its publication
    tolerance: str = "1s"
    multiline: bool = False  # fields of a CSV may span lines, in quotes
    duplicates: str = "quarantine"
    order: str = ""
    stamp: str = ""
    subscribe: str = ""
    residency: tuple[str, ...] = ()  # tags of where the news may lie
    every: str = ""  # how often an http address is asked
    agent: str = ""  # who asks, with a contact
    publisher: str = ""  # of news that do not name theirs
    max_age: str = ""  # older entries of an http address are not read
    tickers: str = ""  # file of CIK to ticker
    page: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # CSS selectors
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if sum((bool(self.path), bool(self.url), self.stdin)) > 1:
            raise InvalidInput(f"source '{self.name}': state one of path, url and stdin")
        for key, choices in _CHOICES.items():
            if getattr(self, key) not in choices:
                offered = ", ".join(choice for choice in choices if choice)
                raise InvalidInput(
                    f"source '{self.name}': {key} = '{getattr(self, key)}': choose one of {offered}"
                )
        for tag in self.residency:
            if not is_residency_tag(tag):
                raise InvalidInput(f"source '{self.name}': residency '{tag[:MAX_TAG_CHARS]}': {TAG_RULE}")
        for key in ("zone", "date_zone"):
            self._check(key, _zone)
        for key in ("delay", "tolerance", "every", "max_age"):
            self._check(key, _duration)
        if self.web and self.stamp == "row":
            raise InvalidInput(f"source '{self.name}': stamp = 'row': known when fetched: remove it")
        if not self.web and self.format in WEB_FORMATS:
            raise InvalidInput(
                f"source '{self.name}': format = '{self.format}' needs url = \"http://…\" or https"
            )
        if self.every and _duration(self.every) < MIN_EVERY_NS:
            raise InvalidInput(f"source '{self.name}': every = '{self.every}': at least 1s")
        self._check("interval", read_interval)
        self._check("date_at", read_clock_time)

    def _check(self, key: str, read: object) -> None:
        text = getattr(self, key)
        if not text or not callable(read):
            return
        try:
            read(text)
        except InvalidInput as error:
            raise InvalidInput(f"source '{self.name}': {key}: {error}") from error

    @property
    def live(self) -> bool:
        """Rows come as they happen and are journalled first."""
        return bool(self.url) or self.stdin

    @property
    def web(self) -> bool:
        """Asked again and again over HTTP."""
        return self.url.startswith(("http://", "https://"))

    @property
    def by_arrival(self) -> bool:
        """Rows become visible when they reach this machine."""
        return self.stamp == "arrival" or (bool(self.url) and self.stamp != "row")

    @property
    def zone_info(self) -> ZoneInfo | None:
        return _zone(self.zone) if self.zone else None

    @property
    def tolerance_ns(self) -> int:
        return _duration(self.tolerance)

    @property
    def every_ns(self) -> int:
        return _duration(self.every) if self.every else 60 * NS_PER_S

    @property
    def max_age_ns(self) -> int:
        return _duration(self.max_age) if self.max_age else 0

    @property
    def delay_ns(self) -> int:
        return _duration(self.delay) if self.delay else 0


def is_residency_tag(text: str) -> bool:
    """Whether a text is a tag of residency, by `TAG_RULE`."""
    return 0 < len(text) <= MAX_TAG_CHARS and text.isprintable() and not set(text) & set(" ,;|")


def read_clock_time(text: str) -> tuple[int, int]:
    """Hour and minute of '16:00'; '24:00' is the end of the day. Raises: InvalidInput."""
    hour, found, minute = text.partition(":")
    if found and hour.isdecimal() and minute.isdecimal() and len(minute) == 2:
        parts = int(hour), int(minute)
        if (parts[0] < 24 and parts[1] < 60) or parts == (24, 0):
            return parts
    raise InvalidInput(f"'{text}' is not a time of day: write hours and minutes, such as 16:00")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(
            f"'{name}' is not a time zone: write a name such as America/New_York or UTC"
        ) from error


def _duration(text: str) -> int:
    return 0 if text.strip() in ("0", "0s", "0ms") else parse_duration(text)
