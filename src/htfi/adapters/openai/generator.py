"""A remote model as a text generator. Wiring opens it with the environment; narrative asks it like an embedded one."""

import asyncio
import math
import random as random_
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from htfi.adapters.openai.chat import CallBudget, ChatClient, RemoteUsage
from htfi.adapters.openai.config import FrontierConfig
from htfi.adapters.openai.prompts import UnusableReply, chat_messages, json_schema, parse_reply
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import Completion, FixedField, GenerationRequest, PromptDialect, RequestRefused

_MAX_SEED = 2**31 - 1


class OpenAIGenerator:
    """Implements `TextGenerator` over an OpenAI-compatible chat endpoint. A failure is a refusal with its reason.

    The requests of one `write` run side by side, each until its own deadline, counted from the call. `random`,
    `sleep` and `now_s` (UTC seconds) are given by tests. Raises InvalidInput for a missing key; close it after use.
    """

    def __init__(
        self,
        config: FrontierConfig,
        environment: Mapping[str, str],
        random: Callable[[], float] = random_.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._budget = CallBudget(config)
        chat = ChatClient(config, _api_key(config, environment), self._budget, random, sleep, now_s)
        self._chat = chat
        # A loop of its own keeps connections between calls, and works under a caller's running loop.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="htfi-frontier", daemon=True)
        self._thread.start()

    @property
    def version(self) -> str:
        """Model and host: a remote model's weights have no digest that we could check."""
        return f"{self._config.model}@{self._config.host}"

    @property
    def dialect(self) -> PromptDialect:
        return PromptDialect.PLAIN

    @property
    def speculation_stats(self) -> None:
        """How a model elsewhere decodes is not known here."""

    @property
    def usage(self) -> RemoteUsage:
        """Tokens, money and calls so far."""
        return self._budget.usage

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order."""
        if self._loop.is_closed():
            return [RequestRefused("this model is closed") for _ in requests]
        answers = asyncio.run_coroutine_threadsafe(self._write_all(requests), self._loop)
        try:
            return answers.result()
        finally:
            answers.cancel()  # on an interrupt, calls under way end too

    def close(self) -> None:
        """End every connection. What is asked afterwards is refused."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._chat.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _write_all(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        return list(await asyncio.gather(*map(self._write, requests)))

    async def _write(self, request: GenerationRequest) -> Completion | RequestRefused:
        if not request.deadline_ms > 0.0:
            return RequestRefused(f"the deadline of {request.deadline_ms:g} ms has passed")
        until_s = asyncio.get_running_loop().time() + min(request.deadline_ms, 86_400_000.0) / 1e3
        try:
            async with asyncio.timeout_at(until_s):
                return await self._complete(request, until_s)
        except TimeoutError:
            return RequestRefused(f"{self._config.host} gave no answer within {request.deadline_ms:g} ms")
        except InvalidInput as error:
            return RequestRefused(str(error))

    async def _complete(self, request: GenerationRequest, until_s: float) -> Completion | RequestRefused:
        """Ask, and once more where the answer does not hold to the form."""
        if all(isinstance(part, FixedField) for part in request.form):
            return Completion({})  # nothing is asked
        complaint = ""
        for _ in range(2):
            body = self._request_body(request, complaint)
            try:
                reply = await self._chat.complete(body, until_s)
                if isinstance(reply, RequestRefused):
                    return reply
                fields = parse_reply(request.form, reply.content)
                return Completion(fields, num_prompt_tokens=reply.num_input_tokens)
            except UnusableReply as error:
                complaint = str(error)
        return RequestRefused(f"{self._config.model} answered twice outside the form: {complaint}")

    def _request_body(self, request: GenerationRequest, complaint: str) -> bytes:
        if not (math.isfinite(request.temperature) and 0.0 <= request.temperature <= 2.0):
            raise InvalidInput(f"a temperature must be within 0..2, not {request.temperature:g}")
        form = {"name": "answer", "strict": True, "schema": json_schema(request.form)}
        parameters: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed & _MAX_SEED,
            "response_format": {"type": "json_schema", "json_schema": form},
        }
        if request.top_p < 1.0:
            parameters["top_p"] = request.top_p
        if request.top_k:
            parameters["top_k"] = request.top_k  # not OpenAI's own, but of vLLM, llama.cpp and others
        return msgspec.json.encode(
            {
                "model": self._config.model,
                "messages": chat_messages(request, complaint),
                self._config.output_limit_name: self._config.max_output_tokens,
                **{name: value for name, value in parameters.items() if name not in self._config.omit},
            }
        )


def _api_key(config: FrontierConfig, environment: Mapping[str, str]) -> str:
    """The key as it is sent. No message holds any part of it."""
    if not config.key_variable:
        return ""
    key = environment.get(config.key_variable, "").strip()
    if not key:
        raise InvalidInput(f"the environment variable {config.key_variable} holds no key for {config.host}")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InvalidInput(f"the key in {config.key_variable} holds characters that a key cannot have")
    return key
