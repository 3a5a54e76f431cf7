"""Requests of OpenAI's form: what is taken, what it means to the engine, and what is refused by name.

No parameter is ignored: one that the engine does not have is refused unless it asks for nothing.
"""

import re
import secrets
from typing import Any, TypeVar, cast

import msgspec

from htfi.apps.service.openai_api.messages import Write
from htfi.apps.service.openai_errors import BadParameter

MAX_CHOICES = 16
MAX_STOPS, MAX_STOP_CHARS = 4, 256
MAX_TOP_LOGPROBS, MAX_TEXT_LOGPROBS = 20, 5
MAX_INPUTS = 2_048
MAX_MESSAGES = 1_024
_COMPLETION_TOKENS = 16  # of /v1/completions where none are stated, as OpenAI has it
_ROLES = ("system", "developer", "user", "assistant")
_SEED_BITS = 63

T = TypeVar("T", bound=msgspec.Struct)


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`include_usage`: whether a last piece states the usage."""

    include_usage: bool = False
    include_obfuscation: bool = False


class ContentPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a message; only text is read."""

    type: str
    text: str | None = None
    image_url: Any = None
    input_audio: Any = None
    file: Any = None


class ChatMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of a conversation."""

    role: str
    content: str | list[ContentPart] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: Any = None
    tool_call_id: Any = None
    function_call: Any = None
    audio: Any = None
    annotations: Any = None


class JsonSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named schema."""

    name: str
    schema: Any = True
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of an answer: text, json_object or json_schema."""

    type: str
    json_schema: JsonSchema | None = None


class _Generation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What both kinds of completion have."""

    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    response_format: ResponseFormat | None = None


