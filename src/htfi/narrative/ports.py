"""What the narrative room needs from outside: a reader of news, an author of text, an encoder. Wiring chooses which."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import NewsView
from htfi.domain.generation import (
    Completion,
    GenerationRequest,
    PromptDialect,
    RequestRefused,
    SpeculationStats,
)
from htfi.narrative.question import Question


class NewsReader(Protocol):
    """Turns recent news into views. The same question gives the same view."""

    @property
    def version(self) -> str:
        """Name and version, for the record of a decision."""
        ...

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        """What the model behind it has done; None where there is none, or none of ours."""
        ...

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """One view per question, in order. Raises: DependencyUnavailable."""
        ...


@runtime_checkable
class LateNewsReader(NewsReader, Protocol):
    """A reader whose views may be provisional: what it could not finish in time it tells later."""

    def take_late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        """Views that came since the last call, by the id of their question, without waiting; each once.

        A refusal says that none will come.
        """
        ...

    def request_views(self, questions: Sequence[Question]) -> None:
        """Ask for views that nobody waits for: they come later. One that is under way is not asked twice."""
        ...


class TextGenerator(Protocol):
    """A language model that answers in a form: an embedded engine, or one behind a network."""

    @property
    def version(self) -> str:
        """Name and digest, for the record of a decision."""
        ...

    @property
    def dialect(self) -> PromptDialect: ...

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        """What its speculation has come to; None where it does not tell."""
        ...

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order; what cannot be answered is refused with a reason, never raised."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A reader or an author that holds connections."""

    def close(self) -> None: ...


@runtime_checkable
class LateTextGenerator(TextGenerator, Protocol):
    """An author that keeps deadlines: what it could not finish in time it wrote provisionally, and finishes later."""

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        """Answers that came since the last call, by the id of their request, without waiting; each once.

        A refusal says that none will come.
        """
        ...

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        """Ask for answers that nobody waits for: they come late. One that is under way is not asked twice."""
        ...


class ContextCache(Protocol):
    """What was worked out from texts, kept by content: it gives what would be worked out again, or nothing.

    A key tells all that shapes its value. `about` names what it was worked out from: ids of items, digests of texts.
    Nothing is raised: where keeping fails, the cache knows less.
    """

    def get_many(
        self, keys: Sequence[bytes], about: Sequence[Sequence[str]], num_bytes: int = 0
    ) -> list[bytes | None]:
        """The value of each key, None where it is not kept or one of what it is about was forgotten.

        Nobody is asked who keeps no value of `num_bytes`.
        """
        ...

    def put(
        self,
        key: bytes,
        value: bytes,
        ttl_ns: int,
        about: Sequence[str] = (),
        residency: frozenset[str] = frozenset(),
    ) -> None:
        """Keep a value for at most so long, only where all its residency tags are admitted."""
        ...

    def is_forgotten(self, about: Iterable[str]) -> bool:
        """Whether one of these was, so that what is about them is neither given nor kept."""
        ...

    def forget(self, about: Sequence[str]) -> None:
        """Drop all that is about one of these, wherever it is kept, also what is put later."""
        ...


class TextEmbeddings(NamedTuple):
    """What an encoder makes of n texts. Shapes: points [n, D]; states n × [T, D], one a token, T as each text has."""

    points: NDArray[np.float32]
    states: list[NDArray[np.float32]]


class TextEncoder(Protocol):
    """Turns texts into points of a space where what means the same lies close. The same text gives the same bits,
    whatever it is encoded with."""

    @property
    def version(self) -> str:
        """Name and digest, for the record of a decision."""
        ...

    @property
    def size(self) -> int:
        """D, the number of components."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Points of length 1, [n, D]; of a long text, its beginning. Raises: DependencyUnavailable."""
        ...

    def read(self, texts: Sequence[str]) -> "TextEmbeddings":
        """As `encode`, with the states of the tokens. Raises: DependencyUnavailable."""
        ...
