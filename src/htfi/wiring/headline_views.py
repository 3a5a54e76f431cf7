"""What the language models make of a single headline, for `htfi news`; no run, no prices."""

from collections.abc import Mapping, Sequence

from htfi.domain.decision import Rung
from htfi.domain.events import News
from htfi.domain.news import ItemReading
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.ports import NewsReader
from htfi.narrative.question import Question, facts_of

_READERS = (("draft", Rung.EDGE), ("target", Rung.SPECULATIVE))
_DEADLINE_MS = 120_000.0  # no market waits for the answer


def read_headline(
    readers: Mapping[Rung, NewsReader],
    headline: str,
    symbols: Sequence[str],
    names: Sequence[str],
    readings: Sequence[ItemReading],
) -> dict[str, list[NewsView]]:
    """By reader, 'draft' and 'target', a view for each symbol, of which its facts are read so.

    `readers` are those of a run. Raises: InvalidInput, DependencyUnavailable.
    """
    found: dict[str, list[NewsView]] = {}
    for who, rung in _READERS:
        if rung not in readers:
            continue
        questions = [
            _question(headline, symbol, name, reading)
            for symbol, name, reading in zip(symbols, names, readings, strict=True)
        ]
        found[who] = readers[rung].read(questions, _DEADLINE_MS)
    return found


def _question(headline: str, symbol: str, name: str, reading: ItemReading) -> Question:
    item = News(0, 0, "given", 1, "item", headline, (symbol,))
    facts = facts_of((item,), {item.id: reading})
    return Question(symbol, 0, NS_PER_DAY, (item,), (), name, facts=facts)
