"""The reader in depth whose target is elsewhere: it asks, and tells when every one of its answers has come.

Wired at the DEEP rung of an edge. Nobody waits for it: until then its view claims nothing and is provisional.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from htfi.domain.decision import View
from htfi.domain.writing import Refusal, Request, Writing
from htfi.narrative.answer import AS_STATED, Trust
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import DeepReader
from htfi.narrative.meaning import Meaning
from htfi.narrative.model_reader import PURSUIT_MS
from htfi.narrative.ports import LateAuthor
from htfi.narrative.question import Question, briefly, question_id

MAX_AWAITED = 256  # readings
MAX_ASKED = 8  # of them at once, each so many answers


@dataclass(slots=True)
class _Open:
    question: Question
    requests: list[Request]
    is_asked: bool = False
    answers: dict[str, Writing] = field(default_factory=dict[str, Writing])  # by request


class LateDeepReader(DeepReader):
    """Implements `LateReader`. An author that answers late is one reader's alone."""

    def __init__(
        self,
        author: LateAuthor,
        config: NarrativeConfig | None = None,
        trust: Trust = AS_STATED,
        meaning: Meaning | None = None,
    ) -> None:
        super().__init__(author, config, trust, meaning)
        self._late_author = author
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._given_up: list[str] = []

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[View]:
        """Ask; every view claims nothing yet."""
        self.pursue(questions)
        unsaid = self._otherwise.read(questions, deadline_ms)
        return [replace(view, provisional=True) for view in unsaid]

    def pursue(self, questions: Sequence[Question]) -> None:
        """Ask for views that come later. One that is under way is not asked twice."""
        for question in questions:
            name = question_id(question)
            if name not in self._open:
                self._open[name] = self._opened(name, briefly(self._deepened(question)))
        while len(self._open) > MAX_AWAITED:
            self._given_up.append(self._open.popitem(last=False)[0])
        self._ask()

    def later(self) -> list[tuple[str, View | Refusal]]:
        """Views whose answers have all come, by the id of their question; a refusal: none will come."""
        told: list[tuple[str, View | Refusal]] = [
            (name, Refusal("given up: too many readings in depth are awaited")) for name in self._given_up
        ]
        self._given_up.clear()
        for request_id, answer in self._late_author.late() if self._open else ():
            name = request_id.partition("/")[0]
            one = self._open.get(name)
            if one is None:
                continue
            if isinstance(answer, Refusal):
                del self._open[name]
                told.append((name, answer))
                continue
            one.answers[request_id] = answer
            if len(one.answers) == len(one.requests):
                del self._open[name]
                answers = [one.answers[request.id] for request in one.requests]
                view = self._view(one.question, one.requests[0], answers)
                told.append((name, view))
        self._ask()
        return told

    def _opened(self, name: str, question: Question) -> _Open:
        paths = range(self._config.deep_paths)
        requests = [self._request(question, path, PURSUIT_MS) for path in paths]
        return _Open(
            question,
            [replace(request, id=f"{name}/{path}") for path, request in enumerate(requests)],
        )

    def _ask(self) -> None:
        """Ask for as many as may be asked at once, the oldest first."""
        num_asked = sum(one.is_asked for one in self._open.values())
        for one in self._open.values():
            if num_asked >= MAX_ASKED:
                return
            if not one.is_asked:
                one.is_asked = True
                num_asked += 1
                self._late_author.pursue(one.requests)
