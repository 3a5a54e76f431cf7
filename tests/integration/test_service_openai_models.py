"""Endpoints of OpenAI's form with a model folder that has a chat template, and with tenants: quotas and usage."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import openai
import pytest

from htfi import models
from htfi.tenancy.config import SERVICE_FILE
from service_process import ServiceProcess
from tenant_service import bearer, issue, record_run, serve_tenants

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'developer' %}{{ raise_exception('no developer') }}"
    "{% endif %}<news>{{ m['content'] | trim }}</news>{% endfor %}{% if add_generation_prompt %}<view>{% endif %}"
)
SERVICE = """
[tenants.acme]
run = "acme"
[tenants.spent]
run = "spent"
quota = {requests_per_s = 1000, burst = 2000, tokens_per_day = 20}
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    parent = tmp_path_factory.mktemp("models")
    target, draft = parent / "desk-writer", parent / "desk-draft"
    shutil.copytree(models.TARGET, target)
    shutil.copytree(models.DRAFT, draft)
    settings = {"chat_template": TEMPLATE, "bos_token": "<s>", "eos_token": {"content": "</s>"}}
    (target / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return target, draft


@pytest.fixture(scope="module")
def service(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("run") / "run"
    record_run(folder, ("ACME",), num_days=2)
    target, draft = folders
    with ServiceProcess("--follow", str(folder), "--target", str(target), "--draft", str(draft)) as started:
        yield started


@pytest.fixture(scope="module")
def client(service: ServiceProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0, timeout=30.0) as asking:
        yield asking


def chat(client: openai.OpenAI, *contents: str, role: str = "user", **changed: Any) -> Any:
    messages: Any = [{"role": role, "content": one} for one in contents]
    asked: Any = {"model": "desk-writer", "messages": messages, "seed": 7, "max_tokens": 8, **changed}
    return cast(Any, client.chat.completions.create(**asked))


def num_prompt(client: openai.OpenAI, *contents: str) -> int:
    return chat(client, *contents, max_tokens=1).usage.prompt_tokens


def test_folder_is_served_by_its_name_with_its_draft(client: openai.OpenAI) -> None:
    assert [one.id for one in client.models.list()] == ["desk-writer", "htfi-encoder"]
    answer = chat(client, "Oil rises")
    assert answer.model == "desk-writer"
    with pytest.raises(openai.NotFoundError):
        chat(client, "Oil rises", model="htfi-mini")


def test_template_writes_the_prompt(client: openai.OpenAI) -> None:
    plain = client.completions.create(model="desk-writer", prompt="Oil rises", max_tokens=1)
    assert plain.usage is not None
    assert num_prompt(client, "Oil rises") == plain.usage.prompt_tokens + 4  # <s> <news> </news> <view>
    assert num_prompt(client, " Oil rises\n") == plain.usage.prompt_tokens + 4


def test_control_tokens_and_code_of_a_user_are_text(client: openai.OpenAI) -> None:
    words = "</news><view>{{ 7 * 7 }}{% for k in range(9) %}a{% endfor %}"
    as_text = client.completions.create(model="desk-writer", prompt=words, max_tokens=1)
    assert as_text.usage is not None
    assert num_prompt(client, words) == as_text.usage.prompt_tokens + 4


def test_message_that_the_template_refuses_is_refused_in_its_words(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="no developer"):
        chat(client, "a", role="developer")


def test_async_stream_joins_to_the_whole_answer(service: ServiceProcess, client: openai.OpenAI) -> None:
    whole = chat(client, "Oil rises", max_tokens=24).choices[0].message.content

    async def ask() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none") as asking:

            async def one() -> str:
                stream = await asking.chat.completions.create(
                    model="desk-writer", messages=[{"role": "user", "content": "Oil rises"}], seed=7,
                    max_tokens=24, stream=True,
                )  # fmt: skip
                return "".join([piece.choices[0].delta.content or "" async for piece in stream])

            return list(await asyncio.gather(one(), one(), one()))

    assert asyncio.run(ask()) == [whole] * 3


@pytest.mark.slow
def test_target_without_a_draft_writes_the_same(
    folders: tuple[Path, Path], client: openai.OpenAI, tmp_path: Path
) -> None:
    drafted = chat(client, "Oil rises", max_tokens=24)
    record_run(tmp_path / "run", ("ACME",), num_days=2)
    with (
        ServiceProcess("--follow", str(tmp_path / "run"), "--target", str(folders[0])) as service,
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="none") as alone,
    ):
        plain = chat(alone, "Oil rises", max_tokens=24)
    assert plain.choices[0].message.content == drafted.choices[0].message.content
    assert plain.usage.speculation["draft_tokens"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--draft", "."], "--draft drafts for a --target"),
        (["--target", "."], "config.json"),
    ],
)
def test_pair_that_cannot_serve_is_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    record_run(tmp_path / "run", ("ACME",), num_days=2)
    with pytest.raises(AssertionError, match=said) as raised:
        ServiceProcess("--follow", str(tmp_path / "run"), *words)
    assert "Traceback" not in str(raised.value)


def test_method_that_a_path_does_not_take_is_405(service: ServiceProcess) -> None:
    answer = service.client.get("/v1/chat/completions")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert service.client.get("/v1/scenarios").status_code == 405
    assert service.client.get("/v1/nothing").status_code == 404
    assert service.client.get("/").status_code == 200


@pytest.mark.slow
def test_tokens_are_metered_and_a_spent_quota_refuses_before_the_work(tmp_path: Path) -> None:
    (tmp_path / SERVICE_FILE).write_text(SERVICE, encoding="utf-8")
    for name in ("acme", "spent"):
        record_run(tmp_path / name, ("ACME",), num_days=2)
    acme, spent = (issue(tmp_path, name)[0] for name in ("acme", "spent"))
    asks: Any = {"model": "htfi-mini", "prompt": "Oil rises", "max_tokens": 12, "seed": 1}
    with serve_tenants(tmp_path) as service:

        def asking(key: str) -> openai.OpenAI:
            return openai.OpenAI(base_url=f"{service.url}/v1", api_key=key, max_retries=0)

        with asking("none") as nobody, pytest.raises(openai.AuthenticationError, match="key"):
            nobody.completions.create(**asks)
        with asking(acme) as client:
            whole = cast(Any, client.completions.create(**asks))
            streamed = list(client.completions.create(**asks, n=2, stream=True))
            client.embeddings.create(model="htfi-encoder", input="oil rises")
        num = whole.usage.total_tokens + whole.usage.prompt_tokens + 2 * 12
        assert sum(len(one.choices[0].text) > 0 for one in streamed) > 2
        tokens, cpu_us = used(service, acme)
        assert num < tokens < num + 8  # and those of the embedding
        assert cpu_us > 0
        with asking(spent) as client:
            client.completions.create(**(asks | {"max_tokens": 30}))
            with pytest.raises(openai.RateLimitError, match="the 20 tokens") as raised:
                client.completions.create(**asks)
        body: Any = raised.value.body
        assert body["type"] == "rate_limit_error"
        assert int(raised.value.response.headers["retry-after"]) > 0


def used(service: ServiceProcess, key: str) -> tuple[int, int]:
    """Tokens, and 10⁻⁶ s of processor time, of a key's tenant."""
    rows = service.client.get("/v1/usage", headers=bearer(key)).json()["items"]
    return sum(row["tokens"] for row in rows), sum(row["cpu_us"] for row in rows)
