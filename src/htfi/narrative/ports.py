"""What the narrative package needs from outside: a reader of news, a text generator, an encoder, a cache."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from htfi.domain.generation import (
    Completion,
    GenerationRequest,
    PromptDialect,
    RequestRefused,
    SpeculationStats,
)
from htfi.domain.news import NewsScores, ScreenedItem
from htfi.domain.news_view import NewsView
from htfi.narrative.question import Question


class NoiseKey(Protocol):
    """A secret that seeds of noise follow from: who holds it can show what was written with it."""

    @property
    def id(self) -> str:
        """Names the key, for the record of a decision."""
        ...

    def seed(self, seed: int) -> int:
        """The seed of the noise where a reading's own seed is `seed`."""
        ...


class NewsReader(Protocol):
    """Turns recent news into views. The same question gives the same view."""

    @property
    def version(self) -> str:
        """Name and version, for the record of a decision."""
        ...

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        """What the speculation of its model has achieved; None without a local model."""
        ...

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """One view per question, in order. Raises: DependencyUnavailable."""
        ...


@runtime_checkable
class LateNewsReader(NewsReader, Protocol):
    """A reader whose views may be provisional: what it could not finish in time follows later."""

    def take_late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        """Views that arrived since the last call, by the id of their question, each once; it does not wait.

        A refusal says that none will follow.
        """
        ...

    def request_views(self, questions: Sequence[Question]) -> None:
        """Request views that no decision waits for: they arrive later. A question in flight is not asked again."""
        ...


class TextGenerator(Protocol):
    """A language model that answers in a grammar: an embedded engine, or a model behind a network."""

    @property
    def version(self) -> str:
        """Name and digest, for the record of a decision."""
        ...

    @property
    def dialect(self) -> PromptDialect: ...

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        """What its speculation has achieved; None where it reports nothing."""
        ...

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order; a request that cannot be answered is refused with a reason, not raised."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A reader or generator that holds connections."""

    def close(self) -> None: ...


@runtime_checkable
class LateTextGenerator(TextGenerator, Protocol):
    """A generator that keeps deadlines: what it could not finish in time is provisional and follows."""

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        """Answers that arrived since the last call, by the id of their request, each once; it does not wait.

        A refusal says that none will follow.
        """
        ...

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        """Request answers that no decision waits for: they arrive later. A request in flight is not sent again."""
        ...


class ContextCache(Protocol):
    """Values computed from texts, cached by content: a look-up gives what a new computation would give, or nothing.

    A key covers everything that shapes its value. `about` names what it was computed from: ids of items, digests of
    texts. Nothing is raised: a cache that fails holds less.
    """

    def get_many(
        self, keys: Sequence[bytes], about: Sequence[Sequence[str]], num_bytes: int = 0
    ) -> list[bytes | None]:
        """The value of each key; None where there is none, or where one of the things that it is about was forgotten.

        Tiers that hold no value of `num_bytes` are not asked.
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
        """Cache a value for at most `ttl_ns`, only where all its residency tags are admitted."""
        ...

    def is_forgotten(self, about: Iterable[str]) -> bool:
        """Whether one of these was forgotten: what is about it is neither given nor cached."""
        ...

    def forget(self, about: Sequence[str]) -> None:
        """Remove everything that is about one of these, wherever it is cached, also what is put later."""
        ...


class TextEmbeddings(NamedTuple):
    """What an encoder gives for n texts. Shapes: points [n, D]; states n × [T, D], one per token, T the length of each
    text.
    """

    points: NDArray[np.float32]
    states: list[NDArray[np.float32]]


class TextEncoder(Protocol):
    """Maps texts to points of a space in which texts of one meaning lie close. The same text gives the same bits,
    whatever the batch.
    """

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

    def read_parts(self, texts: Sequence[str]) -> "Iterator[TextEmbeddings]":
        """As `read`, in parts, in order: what follows may be read on another core meanwhile. No texts are one part.

        Raises: DependencyUnavailable.
        """
        ...


class ItemScorer(Protocol):
    """Scores screened items: `encoding.scorer.NewsScorer`."""

    version: str

    def score(self, items: Sequence[ScreenedItem]) -> list[NewsScores]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...
