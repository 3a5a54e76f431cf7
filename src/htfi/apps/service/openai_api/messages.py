"""What the service and its engine process say to each other: frames of MessagePack behind their length."""

from typing import Literal

import msgspec

HEAD_BYTES = 4  # of a frame's length
MAX_FRAME_BYTES = 64 << 20


class Write(msgspec.Struct, frozen=True, tag=True):
    """Write a text for each of the seeds after one prompt: of messages (role, content), a text or ids."""

    id: int
    prompt: str | list[tuple[str, str] | int]
    seeds: list[int]
    max_tokens: int | None
    temperature: float
    top_p: float
    stops: list[str]
    num_logprobs: int | None
    form: Literal["text", "object", "schema"]
    schema: bytes = b""
    is_stream: bool = (
        True  # otherwise each text is sent when it is whole: the service is not woken for every round
    )
    tenant: str = ""


class Embed(msgspec.Struct, frozen=True, tag=True):
    """The embeddings of texts."""

    id: int
    texts: list[str]
    tenant: str = ""


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """The answer is wanted no more."""

    id: int


class Turn(msgspec.Struct, frozen=True, tag=True):
    """What a tenant has asked, and asks from now on, is held, or goes on."""

    tenant: str
    is_paused: bool


class Begun(msgspec.Struct, frozen=True, tag=True):
    """A request to write was taken; what follows are its parts."""

    id: int
    fingerprint: str


class WrittenToken(msgspec.Struct, frozen=True):
    """A token's text and log-probability, and the likeliest at its place."""

    text: str
    logprob: float
    top: list[tuple[str, float]]


class Counts(msgspec.Struct, frozen=True):
    """What one text took so far."""

    num_prompt: int
    num_reused: int
    num_written: int
    num_drafted: int
    num_accepted: int
    num_rounds: int
    cpu_s: float


class Part(msgspec.Struct, frozen=True, tag=True):
    """More of one of the texts; `finish` on its last part, `problem` where it cannot go on.

    `engine_ms`, on the last part: from when the engine took the request, by the clock.
    """

    id: int
    choice: int
    text: str
    tokens: list[WrittenToken]
    counts: Counts
    finish: str = ""
    problem: str = ""
    engine_ms: float = 0.0


class Embedded(msgspec.Struct, frozen=True, tag=True):
    """Embeddings [n, D] as little-endian float32, and the tokens that were read."""

    id: int
    size: int
    content: bytes
    num_tokens: int
    cpu_s: float


class Refused(msgspec.Struct, frozen=True, tag=True):
    """No answer, and why."""

    id: int
    message: str
    status: int = 400
    param: str | None = None
    code: str | None = None


Question = Write | Embed | Cancel | Turn
Answer = Begun | Part | Embedded | Refused
