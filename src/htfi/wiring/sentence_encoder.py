"""Texts to points by a network that is opened at the first text: tokens, states, and their mean."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.native.sentence_encoder import NativeSentenceEncoder, StartedTexts, Wait
from htfi.adapters.onnx.session import Precision
from htfi.decoding.checkpoint.folder import Architecture
from htfi.domain.errors import InvalidInput
from htfi.narrative.config import MAX_TOKENS, EncodingConfig
from htfi.narrative.ports import TextEmbeddings
from htfi.wiring.cores import usable_cores

if TYPE_CHECKING:
    from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer

_CHARS_PER_TOKEN = 16  # a text is cut to so many before it is split: more than words of any language need
_MAX_KEPT = 1_024  # texts whose tokens are kept: a batch's, until their facts are read
_PART_TOKENS = 512  # of texts that are read while others are used
_STARTED_TOKENS = 4_096  # of parts that are read before they are used: 1.5 kB each
_BEGUN_TOKENS = 8_192  # of texts that are read before they are asked for
# int8-all: weights, activations and the table of words. In "int8", as older runs name it, the table was fp32.
_PRECISION_NAMES = {Precision.INT8: "int8-all", Precision.FP32: "fp32"}


class EncoderNetwork(Protocol):
    """A network that reads texts of ids."""

    def read(
        self, texts: Sequence[Sequence[int]], threads: int = 1
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Points of length 1 [n, D] and states n × [T, D]. Raises: InvalidInput, DependencyUnavailable."""
        ...


