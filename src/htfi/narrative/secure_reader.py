"""The reader of the SECURE rung where the target is elsewhere: it drafts nothing, and says nothing that a draft wrote.

What the target does not say in time is left unsaid until it does: the view then claims nothing and is provisional.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from htfi.domain.decision import View
from htfi.domain.writing import Refusal, Spoken
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.model_reader import ModelReader
from htfi.narrative.question import Question
from htfi.narrative.template_reader import TemplateReader

PLAINLY = 0  # tokens drafted at once


class SecureReader:
    """Reads through another rung's reader, `reads`, which tells what comes late: one author has one who listens."""

    def __init__(self, reads: ModelReader, config: NarrativeConfig | None = None) -> None:
        self._reads = reads
        self._otherwise = TemplateReader(config or NarrativeConfig())

    @property
    def version(self) -> str:
        return self._reads.version

    @property
    def spoken(self) -> Spoken | None:
        """None: what the author did is told by the reader that it shares."""
        return None

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[View]:
        """One view per question: the target's own, or one that claims nothing."""
        views = self._reads.read(questions, deadline_ms, max_draft=PLAINLY)
        unsaid = self._otherwise.read(questions, deadline_ms)
        return [
            replace(instead, provisional=True) if view.provisional else view
            for view, instead in zip(views, unsaid, strict=True)
        ]

    def later(self) -> list[tuple[str, View | Refusal]]:
        """Nothing: the reader that it shares tells what came late."""
        return []

    def pursue(self, questions: Sequence[Question]) -> None:
        """Ask for views that nobody waits for."""
        self._reads.pursue(questions, max_draft=PLAINLY)
