"""The reader that has no opinion: it cites what is recent and claims nothing. Used at the TEMPLATE rung."""

from collections.abc import Sequence

from htfi.domain.decision import View
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.question import Question


class TemplateReader:
    """Direction 0, confidence 0, whatever the news says: no model has read it."""

    version = "template-reader/1"
    spoken = None

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        self._config = config or NarrativeConfig()

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[View]:
        """Cites the newest items; `deadline_ms` is the port's, and changes nothing here."""
        del deadline_ms
        return [
            View(
                direction=0.0,
                size_sigmas=0.0,
                volatility_multiplier=1.0,
                confidence=0.0,
                cited=tuple(item.id for item in question.items[: self._config.max_cited]),
                as_of_ns=question.as_of_ns,
                half_life_ns=self._config.half_life_ns,
                reader=self.version,
            )
            for question in questions
        ]
