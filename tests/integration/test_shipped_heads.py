"""The shipped heads: plain sentences are told right, corpora repeat no labelled row, other bytes are refused."""

import os
from pathlib import Path

import numpy as np
import pytest

from checks import nonempty
from htfi import models
from htfi.domain.events import News
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.heads import Heads
from htfi.wiring.encoder import open_encoder, open_heads
from htfi.wiring.news import build_news_processor
from htfi.wiring.settings import Settings
from htfi_train.simulation.head_training import SEED, make_heads, read_corpora
from htfi_train.simulation.labelled_lines import draw_lines

CORPORA = Path(__file__).parents[2] / "corpora"
DATA = Path(os.environ.get("HTFI_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))

PLAIN = {
    "positive": (
        "Wrenford Foods lifts its profit forecast after a strong summer",
        "Regulator approves Talvik's heart drug, shares jump 9%",
        "The loss was smaller than in the year before",
        "$ZZQ breaking out, bought more at the open",
    ),
    "negative": (
        "Wrenford Foods cuts its profit forecast after a weak summer",
        "Talvik's heart drug fails in trial, shares plunge 30%",
        "The loss was larger than in the year before",
        "$ZZQ breaking down, sold all of it",
    ),
    "neutral": (
        "Wrenford Foods appoints a new head of human resources",
        "The annual general meeting will be held in Oslo on 4 May",
        "The library in Leeds will be closed on Sunday",
    ),
}
POLICY = {
    "hawkish": (
        "Inflation is far too high and rates must rise further",
        "The Committee raised rates by 50 basis points",
    ),
    "dovish": (
        "Unemployment is rising and more easing will be needed",
        "The Committee cut rates by 50 basis points",
    ),
    "neutral": ("Today I will speak about the history of the Reserve Banks",),
}


@pytest.mark.parametrize(("head", "sentences"), [("sentiment", PLAIN), ("stance", POLICY)])
def test_plain_sentences_are_told_right(head: str, sentences: dict[str, tuple[str, ...]]) -> None:
    encoder = open_encoder(EncodingConfig())
    if encoder is None:
        pytest.skip("the encoder is not installed")
    texts = [text for some in sentences.values() for text in some]
    wanted = [label for label, some in sentences.items() for _ in some]
    heads = open_heads()
    points, states = encoder.read(texts)
    told = [
        heads.heads[head].labels[place] for place in heads.score(points, states, texts)[head].argmax(axis=1)
    ]
    assert told == wanted


def test_shipped_heads_are_small_and_held_to_their_digest() -> None:
    heads = Heads.load(models.HEADS, models.DIGESTS[models.HEADS])
    assert {"sentiment", "stance"} <= set(heads.heads)
    assert sum(file.stat().st_size for file in models.HEADS.iterdir()) < 2_000_000
    assert all(np.isfinite(head.weights).all() for head in heads.heads.values())


def test_heads_are_read_once_for_scores_and_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    load, folders = Heads.load, list[Path]()

    def counted(folder: Path, digest: str = "") -> Heads:
        folders.append(folder)
        return load(folder, digest)

    monkeypatch.setattr(Heads, "load", counted)
    news = build_news_processor(Settings())
    news.receive(News(1, 1, "news", 1, "n1", "Fed cuts rates by 25 basis points"))
    note = news.records(["n1"])["n1"]
    assert note.scores is not None
    assert note.facts is not None
    assert folders == [models.HEADS]


def test_heads_were_made_of_the_corpora_as_they_are() -> None:
    heads = open_heads()
    for corpus in nonempty(read_corpora(CORPORA)):
        assert heads.card[f"{corpus.head}_corpus"] == corpus.digest, "run `htfi models heads` anew"


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "sentiment").is_dir(), reason="the labelled sets are not here")
def test_corpora_repeat_no_row_of_the_labelled_sets() -> None:
    from htfi_eval.eval.sentiment.sets import load_sets, near_duplicates

    rows = [text for one in load_sets(DATA)[0] for text in one.texts]
    for corpus in nonempty(read_corpora(CORPORA)):
        lines = draw_lines(corpus.templates, corpus.slots, corpus.per_template, SEED)
        assert near_duplicates([line.text for line in lines], rows) == []


def test_a_near_copy_would_be_found() -> None:
    from htfi_eval.eval.sentiment.sets import near_duplicates

    row = "Operating profit of the whole group rose clearly to EUR 13.1 mn from EUR 8.7 mn in the year before"
    assert near_duplicates(
        [row.replace("13.1", "14.2"), row.upper(), "Nothing of the kind was said here at all today"], [row]
    )
    assert not near_duplicates(["Net sales fell"], [row])


def test_heads_made_twice_are_the_same_bytes(tmp_path: Path) -> None:
    encoder = open_encoder(EncodingConfig())
    if encoder is None:
        pytest.skip("the encoder is not installed")
    (tmp_path / "slots.txt").write_text("co: Alder | Birch | Cedar | Dogwood\n")
    rules = "".join(
        f"gb | {{co}} <gains//drops> {{n:2-90}} {unit}\n" for unit in ("points", "pence", "cents", "kroner")
    )
    more = "".join(
        f"gb | {{co}} <wins//loses> {{n:2-90}} {unit}\n" for unit in ("orders", "clients", "cases", "bids")
    )
    (tmp_path / "mood.txt").write_text("#! mood: g = good, b = bad; slots.txt; 6 lines\n" + rules + more)
    corpora = read_corpora(tmp_path)
    digests = {make_heads(corpora, encoder, tmp_path / name, lambda _: None)[0] for name in ("one", "two")}
    assert len(digests) == 1
    assert (tmp_path / "one" / "heads.bin").read_bytes() == (tmp_path / "two" / "heads.bin").read_bytes()
