"""What the language models make of a single headline, for `htfi news`; no run, no prices."""

from collections.abc import Sequence

from htfi.domain.decision import NewsView, Rung
from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.question import Question
from htfi.wiring.models.readers import open_readers
from htfi.wiring.settings import Settings

_READERS = (("draft", Rung.EDGE), ("target", Rung.SPECULATIVE))
_DEADLINE_MS = 120_000.0  # no market waits for the answer


def read_headline(
    settings: Settings, headline: str, symbols: Sequence[str], names: Sequence[str]
) -> dict[str, list[NewsView]]:
    """By reader, 'draft' and 'target', a view for each symbol. Raises: InvalidInput, DependencyUnavailable."""
    readers = open_readers(settings.models, settings.narrative, settings.decoding)
    found: dict[str, list[NewsView]] = {}
    for who, rung in _READERS:
        if rung not in readers:
            continue
        questions = [
            Question(symbol, 0, NS_PER_DAY, (News(0, 0, "given", 1, "item", headline, (symbol,)),), (), name)
            for symbol, name in zip(symbols, names, strict=True)
        ]
        found[who] = readers[rung].read(questions, _DEADLINE_MS)
    return found
