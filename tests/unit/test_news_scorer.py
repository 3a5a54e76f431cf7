"""The scorer: linking alone where there is no encoder, the same bits however items come, state that goes on."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

import numpy as np

from checks import nonempty
from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.answer import CAUSES
from htfi.narrative.encoding.heads import Head, Heads
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.scorer import NewsScorer, scored_text
from htfi.narrative.encoding.text_reading import EncoderTextReader
from htfi.narrative.ports import TextEmbeddings

SIZE = 16
LABELS = {
    "sentiment": ("positive", "negative", "neutral"),
    "stance": ("hawkish", "dovish", "neutral"),
    "event": CAUSES,
    "relevance": ("relevant", "irrelevant"),
}


class Letters:
    """An encoder whose points come from the digest of a text."""

    version, size = "letters@1", SIZE

    def read_parts(self, texts: Sequence[str]) -> Iterator[TextEmbeddings]:
        yield self.read(texts)

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        points = np.zeros((len(texts), SIZE), np.float32)
        for row, text in enumerate(texts):
            drawn = np.frombuffer(sha256(text.encode("utf-8", "replace")).digest()[:SIZE], np.uint8)
            points[row] = drawn / np.float32(256) - 0.5
        points /= np.sqrt((points * points).sum(axis=1, keepdims=True))
        return TextEmbeddings(points, [np.repeat(point[None], 3, axis=0) for point in points])

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return self.read(texts).points


def heads() -> Heads:
    dice = np.random.Generator(np.random.PCG64(5))

    def drawn(*shape: int) -> np.ndarray:
        return dice.standard_normal(shape).astype(np.float32)

    made = {
        name: Head(name, labels, drawn(SIZE + 8, len(labels)), drawn(len(labels)), drawn(SIZE, 4), drawn(4))
        for name, labels in LABELS.items()
    }
    return Heads(made, "letters@1", {}, "d" * 64)


def item(at: int, headline: str, body: str = "", num_alike: int = 1) -> ScreenedItem:
    news = News(at * 10**9, 0, "wire", at, f"n{at}", headline, ("SPX",), body)
    return ScreenedItem(news, Screening.PASS, 1.0, num_alike=num_alike)


def scorer() -> NewsScorer:
    return NewsScorer(EncoderTextReader(Letters(), heads()), heads(), EntityLinker({}))


ITEMS = [item(at, f"Boeing tells of {word} orders today", "$AAPL too") for at, word in enumerate("abcabdea")]


def test_without_an_encoder_items_are_linked_and_the_scores_say_that_nobody_judged() -> None:
    plain = NewsScorer(None, None, EntityLinker({}))
    first, again = plain.score([item(0, "Boeing wins"), item(1, "Boeing wins", num_alike=4)])
    assert plain.version == first.encoder == ""
    assert (first.symbols, first.sentiment, first.stance, first.relevance) == (("BA",), 0.0, 0.0, 0.5)
    assert (first.event, first.event_confidence, first.novelty, again.novelty) == ("none", 0.0, 1.0, 0.25)


def test_scores_are_in_their_ranges_and_in_thousandths() -> None:
    for scores in nonempty(scorer().score(ITEMS)):
        numbers = (scores.sentiment, scores.stance, scores.event_confidence, scores.relevance, scores.novelty)
        assert all(round(number, 3) == number and -1 <= number <= 1 for number in numbers)
        assert scores.event in CAUSES
        assert scores.symbols == ("BA", "AAPL")
        assert scores.encoder == "letters@1+heads@" + "d" * 12


def test_how_items_come_in_batches_changes_no_score() -> None:
    whole, one_by_one, cut = scorer(), scorer(), scorer()
    at_once = whole.score(ITEMS)
    assert [one_by_one.score([one])[0] for one in ITEMS] == at_once
    assert cut.score(ITEMS[:3]) + cut.score([]) + cut.score(ITEMS[3:]) == at_once
    assert at_once[3].novelty == 0.0


def test_the_state_goes_on_and_that_of_another_encoder_is_forgotten() -> None:
    first, again = scorer(), scorer()
    first.score(ITEMS[:4])
    again.restore(first.state())
    assert again.score(ITEMS[4:]) == first.score(ITEMS[4:])
    other = scorer()
    other.restore(first.state() | {"encoder": "another"})
    assert other.score(ITEMS[:1])[0].novelty == 1.0


def test_a_headline_stands_for_its_item_and_a_short_one_takes_the_body_along() -> None:
    assert scored_text(item(0, "Profit of the firm rises", "A long lead.")) == "Profit of the firm rises"
    assert scored_text(item(0, "UPDATE 1", "A long lead.")) == "UPDATE 1\nA long lead."
    assert scored_text(item(0, "UPDATE 1")) == "UPDATE 1"