class SentenceEncoder:
    """Texts to points: tokens, states, their mean over the tokens, length 1; none is padded.

    `source` names the weights, `version` also the precision and the bound on tokens.
    """

    def __init__(
        self,
        source: str,
        architecture: Architecture,
        tokenizer_file: Path,
        config: EncodingConfig,
        open_network: Callable[[Callable[[str], list[int]]], EncoderNetwork],
    ) -> None:
        self._tokenizer_file = tokenizer_file
        self._open_network = open_network
        self._max_tokens = min(MAX_TOKENS, architecture.max_positions)
        self._threads = config.threads or len(usable_cores())
        self._begun: dict[str, _Part] = {}  # texts that are read before they are asked for
        self.size = architecture.hidden_size
        self.version = f"{source}:{_PRECISION_NAMES[Precision(config.precision)]}:{self._max_tokens}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[n, D]. Raises: DependencyUnavailable, InvalidInput."""
        return self.read(texts).points

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """Points [n, D] and states n × [T, D]. Raises: DependencyUnavailable, InvalidInput."""
        if not texts:
            return TextEmbeddings(np.zeros((0, self.size), np.float32), [])
        network = self._network
        if self._threads > 1 and isinstance(network, NativeSentenceEncoder):
            network.rouse(self._threads)  # while their tokens are found
        return TextEmbeddings(*network.read([self.tokens(text) for text in texts], self._threads))

    def read_parts(self, texts: Sequence[str]) -> Iterator[TextEmbeddings]:
        """As `read`, in parts. Other threads begin with the first parts at once and with others as these are used, and
        who waits for a part helps.

        Raises: DependencyUnavailable, InvalidInput.
        """
        network = self._network
        # The general engine asks for the interpreter too often: it gains nothing from parts.
        if len(texts) < 2 or not isinstance(network, NativeSentenceEncoder):
            return map(self.read, (texts,))
        parts, started = self._parts(network, texts), deque[_Part]()
        self._start_more(parts, started)
        return self._embeddings(parts, started)

    def _start_more(self, parts: Iterator["_Part"], started: deque["_Part"]) -> None:
        """Start as many of the next parts as may be read before they are used."""
        most = _STARTED_TOKENS if self._threads > 1 else 0
        num_tokens = sum(part.num_tokens for part in started)
        while num_tokens <= most and (part := next(parts, None)) is not None:
            started.append(part)
            num_tokens += part.num_tokens

    def _embeddings(self, parts: Iterator["_Part"], started: deque["_Part"]) -> Iterator[TextEmbeddings]:
        while started:
            first = started.popleft()
            self._start_more(parts, started)
            yield first.embeddings()

    def begin(self, texts: Sequence[str]) -> bool:
        """Read texts that will be asked for later while the other cores have nothing else to do, as many of the first
        as are worth holding; false where nothing can be begun. What was begun before and is not among them is
        forgotten. Raises: DependencyUnavailable.
        """
        if self._threads < 2 or "_network" not in self.__dict__:  # a cache may know all there is
            return False
        network = self._network
        if not isinstance(network, NativeSentenceEncoder):
            return False
        self._begun = {text: part for text in texts if (part := self._begun.get(text)) is not None}
        num_tokens = sum(part.num_tokens for part in self._begun.values())
        added: dict[str, list[int]] = {}
        for text in texts:
            if text not in self._begun and text not in added:
                tokens = self.tokens(text)
                num_tokens += len(tokens)
                if num_tokens > _BEGUN_TOKENS:
                    break
                added[text] = tokens
        if added:
            begun = network.start(list(added.values()), self._threads, Wait.LATER)
            for place, (text, tokens) in enumerate(added.items()):
                self._begun[text] = _Part(begun, place, place + 1, len(tokens))
        return True

    def _parts(self, network: NativeSentenceEncoder, texts: Sequence[str]) -> Iterator["_Part"]:
        """Texts as parts that are started, of about `_PART_TOKENS` each; what was begun is not started again."""
        waiting: list[list[int]] = []
        num_tokens = 0
        last: _Part | None = None  # of texts that were begun

        def start_waiting() -> Iterator[_Part]:
            nonlocal waiting, num_tokens
            if waiting:
                wait = Wait.AT_ONCE if len(waiting) == len(texts) else Wait.SOON
                yield _Part(network.start(waiting, self._threads, wait), 0, len(waiting), num_tokens)
            waiting, num_tokens = [], 0

        for text in texts:
            begun = self._begun.pop(text, None)
            if begun is not None:
                yield from start_waiting()
                joined = None if last is None else last.joined(begun)
                if last is not None and joined is None:
                    yield last
                last = joined or begun
                continue
            if last is not None:
                yield last
                last = None
            tokens = self.tokens(text)
            if num_tokens + len(tokens) > _PART_TOKENS:
                yield from start_waiting()
            waiting.append(tokens)
            num_tokens += len(tokens)
        yield from start_waiting()
        if last is not None:
            yield last

    def product_kernel(self) -> Callable[[int], None] | None:
        """The integer products of a pass over so many tokens alone, for a benchmark's floor; None where the general
        engine reads. Raises: DependencyUnavailable.
        """
        network = self._network
        return network.multiply if isinstance(network, NativeSentenceEncoder) else None

    def tokens(self, text: str) -> list[int]:
        """The ids of a text between [CLS] and [SEP], cut to the bound."""
        inner, _ = self._encoded(text[: _CHARS_PER_TOKEN * self._max_tokens])
        return [self._cls_token, *inner[: self._max_tokens - 2], self._sep_token]

    def num_tokens(self, text: str) -> int:
        """How many tokens the whole text has, [CLS] and [SEP] included: what `tokens` cuts to the bound."""
        return len(self._encoded(text)[0]) + 2

    @property
    def max_tokens(self) -> int:
        """The bound on the tokens of a text."""
        return self._max_tokens

    def spans(self, text: str) -> NDArray[np.int64]:
        """Where the tokens of `tokens` stand in the text, in characters, [T, 2]; [CLS] and [SEP] at (0, 0)."""
        _, inner = self._encoded(text[: _CHARS_PER_TOKEN * self._max_tokens])
        inner = inner[: self._max_tokens - 2]
        spans = np.zeros((len(inner) + 2, 2), np.int64)
        spans[1:-1] = inner
        return spans

    @cached_property
    def _encoded(self) -> Callable[[str], tuple[list[int], NDArray[np.int64]]]:
        """Ids and spans of a text; those of the last texts are kept, as spans are asked for after ids."""
        return lru_cache(maxsize=_MAX_KEPT)(self._tokenizer.encode_with_spans)

    @cached_property
    def _network(self) -> EncoderNetwork:
        return self._open_network(self.tokens)

    @cached_property
    def _tokenizer(self) -> "HuggingFaceTokenizer":
        from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer  # late: at the first text

        return HuggingFaceTokenizer(self._tokenizer_file)

    @cached_property
    def _cls_token(self) -> int:
        return self._special_token("[CLS]")

    @cached_property
    def _sep_token(self) -> int:
        return self._special_token("[SEP]")

    def _special_token(self, name: str) -> int:
        found = self._tokenizer.special(name)
        if found is None:
            raise InvalidInput(f"{self._tokenizer_file}: the vocabulary has no {name}; name a BERT encoder")
        return found


class _Part(NamedTuple):
    """Texts `start` to before `end` of those that were started together, of so many tokens."""

    of: StartedTexts
    start: int
    end: int
    num_tokens: int

    def joined(self, other: "_Part") -> "_Part | None":
        """Both as one, where `other` follows and they are not too large for one."""
        num_tokens = self.num_tokens + other.num_tokens
        if other.of is not self.of or other.start != self.end or num_tokens > _PART_TOKENS:
            return None
        return self._replace(end=other.end, num_tokens=num_tokens)

    def embeddings(self) -> TextEmbeddings:
        return TextEmbeddings(*self.of.part(slice(self.start, self.end)))
