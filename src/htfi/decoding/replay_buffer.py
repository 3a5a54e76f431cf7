"""What a target said, as one line of JSON each: answers to requests and drawn paths. The recorder writes, distil reads.

A line holds all that is needed to ask again: the request with its form and seed, the tokens, and whose they are.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from htfi.decoding.sampling import SamplingParams
from htfi.domain.errors import InvalidInput
from htfi.domain.files import add_checksum, checksum_holds
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    Prompt,
    PromptSegment,
    ScaledMoves,
)

HOLDOUT_ONE_IN = 5
_MIN_SHARED_TOKENS = 16  # ids; a shorter beginning, such as that of no news, is everyone's


class RecordedAnswer(msgspec.Struct, frozen=True, tag="answer"):
    """One answer. `target` is the author's version, name@digest; `tokenizer` the vocabulary's digest."""

    request: GenerationRequest
    tokens: tuple[int, ...]
    target: str
    tokenizer: str


class RecordedPaths(msgspec.Struct, frozen=True, tag="paths"):
    """Bins [N, H] that were drawn after `prefix`, as `sample_paths` was asked; `shared` ids begin other prefixes."""

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
    """The exchange as one line, its end included."""
    return add_checksum(msgspec.json.encode(exchange), 0) + b"\n"


def from_line(line: bytes) -> ReplayRecord:
    """The inverse of `to_line`. Raises: InvalidInput for a line that is cut short, damaged or of no known kind."""
    if not checksum_holds(line, 0):
        raise InvalidInput("an exchange of a replay buffer is not as it was written")
    try:
        found = _decoder.decode(line)
        if isinstance(found, RecordedPaths):
            if len({len(path) for path in found.bins}) != 1 or not found.bins[0]:
                raise InvalidInput("drawn paths of no or of different lengths")
            return found
        return RecordedAnswer(_request(found.request), found.tokens, found.target, found.tokenizer)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise InvalidInput(f"no exchange of a replay buffer: {error}") from error


def news_key(prompt: Sequence[int], num_shared: int) -> bytes:
    """What questions on the same news have in common: they are held back together, and counted as one."""
    ids = prompt[:num_shared] if num_shared >= _MIN_SHARED_TOKENS else prompt
    return hashlib.blake2b(np.array(ids, "<i8").tobytes(), digest_size=8).digest()


def is_holdout(key: bytes) -> bool:
    """Whether what has this key is kept for judging a draft: a fixed fifth, the same at every run."""
    return int.from_bytes(key, "little") % HOLDOUT_ONE_IN == 0


def _request(fields: _Fields) -> GenerationRequest:
    """Segments and parts carry no tag: their fields tell them apart."""
    prompt, form = _segments(fields["prompt"]), _form(fields["form"])
    rest = {
        known.name: msgspec.convert(fields[known.name], known.type)
        for known in msgspec.structs.fields(GenerationRequest)[2:]
        if known.name in fields
    }
    return GenerationRequest(prompt, form, **rest)


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