class ChatCompletionRequest(_Generation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: Any = None
    modalities: list[str] | None = None
    audio: Any = None
    prediction: Any = None
    reasoning_effort: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    verbosity: str | None = None
    web_search_options: Any = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None


class CompletionRequest(_Generation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """POST /v1/completions."""

    prompt: str | list[str | int | list[int]]
    logprobs: int | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None


class EmbeddingRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/embeddings."""

    model: str
    input: str | list[str | int | list[int]]
    encoding_format: str = "float"
    dimensions: int | None = None
    user: str | None = None


def read_request(body: bytes, shape: type[T]) -> T:
    """The request in a body. Raises: BadParameter, which names the field."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        words = str(error)
        found = re.search(r"`\$\.?([^`]*)`", words)
        named = re.search(r"(?:unknown|required) field `([^`]*)`", words)
        place = found.group(1) if found is not None else ""
        param = ".".join(one for one in (place, named.group(1) if named is not None else "") if one)
        if "unknown field" in words:
            words = f"Unrecognized request argument supplied: {param}"
        raise BadParameter(words, param or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadParameter(f"We could not parse the JSON body of your request: {error}") from None


def chat_write(asked: ChatCompletionRequest, number: int) -> Write:
    """What the engine is asked. Raises: BadParameter."""
    for name, idle in (
        ("tools", ()), ("tool_choice", ("none",)), ("functions", ()), ("function_call", ("none",)), ("audio", ()),
        ("prediction", ()), ("modalities", (["text"],)), ("reasoning_effort", ("none",)),
        ("service_tier", ("auto", "default")), ("store", (False,)), ("verbosity", ()), ("web_search_options", ()),
        ("parallel_tool_calls", (True, False)), ("metadata", ()),
    ):  # fmt: skip
        _refuse_unless_idle(name, getattr(asked, name), idle)
    if not 1 <= len(asked.messages) <= MAX_MESSAGES:
        raise BadParameter(f"messages: give 1 to {MAX_MESSAGES:,} of them", "messages")
    if asked.max_tokens is not None and asked.max_completion_tokens not in (None, asked.max_tokens):
        raise BadParameter("max_tokens and max_completion_tokens differ: give one of them", "max_tokens")
    num_logprobs = None
    if asked.logprobs:
        num_logprobs = _counted("top_logprobs", asked.top_logprobs or 0, 0, MAX_TOP_LOGPROBS)
    elif asked.top_logprobs is not None:
        raise BadParameter("top_logprobs needs logprobs: true", "top_logprobs")
    messages = [_message(one, f"messages[{place}]") for place, one in enumerate(asked.messages)]
    limit = asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens
    name = "max_tokens" if asked.max_completion_tokens is None else "max_completion_tokens"
    return _write(asked, number, messages, _limit(limit, name), num_logprobs)


def text_writes(asked: CompletionRequest, first: int) -> list[Write]:
    """What the engine is asked, for each prompt. Raises: BadParameter."""
    _refuse_unless_idle("echo", asked.echo, (False,))
    _refuse_unless_idle("suffix", asked.suffix, ("",))
    _refuse_unless_idle("best_of", asked.best_of, (asked.n or 1,))
    num_logprobs = None
    if asked.logprobs is not None:
        num_logprobs = _counted("logprobs", asked.logprobs, 0, MAX_TEXT_LOGPROBS)
    limit = _limit(asked.max_tokens, "max_tokens") or _COMPLETION_TOKENS
    prompts = _prompts(asked.prompt)
    if len(prompts) * (asked.n or 1) > MAX_CHOICES:
        raise BadParameter(f"{len(prompts)} prompts times n are more than {MAX_CHOICES} choices", "prompt")
    return [_write(asked, first + place, prompt, limit, num_logprobs) for place, prompt in enumerate(prompts)]


def embedding_inputs(asked: EmbeddingRequest, size: int) -> list[str]:
    """The texts to embed. Raises: BadParameter."""
    if asked.encoding_format not in ("float", "base64"):
        raise BadParameter(
            f"encoding_format {asked.encoding_format[:40]!r}: give float or base64", "encoding_format"
        )
    if asked.dimensions not in (None, size):
        raise BadParameter(
            f"dimensions {asked.dimensions}: this model's embeddings have {size}", "dimensions"
        )
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    if not 1 <= len(texts) <= MAX_INPUTS:
        raise BadParameter(f"input: give 1 to {MAX_INPUTS:,} texts, not {len(texts):,}", "input")
    for text in texts:
        if not isinstance(text, str):
            raise BadParameter(
                "input: give texts; ids of tokens are of another vocabulary than this model's", "input"
            )
        if not text:
            raise BadParameter("input: an empty text has no embedding", "input")
    return cast("list[str]", texts)


def _write(
    asked: _Generation,
    number: int,
    prompt: list[tuple[str, str]] | str | list[int],
    limit: int | None,
    num_logprobs: int | None,
) -> Write:
    _refuse_unless_idle("presence_penalty", asked.presence_penalty, (0.0,))
    _refuse_unless_idle("frequency_penalty", asked.frequency_penalty, (0.0,))
    _refuse_unless_idle("logit_bias", asked.logit_bias, ({},))
    if asked.stream_options is not None and not asked.stream:
        raise BadParameter("stream_options needs stream: true", "stream_options")
    if asked.stream_options is not None and asked.stream_options.include_obfuscation:
        raise BadParameter("stream_options.include_obfuscation is not supported here", "stream_options")
    temperature = 1.0 if asked.temperature is None else asked.temperature
    if not (temperature == 0.0 or 0.001 <= temperature <= 2.0):
        raise BadParameter(f"temperature {temperature:g}: give 0, or a number from 0.001 to 2", "temperature")
    top_p = 1.0 if asked.top_p is None else asked.top_p
    if not 0.0 < top_p <= 1.0:
        raise BadParameter(f"top_p {top_p:g}: give a number above 0, up to 1", "top_p")
    num = _counted("n", 1 if asked.n is None else asked.n, 1, MAX_CHOICES)
    seed = secrets.randbits(_SEED_BITS) if asked.seed is None else asked.seed
    if not -(2**_SEED_BITS) <= seed < 2**_SEED_BITS:
        raise BadParameter("seed: give an integer of 64 bits", "seed")
    stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    if len(stops) > MAX_STOPS or not all(1 <= len(one) <= MAX_STOP_CHARS for one in stops):
        raise BadParameter(f"stop: give up to {MAX_STOPS} texts of 1 to {MAX_STOP_CHARS} characters", "stop")
    form, schema = _form(asked.response_format)
    seeds = [(seed + _SEED_STEP * choice) % 2**64 for choice in range(num)]
    return Write(
        number,
        cast("Any", prompt),
        seeds,
        limit,
        temperature,
        top_p,
        stops,
        num_logprobs,
        form,
        schema,
        bool(asked.stream),
    )


_SEED_STEP = (
    0x9E3779B97F4A7C15  # between the choices of a request; odd and large, so that near seeds share none
)


def _form(stated: ResponseFormat | None) -> tuple[Any, bytes]:
    if stated is None or stated.type == "text":
        return "text", b""
    if stated.type == "json_object":
        return "object", b""
    if stated.type != "json_schema":
        raise BadParameter(
            f"response_format.type {stated.type[:40]!r}: give text, json_object or json_schema",
            "response_format",
        )
    if stated.json_schema is None:
        raise BadParameter("response_format.json_schema is missing", "response_format")
    return "schema", msgspec.json.encode(stated.json_schema.schema)


def _message(stated: ChatMessage, where: str) -> tuple[str, str]:
    if stated.role not in _ROLES:
        raise BadParameter(
            f"{where}.role {stated.role[:40]!r}: give one of {', '.join(_ROLES)}", f"{where}.role"
        )
    for name in ("name", "tool_calls", "tool_call_id", "function_call", "audio"):
        _refuse_unless_idle(f"{where}.{name}", getattr(stated, name), ([],))
    if stated.content is None:
        raise BadParameter(f"{where}.content is missing", f"{where}.content")
    if isinstance(stated.content, str):
        return stated.role, stated.content
    texts: list[str] = []
    for part in stated.content:
        if part.type != "text" or part.text is None:
            raise BadParameter(
                f"{where}.content: a part of type {part.type[:40]!r} is not read here", f"{where}.content"
            )
        texts.append(part.text)
    return stated.role, "".join(texts)


def _prompts(stated: str | list[str | int | list[int]]) -> list[str | list[int]]:
    if isinstance(stated, str):
        return [stated]
    if not stated:
        raise BadParameter("prompt: an empty list", "prompt")
    if all(isinstance(one, int) for one in stated):
        return [cast("list[int]", stated)]
    if not all(one and not isinstance(one, int) for one in stated):
        raise BadParameter(
            "prompt: give a text, a list of texts, or ids of tokens, none of them empty", "prompt"
        )
    return cast("list[str | list[int]]", stated)


def _limit(stated: int | None, name: str) -> int | None:
    if stated is not None and stated < 1:
        raise BadParameter(f"{name} {stated}: give 1 or more", name)
    return stated


def _counted(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise BadParameter(f"{name} {value}: give {least} to {most}", name)
    return value


def _refuse_unless_idle(name: str, value: object, idle: tuple[object, ...]) -> None:
    if value is not None and value not in idle and value != []:
        raise BadParameter(f"{name} is not supported by this engine: leave it out", name)
