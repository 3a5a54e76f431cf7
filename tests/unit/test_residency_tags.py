"""Tags of where news may lie: from a mapping or a column into the question; without any, all is as it was."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News, QuarantinedRow
from htfi.narrative.question import MAX_ITEMS, Question, question_id
from htfi.narrative.readers import ModelReader
from htfi.narrative.recent_news import RecentNews
from htfi.pipeline.components import InputChain
from htfi.pipeline.intake.columns import require_layout
from htfi.pipeline.intake.mapping import load_mapping
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec
from htfi.wiring.feeds import describe
from late_network import LateAuthor

ROW = {"ts": "2020-01-01T00:00:00Z", "headline": "Fed cuts"}


def parsed(spec: SourceSpec, **cells: object) -> News | QuarantinedRow:
    found = RowParser(spec, "").parse({**ROW, **cells}, 1)
    assert isinstance(found, News | QuarantinedRow)
    return found


def tags(spec: SourceSpec, **cells: object) -> tuple[str, ...]:
    found = parsed(spec, **cells)
    assert isinstance(found, News)
    return found.residency


def test_a_sources_tags_and_a_rows_own_join() -> None:
    assert tags(SourceSpec("wire")) == ()
    assert tags(SourceSpec("wire", residency=("eu",))) == ("eu",)
    assert tags(SourceSpec("wire"), residency="eu, desk-7") == ("eu", "desk-7")
    assert tags(SourceSpec("wire"), data_residency=["eu", "eu"]) == ("eu",)
    assert tags(SourceSpec("wire", columns={"residency": "where"}, residency=("eu",)), where="ch") == (
        "eu",
        "ch",
    )
    assert tags(SourceSpec("wire"), residency=None) == tags(SourceSpec("wire"), residency="") == ()


@pytest.mark.parametrize("value", [7, {"eu": 1}, ["eu", 3], ["e u"], "x" * 33, ["e\nu"], [[]], "\u202e"])
def test_a_row_whose_tags_cannot_be_read_is_refused(value: object) -> None:
    found = parsed(SourceSpec("wire", residency=("eu",)), residency=value)
    assert isinstance(found, QuarantinedRow)
    assert found.reason == "bad_tag"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('residency = "eu"', 'residency must be a list of texts, such as \\["eu"\\]'),
        ("residency = [1]", "residency must be a list of texts"),
        ('residency = ["e u"]', "residency 'e u': a tag has 1 to 32 printable"),
        ('residency = [""]', "a tag has 1 to 32"),
        ('residency = ["eu"]\nkind = "bar"', "residency is for news, not for kind 'bar'"),
    ],
)
def test_a_mapping_with_tags_that_cannot_be_is_one_line(tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text(f'[[source]]\nname = "wire"\nurl = "ws://h:1"\n{line}\n')
    with pytest.raises(InvalidInput, match=told) as raised:
        load_mapping(file)
    assert "\n" not in str(raised.value)


def test_a_file_of_prices_takes_no_tags() -> None:
    spec = SourceSpec("prices", residency=("eu",))
    with pytest.raises(InvalidInput, match="residency is for news, these are bars"):
        require_layout(["ts", "close"], spec, "prices.csv", [])


def test_a_mixed_stream_tags_its_news_alone() -> None:
    parser = RowParser(SourceSpec("mixed", residency=("eu",)), "")
    news = parser.parse({"kind": "news", **ROW}, 1)
    trade = parser.parse({"kind": "trade", "ts": ROW["ts"], "symbol": "A", "price": 1.0}, 2)
    assert isinstance(news, News)
    assert news.residency == ("eu",)
    assert trade is not None
    assert not isinstance(trade, QuarantinedRow)


def test_a_source_without_tags_is_described_as_ever_and_one_with_them_is_another(tmp_path: Path) -> None:
    (plain,), (tagged,) = (
        describe([SourceSpec("wire", url="ws://h:1", residency=residency)]) for residency in ((), ("eu",))
    )
    assert "residency" not in plain.settings
    assert tagged.settings["residency"] == ("eu",)


def item(place: int, *residency: str) -> News:
    return News(place, place, "wire", place, f"n{place}", f"Item {place}", ("A",), "body", "", residency)


def test_the_digest_of_untagged_news_is_what_it_was_before_there_were_tags() -> None:
    class Before(msgspec.Struct, frozen=True, tag="news"):
        available_at_ns: int
        event_time_ns: int
        source: str
        row: int
        id: str
        headline: str
        symbols: tuple[str, ...] = ()
        body: str = ""
        url: str = ""

    chain, tagged = InputChain(), InputChain()
    chain.add(item(3))
    tagged.add(item(3, "eu"))
    told = msgspec.msgpack.encode(Before(3, 3, "wire", 3, "n3", "Item 3", ("A",), "body"))
    opening = hashlib.sha256(b"htfi/inputs/v1").digest()
    digest = chain.close().digest
    assert digest == hashlib.sha256(opening + told).hexdigest()
    assert digest != tagged.close().digest


def test_a_request_carries_the_tags_of_all_that_it_shows_and_of_nothing_else() -> None:
    author = LateAuthor(0, late_share=0.0)
    wire = RecentNews()
    hidden = [item(place, "hidden") for place in range(1, 4)]
    shown = [
        item(place, *(("eu",) if place == 5 else ("ch", "eu") if place == 7 else ()))
        for place in range(4, 10)
    ]
    assert len(shown) == MAX_ITEMS
    for one in (*hidden, *shown):
        wire.add(one)
    again = RecentNews()
    again.restore(json.loads(json.dumps(wire.state())))
    question = Question("A", 10, 10, tuple(again.recent("A", 10)))
    ModelReader(author).read([question], 50.0)
    (request,) = author.written
    assert request.residency == {"eu", "ch"}
    assert request.id == question_id(question)


def test_the_same_question_has_the_same_name_and_another_moment_or_series_another() -> None:
    question = Question("A", 10, 10, (item(3),), (0.5,))
    other = [
        Question("B", 10, 10, (item(3),), (0.5,)),
        Question("A", 11, 10, (item(3),), (0.5,)),
        Question("A", 10, 60, (item(3),), (0.5,)),
        Question("A", 10, 10, (item(4),), (0.5,)),
        Question("A", 10, 10, (item(3),), (0.25,)),
    ]
    same = Question("A", 10, 10, (msgspec.structs.replace(item(3), body="", residency=("eu",)),), (0.5,))
    assert question_id(same) == question_id(question)
    assert len({question_id(one) for one in (question, *other)}) == 6
