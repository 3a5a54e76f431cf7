"""The endpoints of OpenAI's form: chat and text completions, embeddings, models."""

import asyncio
import base64
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, suppress
from typing import TypeVar

import msgspec
import numpy as np
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from htfi.apps.service.bodies import MAX_BODY_BYTES, read_bytes
from htfi.apps.service.callers import caller_of, needs
from htfi.apps.service.metering import meter
from htfi.apps.service.openai_api.answers import AnswerUsage, CompletionForm, WholeText
from htfi.apps.service.openai_api.engine import EngineProcess
from htfi.apps.service.openai_api.messages import Begun, Part, Write
from htfi.apps.service.openai_api.requests import (
    ChatCompletionRequest,
    CompletionRequest,
    EmbeddingRequest,
    chat_write,
    embedding_inputs,
    read_request,
    text_writes,
)
from htfi.apps.service.openai_api.served_models import ServedModels
from htfi.apps.service.openai_errors import ClientGone, error_body
from htfi.apps.service.problems import status_of
from htfi.apps.service.schema import JSON, gives_openai, takes
from htfi.domain.errors import HtfiError
from htfi.library.serving.callers import Scope

_EVENTS = "text/event-stream"
_ENGINE_MS = "openai-processing-ms"  # the header that OpenAI states it in
_DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")

SHAPES = (ChatCompletionRequest, CompletionRequest, EmbeddingRequest)

generating = APIRouter(dependencies=[Depends(needs(Scope.GENERATE))])
reading = APIRouter(dependencies=[Depends(needs(Scope.READ))])


@reading.get("/models", summary="The language models that are served", responses=gives_openai())
async def models(request: Request) -> Response:
    served = _served(request)
    return _json({"object": "list", "data": [served.body(name) for name in served.names]})


@reading.get("/models/{name:path}", summary="One of them", responses=gives_openai())
async def model(request: Request, name: str) -> Response:
    served = _served(request)
    served.check(name, served.names)
    return _json(served.body(name))


@generating.post(
    "/chat/completions",
    summary="Go on with a conversation",
    openapi_extra=takes(ChatCompletionRequest),
    responses=gives_openai(),
)
async def chat_completions(request: Request) -> Response:
    asked = read_request(await read_bytes(request, MAX_BODY_BYTES), ChatCompletionRequest)
    served = _served(request)
    served.check(asked.model, (served.writer,))
    write = chat_write(asked, served.engine.next_id())
    write = msgspec.structs.replace(write, tenant=caller_of(request).tenant)
    options = asked.stream_options
    return await _completed(
        request, served, [write], is_chat=True, is_stream=bool(asked.stream),
        with_usage=options is not None and options.include_usage,
    )  # fmt: skip


@generating.post(
    "/completions",
    summary="Go on with a text",
    openapi_extra=takes(CompletionRequest),
    responses=gives_openai(),
)
async def completions(request: Request) -> Response:
    asked = read_request(await read_bytes(request, MAX_BODY_BYTES), CompletionRequest)
    served = _served(request)
    served.check(asked.model, (served.writer,))
    writes = text_writes(asked, 0)
    tenant = caller_of(request).tenant
    writes = [msgspec.structs.replace(one, id=served.engine.next_id(), tenant=tenant) for one in writes]
    options = asked.stream_options
    return await _completed(
        request, served, writes, is_chat=False, is_stream=bool(asked.stream),
        with_usage=options is not None and options.include_usage,
    )  # fmt: skip


@generating.post(
    "/embeddings", summary="Points of texts", openapi_extra=takes(EmbeddingRequest), responses=gives_openai()
)
async def embeddings(request: Request) -> Response:
    asked = read_request(await read_bytes(request, MAX_BODY_BYTES), EmbeddingRequest)
    served = _served(request)
    served.check(asked.model, (served.encoder,))
    texts = embedding_inputs(asked, served.embedding_size)
    found = await _while_connected(request, served.engine.embed(texts, caller_of(request).tenant))
    usage = AnswerUsage(num_embedded=found.num_tokens, embedding_cpu_s=found.cpu_s)
    count_usage(request, usage)
    points = np.frombuffer(found.content, "<f4").reshape(len(texts), found.size)
    as_text = asked.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": place,
            "embedding": base64.b64encode(point.tobytes()).decode() if as_text else point.tolist(),
        }
        for place, point in enumerate(points)
    ]
    return _json(
        {
            "object": "list",
            "data": data,
            "model": asked.model,
            "usage": {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens},
        }
    )


def count_usage(request: Request, usage: AnswerUsage) -> None:
    """The one place where what a request took is counted."""
    meter(request).add(tokens=usage.num_tokens, cpu_s=usage.cpu_s)


