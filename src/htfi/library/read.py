"""`htfi.read`: what a text is understood to say, and what that means for assets; `htfi news` shows the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import overload

from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.news_view import NewsView
from htfi.library.arguments import symbols_asked
from htfi.library.frames import Frame, FrameKind, make_frame
from htfi.library.html import block, marked_spans, table_html
from htfi.library.progress import progress_bar
from htfi.narrative.facts.reading import reading_record
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.facts.statements.compared import ComparedDocuments
from htfi.narrative.ports import NewsReader
from htfi.narrative.understanding import NewsText, Understanding, understand
from htfi.wiring.facts import open_fact_reader
from htfi.wiring.headline_views import read_headline
from htfi.wiring.models.readers import open_readers
from htfi.wiring.settings import load_settings

_BATCH = 256


@dataclass(frozen=True, slots=True, repr=False)
class NewsReading:
    """One text as it is understood: its facts, what it means for each asset asked about, and what models make of it.

    `views` are those of the draft and of the target, one for each asset.

    Examples:
        >>> import htfi
        >>> reading = htfi.read("Acme cuts its profit guidance", on="ACME", names=["Acme"], views=False)
        >>> reading.table.select(["symbol", "direction"]).to_pylist()
        [{'symbol': 'ACME', 'direction': -1}]
    """

    understandings: tuple[Understanding, ...]
    views: Mapping[str, tuple[NewsView, ...]]

    @property
    def facts(self) -> NewsFacts:
        """Kind of event, parties, figures, what was expected, an action of a central bank."""
        return self.understandings[0].facts

    @property
    def words(self) -> tuple[str, ...]:
        """A line for each asset: what it means for it, or why it says nothing."""
        return tuple(one.words for one in self.understandings)

    @property
    def table(self) -> Frame:
        """A row for each asset, an Arrow table: direction (−1, 0, 1), size in standard deviations of a bar, and why."""
        rows = self.understandings
        return make_frame(
            {
                "symbol": [one.item.symbol for one in rows],
                "direction": [one.reading.direction if one.speaks else 0 for one in rows],
                "size_sigmas": [one.reading.size_sigmas if one.speaks else 0.0 for one in rows],
                "volatility": [one.reading.volatility if one.speaks else 1.0 for one in rows],
                "confidence": [one.reading.confidence for one in rows],
                "why_silent": [one.why_silent for one in rows],
                "words": [one.words for one in rows],
            },
            FrameKind.ARROW,
        )

    def __str__(self) -> str:
        return "\n".join(self.words)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = self.facts
        spans = [(part.start, part.end) for part in (*facts.figures, *facts.parties)]
        rows = [
            (one.item.symbol or "its subject", *_reading_cells(one), one.words) for one in self.understandings
        ]
        heads = ("asset", "reading", "size", "confidence", "in words")
        return block("", f"<p>{marked_spans(facts.text, spans)}</p>", table_html(heads, rows))


def _reading_cells(one: Understanding) -> tuple[str, str, str]:
    reading = one.reading
    if not one.speaks:
        return "nothing", "", ""
    side = "up" if reading.direction > 0 else "down"
    return side, f"{reading.size_sigmas:.1f}σ", f"{reading.confidence:.0%}"


@overload
def read(  # pyright: ignore[reportOverlappingOverload] - a str is a Sequence of str too, and the first fits
    text: str,
    *,
    on: str | Sequence[str] = (),
    names: str | Sequence[str] = (),
    body: str = "",
    source: str = "",
    views: bool = True,
    progress: bool = False,
) -> NewsReading: ...


@overload
def read(
    text: Iterable[str],
    *,
    on: str | Sequence[str] = (),
    names: str | Sequence[str] = (),
    body: str = "",
    source: str = "",
    views: bool = True,
    progress: bool = False,
) -> list[NewsReading]: ...


def read(
    text: str | Iterable[str],
    *,
    on: str | Sequence[str] = (),
    names: str | Sequence[str] = (),
    body: str = "",
    source: str = "",
    views: bool = True,
    progress: bool = False,
) -> NewsReading | list[NewsReading]:
    """Read a headline, and the text below it, for the assets in `on`; without any, for what it is mainly about.

    Several headlines, such as a list or a column of a frame, give a list of readings; `progress` shows a bar. `names`
    are what the assets are called, in their order; `views` also asks the draft and target models.
    Raises: InvalidInput, DependencyUnavailable.

    Examples:
        >>> import htfi
        >>> print(htfi.read("Amgen to buy Horizon for $27.8 bln", on="HZNP", names=["Horizon"], views=False))
        acquisition: is good for HZNP as target, 3.1σ
    """
    is_one = isinstance(text, str)
    if not isinstance(text, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{text!r} is not text: give a headline, or a list of headlines")
    texts = [text] if isinstance(text, str) else list(text)
    symbols, names = symbols_asked("on", on), symbols_asked("names", names)
    for place, one in enumerate(texts, 1):
        if not isinstance(one, str) or not one.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            where = "" if is_one else f" at place {place}"
            raise InvalidInput(f"there is no text to read{where}: give a headline")
    if body and not is_one:
        raise InvalidInput(
            "`body` is the text below one headline: read the headlines that have one by themselves"
        )
    if len(names) > max(len(symbols), 1):
        raise InvalidInput("give at most one name for each symbol in `on`")
    asked = [*zip_longest(symbols, names, fillvalue="")] or [("", "")]
    items = [NewsText(one, body, symbol, name, source) for one in texts for symbol, name in asked]
    readings: list[NewsReading] = []
    readers: Mapping[Rung, NewsReader] = open_view_readers() if views and any(symbols) else {}
    with progress_bar("read", is_shown=progress) as advance:
        understood = understand_items(items)
        while group := tuple(islice(understood, len(asked))):
            found = model_views(group, readers) if views else {}
            by_reader = {who: tuple(of_assets) for who, of_assets in found.items()}
            readings.append(NewsReading(group, by_reader))
            advance(len(readings) / len(texts))
    return readings[0] if is_one else readings


def understand_items(items: Sequence[NewsText]) -> Iterator[Understanding]:
    """Every item understood, in their order; a central bank's document beside the one of its series before it."""
    settings = load_settings()
    reader = open_fact_reader(settings.encoding, settings.narrative.symbol_names)
    documents = ComparedDocuments()
    for start in range(0, len(items), _BATCH):
        yield from understand(items[start : start + _BATCH], reader, documents=documents)


def open_view_readers() -> Mapping[Rung, NewsReader]:
    """The models that give views, loaded when one is first asked for. Raises: InvalidInput, IntegrityError."""
    settings = load_settings()
    return open_readers(settings.models, settings.narrative, settings.decoding)


def model_views(
    group: Sequence[Understanding], readers: Mapping[Rung, NewsReader]
) -> dict[str, list[NewsView]]:
    """What draft and target make of a text, for each asset asked about; nothing of one in quarantine."""
    asked = [one for one in group if one.item.symbol]
    if not asked or group[0].is_held:
        return {}
    return read_headline(
        readers,
        group[0].screened.item.headline,
        [one.item.symbol for one in asked],
        [one.item.name for one in asked],
        [reading_record(one.facts, one.reading) for one in asked],
    )
