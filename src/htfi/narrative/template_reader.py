"""The reader that has no opinion: it cites what is recent and claims nothing. Used at the TEMPLATE rung."""

from collections.abc import Sequence

from htfi.domain.events import News
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.view import View


class TemplateReader:
    """Direction 0, confidence 0, whatever the news says: no model has read it."""

    version = "template-reader/1"

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        self._config = config or NarrativeConfig()

    def read(self, items: Sequence[News], symbol: str, as_of_ns: int, deadline_ms: float) -> View:
        """Cites the newest items; `symbol` and `deadline_ms` are the port's, and change nothing here."""
        del symbol, deadline_ms
        cited = tuple(item.id for item in items[: self._config.max_cited])
        return View(0.0, 0.0, 1.0, 0.0, cited, as_of_ns, self._config.half_life_ns)
