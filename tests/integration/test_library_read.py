"""`htfi.read` and `htfi.load_pair` on the shipped models."""

import json

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
