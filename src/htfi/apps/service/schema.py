"""What OpenAPI says of bodies: the schemas of our own structs, so that a client can be generated."""

from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from htfi.apps.service.openai_errors import ErrorBody
from htfi.client.bodies import Problem

JSON = "application/json"
_REF = "#/components/schemas/{name}"


def takes(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """That a request's body is such a struct."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": _ref(shape)}}}}


def gives(shape: type[msgspec.Struct] | None, *, media_type: str = JSON) -> dict[int | str, dict[str, Any]]:
    """That an answer is such a struct, or any object, and a refusal a problem."""
    schema = {"type": "object"} if shape is None else _ref(shape)
    if media_type != JSON:
        schema = {"type": "string"}
    problem = {"application/problem+json": {"schema": _ref(Problem)}}
    return {
        200: {"description": "The answer", "content": {media_type: {"schema": schema}}},
        422: {"description": "The request cannot be used as it is", "content": problem},
        "default": {"description": "A problem", "content": problem},
    }


def gives_openai() -> dict[int | str, dict[str, Any]]:
    """That an answer is any object, and an error of OpenAI's form: 400 is what is wrong with a request."""
    error = {JSON: {"schema": _ref(ErrorBody)}}
    return {
        200: {"description": "The answer", "content": {JSON: {"schema": {"type": "object"}}}},
        400: {"description": "The request cannot be used as it is", "content": error},
        "default": {"description": "An error", "content": error},
    }


def gives_act(shape: type[msgspec.Struct]) -> dict[int | str, dict[str, Any]]:
    """The same of an act: 202 where the run has not taken it yet."""
    found = gives(shape)
    return {**found, 202: {**found[200], "description": "Asked for: the run takes it later"}}


def add_schemas(app: FastAPI, shapes: Sequence[type[msgspec.Struct]]) -> None:
    """Have the app's OpenAPI name these structs and what they are made of."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, routes=app.routes, summary=app.summary)
            _, schemas = msgspec.json.schema_components([*shapes, Problem, ErrorBody], ref_template=_REF)
            known: dict[str, Any] = found.setdefault("components", {}).setdefault("schemas", {})
            known.update(schemas)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _ref(shape: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": _REF.format(name=shape.__name__)}