async def _completed(
    request: Request,
    served: ServedModels,
    writes: Sequence[Write],
    *,
    is_chat: bool,
    is_stream: bool,
    with_usage: bool,
) -> Response:
    name = f"{'chatcmpl' if is_chat else 'cmpl'}-{secrets.token_hex(12)}"
    usage = AnswerUsage()
    parts = _merged(served.engine, writes)
    num = sum(len(one.seeds) for one in writes)
    try:
        begun = await _while_connected(request, anext(parts))  # what is refused is so before an answer begins
        assert isinstance(begun, Begun)
        made = CompletionForm(
            name, served.writer, begun.fingerprint, is_chat, writes[0].num_logprobs is not None
        )
        if is_stream:
            events = _events(request, made, parts, writes, usage, with_usage=with_usage)
            return StreamingResponse(
                events, media_type=_EVENTS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            )
        texts = [WholeText() for _ in range(num)]
        try:
            await _while_connected(request, _collect(parts, writes, texts, usage))
        finally:
            count_usage(request, usage)
        return _json(made.whole(texts, usage), {_ENGINE_MS: f"{usage.engine_ms:.3f}"})
    except BaseException:
        await parts.aclose()
        raise


async def _collect(
    parts: AsyncGenerator[Begun | Part], writes: Sequence[Write], texts: list[WholeText], usage: AnswerUsage
) -> None:
    first = _first_choices(writes)
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Part):
                texts[first[part.id] + part.choice].add(part)
                usage.add(part)


async def _events(
    request: Request,
    made: CompletionForm,
    parts: AsyncGenerator[Begun | Part],
    writes: Sequence[Write],
    usage: AnswerUsage,
    *,
    with_usage: bool,
) -> AsyncIterator[bytes]:
    first = _first_choices(writes)
    offsets: dict[int, int] = {}
    try:
        async with aclosing(parts):
            async for part in parts:
                if isinstance(part, Begun):
                    continue
                usage.add(part)
                index = first[part.id] + part.choice
                pieces = made.pieces(index, part, offsets.get(index, 0))
                if index not in offsets and (opening := made.first(index)) is not None:
                    pieces.insert(0, opening)
                offsets[index] = offsets.get(index, 0) + sum(len(one.text) for one in part.tokens)
                if pieces:
                    yield b"".join(_event({**one, "usage": None} if with_usage else one) for one in pieces)
        if with_usage:
            yield _event(made.last(usage))
        yield _DONE
    except HtfiError as error:
        param, code = getattr(error, "param", None), getattr(error, "code", None)
        yield _event(error_body(status_of(error), str(error), param, code))
        yield _DONE
    finally:
        count_usage(request, usage)


async def _merged(engine: EngineProcess, writes: Sequence[Write]) -> AsyncGenerator[Begun | Part]:
    """The parts of several requests to the engine as they come; the first is that all have begun."""
    if len(writes) == 1:
        async with aclosing(engine.write(writes[0])) as parts:
            async for part in parts:
                yield part
        return
    found: asyncio.Queue[Begun | Part | BaseException | None] = asyncio.Queue()

    async def follow(write: Write) -> None:
        try:
            async with aclosing(engine.write(write)) as parts:
                async for part in parts:
                    found.put_nowait(part)
        except HtfiError as error:
            found.put_nowait(error)
        found.put_nowait(None)

    tasks = [asyncio.create_task(follow(write)) for write in writes]
    try:
        num_left, num_begun = len(writes), 0
        held: list[Begun | Part] = []
        while num_left:
            part = await found.get()
            if part is None:
                num_left -= 1
            elif isinstance(part, BaseException):
                raise part
            elif num_begun == len(writes):
                yield part
            else:
                held.append(part)
                num_begun += isinstance(part, Begun)
                if num_begun == len(writes):
                    held.sort(key=lambda one: isinstance(one, Part))
                    for one in held:
                        yield one
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _while_connected(request: Request, answer: Awaitable[T]) -> T:
    """An answer, given up when its client has gone. Raises: ClientGone, and what the answer raises."""
    working = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone("the client has gone")
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
            with suppress(asyncio.CancelledError, HtfiError, StopAsyncIteration):
                await task


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _first_choices(writes: Sequence[Write]) -> dict[int, int]:
    """The index of the first choice of each request to the engine."""
    first: dict[int, int] = {}
    num = 0
    for write in writes:
        first[write.id] = num
        num += len(write.seeds)
    return first


def _served(request: Request) -> ServedModels:
    served: ServedModels = request.app.state.models
    return served


def _event(content: object) -> bytes:
    return b"data: %s\n\n" % _encode(content)


def _json(content: object, headers: dict[str, str] | None = None) -> Response:
    return Response(_encode(content), media_type=JSON, headers=headers)
