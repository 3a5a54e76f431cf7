"""The bodies of requests: read up to a limit, and decoded once into what a path takes."""

from typing import TypeVar

import msgspec
from fastapi import Request

from htfi.apps.service.problems import BodyTooLarge
from htfi.apps.service.schema import JSON
from htfi.domain.errors import InvalidInput

MAX_BODY_BYTES = 16 << 20
MAX_ACT_BYTES = 1 << 20  # of what asks for an act, or is news

T = TypeVar("T", bound=msgspec.Struct)


async def read_body(request: Request, shape: type[T]) -> T:
    """The request's JSON. Raises: InvalidInput, BodyTooLarge."""
    return decode_body(await read_bytes(request, MAX_BODY_BYTES), shape)


async def read_bytes(request: Request, max_bytes: int) -> bytes:
    """The request's JSON as it came. Raises: InvalidInput where it is not said to be JSON, BodyTooLarge."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() != JSON:
        raise InvalidInput(f"the body is {kind.strip()[:60].lower() or 'of no stated type'}: send {JSON}")
    charset = parameters.strip().lower().partition("charset=")[2].strip('" ')
    if charset not in ("", "utf-8", "utf8"):
        raise InvalidInput(f"the body's charset is {charset[:40]}: send JSON in UTF-8")
    parts: list[bytes] = []
    num = 0
    async for part in request.stream():
        num += len(part)
        if num > max_bytes:
            size = f"{max_bytes >> 20} MiB" if max_bytes >> 20 else f"{max_bytes >> 10} KiB"
            raise BodyTooLarge(f"the body is larger than {size}")
        parts.append(part)
    return b"".join(parts)


def decode_body(content: bytes, shape: type[T]) -> T:
    """Raises: InvalidInput."""
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not what this path takes: {error}") from None
