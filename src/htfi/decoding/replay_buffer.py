"""What a target wrote, as one JSON line each: answers and sampled paths. Services record it, distillation reads it.

A line holds all that is needed to ask again: the request with its grammar and seed, the tokens, and the model.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from htfi.decoding.promotion import DraftedGenerator, GeneratorWrapper
from htfi.decoding.sampling import SamplingParams
from htfi.domain.errors import InvalidInput
from htfi.domain.files import add_checksum, checksum_holds
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    Prompt,
    PromptSegment,
    RequestRefused,
    ScaledMoves,
)

HOLDOUT_ONE_IN = 5
_MIN_SHARED_TOKENS = 16  # ids; a shorter prefix, such as that without news, is common to all prompts


class RecordedAnswer(msgspec.Struct, frozen=True, tag="answer"):
    """One answer. `target` is the generator's version, name@digest; `tokenizer` the vocabulary's digest."""

    request: GenerationRequest
    tokens: tuple[int, ...]
    target: str
    tokenizer: str


class RecordedPaths(msgspec.Struct, frozen=True, tag="paths"):
    """Bins [N, H] sampled after `prefix` by `sample_paths`; `shared` ids begin other prefixes too."""

    prefix: tuple[int, ...]
    bins: tuple[tuple[int, ...], ...]
    seed: int
    sampling: SamplingParams
    shared: int
    target: str
    tokenizer: str


ReplayRecord = RecordedAnswer | RecordedPaths


class _AnswerLine(msgspec.Struct, frozen=True, tag="answer"):
    request: dict[str, Any]
    tokens: tuple[int, ...]
    target: str
    tokenizer: str


_decoder = msgspec.json.Decoder(_AnswerLine | RecordedPaths)
_Fields = dict[str, Any]


def to_line(exchange: ReplayRecord) -> bytes:
    """The record as one line, with its newline."""
    return add_checksum(msgspec.json.encode(exchange), 0) + b"\n"


def from_line(line: bytes) -> ReplayRecord:
    """The inverse of `to_line`. Raises: InvalidInput for a line that is cut short, damaged or of an unknown kind."""
    if not checksum_holds(line, 0):
        raise InvalidInput("a line of the replay buffer is damaged")
    try:
        found = _decoder.decode(line)
        if isinstance(found, RecordedPaths):
            if len({len(path) for path in found.bins}) != 1 or not found.bins[0]:
                raise InvalidInput("recorded paths are empty or differ in length")
            return found
        return RecordedAnswer(_request(found.request), found.tokens, found.target, found.tokenizer)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise InvalidInput(f"a line of the replay buffer cannot be read: {error}") from error


def news_key(prompt: Sequence[int], num_shared: int) -> bytes:
    """Identifies the news of a prompt: requests with the same news are held out together and counted as one."""
    ids = prompt[:num_shared] if num_shared >= _MIN_SHARED_TOKENS else prompt
    return hashlib.blake2b(np.array(ids, "<i8").tobytes(), digest_size=8).digest()


def is_holdout(key: bytes) -> bool:
    """Whether a key is held out for judging a draft: a fixed fifth, the same in every run."""
    return int.from_bytes(key, "little") % HOLDOUT_ONE_IN == 0


def _request(fields: _Fields) -> GenerationRequest:
    """Segments and parts carry no tag: their fields identify them."""
    prompt, grammar = _segments(fields["prompt"]), _form(fields["form"])
    rest = {
        known.name: msgspec.convert(fields[known.name], known.type)
        for known in msgspec.structs.fields(GenerationRequest)[2:]
        if known.name in fields
    }
    return GenerationRequest(prompt, grammar, **rest)


def _form(parts: Sequence[_Fields]) -> OutputGrammar:
    return tuple(_part(part) for part in parts)


def _part(fields: _Fields) -> FixedField | ChoiceField | FreeTextField:
    if "segments" in fields:
        return FixedField(_segments(fields["segments"]))
    if "options" in fields:
        return ChoiceField(str(fields["name"]), tuple(_segments(option) for option in fields["options"]))
    slots = tuple(msgspec.convert(slot, ControlToken) for slot in fields["slots"])
    return FreeTextField(str(fields["name"]), int(fields["max_tokens"]), _segment(fields["end"]), slots)


def _segments(segments: Sequence[_Fields]) -> Prompt:
    return tuple(_segment(segment) for segment in segments)


def _segment(fields: _Fields) -> PromptSegment:
    kind = PlainText if "text" in fields else ScaledMoves if "values" in fields else ControlToken
    return msgspec.convert(fields, kind)


class AnswerBuffer(Protocol):
    """Where answers are kept. What is lost is no error: `last_error` says why the last one was."""

    @property
    def last_error(self) -> str: ...

    def add(self, exchange: RecordedAnswer) -> bool: ...


class RecordingGenerator(GeneratorWrapper):
    """A generator whose completions go into a replay buffer, for `htfi models distil`. `tokenizer` is its digest.

    Where the buffer cannot be written, `report` is called once for each reason, and answers continue.
    """

    def __init__(
        self,
        generator: DraftedGenerator,
        buffer: AnswerBuffer,
        tokenizer: str,
        report: Callable[[str], None],
    ) -> None:
        self._generator = generator
        self._buffer = buffer
        self._tokenizer = tokenizer
        self._report = report
        self._reported = ""

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order."""
        answers = self._generator.write(requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Completion) and answer.tokens:
                self._buffer.add(
                    RecordedAnswer(request, answer.tokens, self._generator.version, self._tokenizer)
                )
        if self._buffer.last_error != self._reported:
            self._reported = self._buffer.last_error
            self._report(f"{self._reported}: answers are not kept for distillation")
        return answers
