"""`htfi.read` and `htfi.load_pair` on the shipped models."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import htfi
from htfi.apps.cli.news.command import command
from htfi.domain.generation import Completion, ControlToken, PlainText
from htfi.library.writers import GenerationStream, _end_of_text


def test_a_headline_is_read_for_each_asset_as_the_command_reads_it():
    text = "Amgen to buy Horizon for $27.8 bln"
    reading = htfi.read(text, on=["HZNP", "AMGN"], names=["Horizon", "Amgen"], views=False)
    said = CliRunner().invoke(
        command,
        [text, "--on", "HZNP", "--on", "AMGN", "--name", "Horizon", "--name", "Amgen", "--json", "-"],
    )
    lines = [json.loads(line) for line in said.output.splitlines()]
    assert list(reading.words) == [line["words"] for line in lines]
    assert reading.table.column("direction").to_pylist()[0] == 1
    assert reading.facts.event == "acquisition"


def test_a_text_without_words_is_refused():
    with pytest.raises(htfi.HtfiError, match="no text to read"):
        htfi.read("  ")


def test_many_texts_are_each_read_as_alone_and_progress_is_shown(monkeypatch):
    texts = [
        "Amgen to buy Horizon for $27.8 bln",
        "Horizon cuts its full-year outlook",
        "Fed leaves rates unchanged",
    ]
    shares = []

    @contextmanager
    def bar(title, *, is_shown):
        assert (title, is_shown) == ("read", True)
        yield shares.append

    monkeypatch.setattr("htfi.library.read.progress_bar", bar)
    readings = htfi.read(pd.Series(texts), on=["HZNP", "AMGN"], names=["Horizon", "Amgen"], progress=True)
    monkeypatch.undo()
    assert shares == [1 / 3, 2 / 3, 1.0]
    for text, reading in zip(texts, readings, strict=True):
        alone = htfi.read(text, on=["HZNP", "AMGN"], names=["Horizon", "Amgen"])
        assert (reading.words, reading.views) == (alone.words, alone.views)
    assert readings[0].views["target"][0].direction > 0


@pytest.mark.parametrize("texts", [["Shares rose", " "], ["Shares rose", float("nan")]])
def test_of_many_texts_the_one_without_words_is_named(texts):
    with pytest.raises(htfi.HtfiError, match="no text to read at place 2"):
        htfi.read(texts)


def test_a_body_is_of_one_headline():
    with pytest.raises(htfi.HtfiError, match="`body` is the text below one headline"):
        htfi.read(["Shares rose", "Shares fell"], body="The company said.")


def test_a_pair_writes_what_its_target_writes_alone_in_fewer_passes():
    writer = htfi.load_pair()
    prompt = "Shares of Acme fell after the company said"
    answers = [writer.generate(prompt, seed=7, temperature=1.0, max_new_tokens=24) for _ in range(2)]
    assert answers[0].tokens == answers[1].tokens
    assert answers[0].tokens_per_pass > 1.0
    other = writer.generate(prompt, seed=8, temperature=1.0, max_new_tokens=24)
    assert other.tokens != answers[0].tokens
    with pytest.raises(htfi.HtfiError, match="max_new_tokens"):
        writer.generate(prompt, max_new_tokens=0)


def test_a_text_is_a_headline_under_way_and_holds_what_headlines_hold():
    writer = htfi.load_pair()
    texts = [writer.generate("Shares of Acme fell", seed=seed, temperature=0.7).text for seed in range(6)]
    assert any(character.isdigit() for text in texts for character in text)
    words = [word.strip(".,:;%()'-") for text in texts for word in text.split()]
    assert (
        np.mean([word in {"the", "of", "in", "on", "to", "for", "and", "a", "after"} for word in words]) > 0.1
    )
    assert repr(writer).startswith("writer of mini-target-int8")


def test_no_more_tokens_are_counted_than_were_asked_for():
    writer = htfi.load_pair()
    lengths = [
        len(writer.generate("The Fed said", seed=seed, temperature=1.0, max_new_tokens=5).tokens)
        for seed in range(8)
    ]
    assert max(lengths) == 5


def test_threads_that_share_a_writer_write_what_each_writes_alone():
    writer = htfi.load_pair()

    def written(seed):
        return writer.generate(
            "Shares of Acme fell after", seed=seed, temperature=1.0, max_new_tokens=24
        ).text

    def streamed(seed):
        return "".join(
            writer.generate(
                "Shares of Acme fell after", seed=seed, temperature=1.0, max_new_tokens=24, stream=True
            )
        )

    alone = [written(seed) for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(written, range(6))) == alone
        assert list(pool.map(streamed, range(6))) == alone


@pytest.mark.parametrize(
    ("files", "names", "end"),
    [
        ({"config.json": {"eos_token_id": 7}}, {"</s>": 7, "<|endoftext|>": 9}, ControlToken("/s")),
        ({"generation_config.json": {"eos_token_id": [8, 9]}}, {"<|eot_id|>": 9}, ControlToken("|eot_id|")),
        ({}, {"<|endoftext|>": 3}, ControlToken("|endoftext|")),
        ({"config.json": {}}, {"<pad>": 0}, PlainText("\n")),
    ],
    ids=["stated", "several stated", "by its name", "none"],
)
def test_a_text_of_any_folder_ends_where_its_model_ends_it(files, names, end, tmp_path):
    for name, held in files.items():
        (tmp_path / name).write_text(json.dumps(held))
    assert _end_of_text(tmp_path, SimpleNamespace(tokenizer=SimpleNamespace(special=names.get))) == end


def test_half_a_character_is_handed_out_when_the_rest_has_come():
    def growing_text():
        yield {"text": " caf\ufffd"}
        yield {"text": " café"}
        return Completion({"text": " café!"}, (1, 2, 3, 4))

    stream = GenerationStream(growing_text(), 3, Lock())
    assert list(stream) == [" caf", "é", "!"]
    assert stream.generation.tokens == (1, 2, 3)


def test_a_stream_hands_out_the_same_text_in_pieces():
    writer = htfi.load_pair()
    asked = {"prompt": "Shares of Acme fell after", "max_new_tokens": 24, "temperature": 0.9, "top_p": 0.95}
    whole = writer.generate(**asked, seed=3)
    stream = writer.generate(**asked, seed=3, stream=True)
    with pytest.raises(htfi.HtfiError, match="not complete"):
        _ = stream.generation
    pieces = list(stream)
    assert len(pieces) > 2
    assert "".join(pieces) == whole.text
    assert stream.generation == whole


def test_two_streams_and_a_text_between_them_are_each_as_alone():
    writer = htfi.load_pair()
    prompts = ["Shares of Acme fell after", "The central bank raised"]
    alone = [writer.generate(prompt, seed=1, temperature=1.0, max_new_tokens=20) for prompt in prompts]
    streams = [
        writer.generate(prompt, seed=1, temperature=1.0, max_new_tokens=20, stream=True) for prompt in prompts
    ]
    begun = [next(stream) for stream in streams]
    between = writer.generate(prompts[0], seed=1, temperature=1.0, max_new_tokens=20)
    rest = ["".join(stream) for stream in streams]
    assert [first + after for first, after in zip(begun, rest, strict=True)] == [one.text for one in alone]
    assert between.tokens == alone[0].tokens
    assert [stream.generation.tokens for stream in streams] == [one.tokens for one in alone]


def test_a_stream_that_is_given_up_frees_its_memory():
    writer = htfi.load_pair()
    asked = {"prompt": "Shares of Acme", "temperature": 1.0, "max_new_tokens": 900}
    held = [writer.generate(**asked, stream=True)]
    first = next(held[0])
    with pytest.raises(htfi.HtfiError, match="hold the memory"):  # noqa: PT012 - one of them is too many
        while len(held) < 2_000:
            held.append(writer.generate(**asked, stream=True))
            next(held[-1])
    for stream in held:
        stream.close()
    assert list(held[0]) == []
    assert next(writer.generate(**asked, stream=True)) == first


@pytest.mark.parametrize("wrong", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_k": -1}])
def test_a_sampling_argument_out_of_bounds_is_refused_before_anything_is_written(wrong):
    with pytest.raises(htfi.HtfiError, match=next(iter(wrong))) as refused:
        htfi.load_pair().generate("Shares", stream=True, **wrong)
    assert "nothing was written" not in str(refused.value)
