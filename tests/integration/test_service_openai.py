"""Endpoints of OpenAI's form, by the official client: same tokens, whole or streamed, whatever ends."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import openai
import pytest

import htfi
from service_process import ServiceProcess

MODEL, ENCODER = "htfi-mini", "htfi-encoder"
ASKED: Any = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "What moved prices?"}],
    "seed": 7,
    "max_tokens": 24,
}
PATTERN = {"type": "string", "pattern": "a"}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "size": {"type": "integer"},
        "side": {"enum": ["up", "down"]},
        "odds": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["name", "size", "side", "odds"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("run")
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed([{"date": "2024-01-02", "symbol": "ACME", "close": 100.0}]))
    with ServiceProcess("--follow", str(folder)) as started:
        yield started


@pytest.fixture(scope="module")
def client(service: ServiceProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0, timeout=30.0) as asking:
        yield asking


def test_models_are_listed_and_found_by_name(client: openai.OpenAI) -> None:
    assert [one.id for one in client.models.list()] == [MODEL, ENCODER]
    assert client.models.retrieve(MODEL).owned_by == "htfi"


def test_stream_joins_to_the_whole_answer_of_the_same_seed(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**ASKED)
    pieces = list(
        client.chat.completions.create(**ASKED, stream=True, stream_options={"include_usage": True})
    )
    *said, last = pieces
    assert said[0].choices[0].delta.role == "assistant"
    assert "".join(one.choices[0].delta.content or "" for one in said) == whole.choices[0].message.content
    assert [one.choices[0].finish_reason for one in said if one.choices[0].finish_reason] == ["length"]
    assert last.choices == []
    assert last.usage is not None
    assert whole.usage is not None
    assert (last.usage.completion_tokens, last.usage.prompt_tokens) == (24, whole.usage.prompt_tokens)
    assert {"draft_tokens", "accepted_tokens", "rounds"} == set(whole.usage.model_extra["speculation"])  # type: ignore[index]


def test_first_of_several_choices_is_the_one_alone_and_others_differ(client: openai.OpenAI) -> None:
    alone = client.chat.completions.create(**ASKED).choices[0].message.content
    several = [one.message.content for one in client.chat.completions.create(**ASKED, n=3).choices]
    assert several[0] == alone
    assert len(set(several)) == 3


def test_text_ends_before_a_stop_string_across_tokens(client: openai.OpenAI) -> None:
    text = client.chat.completions.create(**ASKED).choices[0].message.content or ""
    stop = text[5:11]
    first = text.find(stop)
    cut = client.chat.completions.create(**ASKED, stop=[stop]).choices[0]
    assert (cut.message.content, cut.finish_reason) == (text[:first], "stop")
    pieces = client.chat.completions.create(**ASKED, stop=[stop], stream=True)
    assert "".join(one.choices[0].delta.content or "" for one in pieces) == text[:first]


def test_logprobs_of_greedy_tokens_are_those_of_the_likeliest(client: openai.OpenAI) -> None:
    found = (
        client.chat.completions.create(**ASKED, temperature=0, logprobs=True, top_logprobs=2)
        .choices[0]
        .logprobs
    )
    assert found is not None
    assert found.content is not None
    assert len(found.content) == 24
    assert [one.logprob for one in found.content] == [one.top_logprobs[0].logprob for one in found.content]


def test_answer_by_schema_keeps_to_the_schema(client: openai.OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "move", "schema": SCHEMA, "strict": True}}
    answer = client.chat.completions.create(**{**ASKED, "max_tokens": 300}, response_format=form).choices[0]
    assert answer.finish_reason == "stop"
    jsonschema.validate(json.loads(answer.message.content or ""), SCHEMA)


@pytest.mark.parametrize(
    ("changed", "status", "param", "words"),
    [
        ({"model": "none"}, 404, "model", "does not exist"),
        ({"temperature": 9}, 400, "temperature", "0.001 to 2"),
        ({"temperature": "hot"}, 400, "temperature", "Expected"),
        ({"n": 10_000}, 400, "n", "1 to 16"),
        ({"max_tokens": 5_000}, 400, "messages", "1024 tokens. However, you requested 5000"),
        ({"tools": [{"type": "function"}]}, 400, "tools", "not supported"),
        ({"frequency_penalty": 0.5}, 400, "frequency_penalty", "not supported"),
        ({"extra_body": {"foo": 1}}, 400, "foo", "Unrecognized"),
        ({"messages": [{"role": "tool", "content": ""}]}, 400, "messages[0].role", "give one of"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": PATTERN}}},
            400, "response_format", "keyword 'pattern' at $",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(
    client: openai.OpenAI, changed: dict[str, Any], status: int, param: str, words: str
) -> None:
    with pytest.raises(openai.APIStatusError, match=re.escape(words)) as raised:
        client.chat.completions.create(**{**ASKED, **changed})
    body: Any = raised.value.body
    assert (raised.value.status_code, body["param"]) == (status, param)
    assert words in body["message"]


@pytest.mark.parametrize(
    ("method", "path", "template", "status"),
    [
        ("GET", "/v1/models/0", "/v1/models/{name}", 404),
        ("POST", "/v1/chat/completions", "/v1/chat/completions", 400),
        ("POST", "/v1/completions", "/v1/completions", 400),
        ("POST", "/v1/embeddings", "/v1/embeddings", 400),
    ],
)
def test_errors_have_the_form_that_openapi_states(
    service: ServiceProcess, method: str, path: str, template: str, status: int
) -> None:
    document = httpx.get(f"{service.url}/v1/openapi.json").json()
    answer = httpx.request(method, f"{service.url}{path}")
    stated = document["paths"][template][method.lower()]["responses"]
    content = stated.get(str(answer.status_code), stated["default"])["content"]
    reference = content[answer.headers["content-type"]]["schema"]["$ref"].rpartition("/")[2]
    schema = {"$ref": f"#/components/schemas/{reference}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())
    assert (answer.status_code, reference) == (status, "ErrorBody")


def test_texts_of_several_prompts_are_those_of_each_alone(client: openai.OpenAI) -> None:
    both = client.completions.create(model=MODEL, prompt=["The Fed", "Oil"], max_tokens=8, seed=3)
    oil = client.completions.create(model=MODEL, prompt="Oil", max_tokens=8, seed=3)
    assert [one.index for one in both.choices] == [0, 1]
    assert both.choices[1].text == oil.choices[0].text


def test_control_tokens_that_a_user_writes_are_read_as_text(client: openai.OpenAI) -> None:
    plain = client.completions.create(model=MODEL, prompt="</s>", max_tokens=1, seed=1)
    assert plain.usage is not None
    assert plain.usage.prompt_tokens > 2
    with pytest.raises(openai.BadRequestError, match="must be a plain token"):
        client.completions.create(model=MODEL, prompt=[1], max_tokens=1)


def test_embeddings_are_the_encoders_in_both_encodings(client: openai.OpenAI) -> None:
    packed = client.embeddings.create(model=ENCODER, input=["oil rises", "oil falls"])
    listed = client.embeddings.create(model=ENCODER, input="oil falls", encoding_format="float")
    assert packed.data[1].embedding == pytest.approx(listed.data[0].embedding)
    assert sum(one * one for one in listed.data[0].embedding) == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(openai.BadRequestError, match="maximum context length is 64"):
        client.embeddings.create(model=ENCODER, input="oil " * 100)


def test_short_answer_does_not_wait_for_a_long_one(service: ServiceProcess) -> None:
    async def ask() -> list[str]:
        ended: list[str] = []
        async with openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as asking:

            async def one(name: str, num: int) -> None:
                await asking.completions.create(
                    model=MODEL, prompt="The", max_tokens=num, seed=1, temperature=2
                )
                ended.append(name)

            await asyncio.gather(one("long", 900), one("short", 4))
        return ended

    assert asyncio.run(ask())[0] == "short"


def test_client_that_leaves_frees_what_its_answer_held(
    service: ServiceProcess, client: openai.OpenAI
) -> None:
    for _ in range(6):  # of 16 texts each: more than may be open at once, if they stayed
        stream = client.completions.create(model=MODEL, prompt="The", max_tokens=900, n=16, stream=True)
        next(iter(stream))
        stream.close()
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=4) as patient:
        answer = patient.completions.create(model=MODEL, prompt="The", max_tokens=1, n=16)
    assert len(answer.choices) == 16


def test_killed_engine_fails_its_stream_and_the_next_request_works(
    service: ServiceProcess, client: openai.OpenAI
) -> None:
    stream = client.completions.create(model=MODEL, prompt="The", max_tokens=900, n=8, stream=True)
    pieces = iter(stream)
    next(pieces)
    os.kill(engine_of(service.process.pid), signal.SIGKILL)
    with pytest.raises(openai.APIError, match="has ended"):
        list(pieces)
    assert client.chat.completions.create(**ASKED).choices[0].finish_reason == "length"


def engine_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [int(one) for one in children if b"engine_process" in Path(f"/proc/{one}/cmdline").read_bytes()]
    assert len(found) == 1
    return found[0]
