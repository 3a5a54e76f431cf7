"""`htfi.read` and `htfi.load_pair` on the shipped models."""

import json
from contextlib import contextmanager

import pandas as pd
import pytest
from click.testing import CliRunner

import htfi
from htfi.apps.cli.news.command import command


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
