"""Entity tags of answers whose bodies are made anew: a client that has the same gets 304 (RFC 9110, 8.8.3)."""

from hashlib import blake2b
from typing import Any

import msgspec
from fastapi import Request, Response

from htfi.apps.service.schema import JSON


def tagged_response(request: Request, body: Any) -> Response:
    """A body of ours as JSON with its tag, or that it has not changed."""
    content = msgspec.json.encode(body)
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    asked = request.headers.get("if-none-match", "")
    if tag in {one.strip().removeprefix("W/") for one in asked.split(",")}:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=JSON, headers=headers)
