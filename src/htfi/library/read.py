"""`htfi.read`: what a text is understood to say, and what that means for assets; `htfi news` shows the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from htfi.domain.decision import NewsView
from htfi.domain.errors import InvalidInput
from htfi.library.frames import Frame, FrameKind, make_frame
from htfi.library.html import block, marked_spans, table_html
from htfi.narrative.facts.reading import reading_record
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.facts.statements.compared import ComparedDocuments
from htfi.narrative.understanding import NewsText, Understanding, understand
from htfi.wiring.facts import open_fact_reader
from htfi.wiring.headline_views import read_headline
from htfi.wiring.settings import load_settings

_BATCH = 256


@dataclass(frozen=True, slots=True, repr=False)
class NewsReading:
    """One text as it is understood: its facts, what it means for each asset asked about, and what models make of it.

    `views` are those of the draft and of the target, one for each asset.
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
            FrameKind.PYARROW,
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


def read(
    text: str,
    *,
    on: str | Sequence[str] = (),
    names: Sequence[str] = (),
    body: str = "",
    source: str = "",
    views: bool = True,
) -> NewsReading:
    """Read a headline, and the text below it, for the assets in `on`; without any, for what it is mainly about.

    `names` are what the assets are called, in their order; `views` also asks the draft and target models.
    Raises: InvalidInput, DependencyUnavailable.
    """
    symbols = (on,) if isinstance(on, str) else tuple(on)
    if not text.strip():
        raise InvalidInput("there is no text to read: give a headline")
    if len(names) > max(len(symbols), 1):
        raise InvalidInput("give at most one name for each symbol in `on`")
    asked = [*zip_longest(symbols, names, fillvalue="")] or [("", "")]
    items = [NewsText(text, body, symbol, name, source) for symbol, name in asked]
    understood = tuple(understand_items(items))
    found = model_views(understood) if views else {}
    return NewsReading(understood, {who: tuple(of_assets) for who, of_assets in found.items()})


def understand_items(items: Sequence[NewsText]) -> Iterator[Understanding]:
    """Every item understood, in their order; a central bank's document beside the one of its series before it."""
    settings = load_settings()
    reader = open_fact_reader(settings.encoding, settings.narrative.symbol_names)
    documents = ComparedDocuments()
    for start in range(0, len(items), _BATCH):
        yield from understand(items[start : start + _BATCH], reader, documents=documents)


def model_views(group: Sequence[Understanding]) -> dict[str, list[NewsView]]:
    """What draft and target make of a text, for each asset asked about; nothing of one in quarantine."""
    asked = [one for one in group if one.item.symbol]
    if not asked or group[0].is_held:
        return {}
    return read_headline(
        load_settings(),
        group[0].screened.item.headline,
        [one.item.symbol for one in asked],
        [one.item.name for one in asked],
        [reading_record(one.facts, one.reading) for one in asked],
    )
