"""The sanitiser on years of a wire's headlines: few false alarms, rewrites found again and taken for no attack."""

import itertools
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.sanitising.sanitiser import Sanitiser

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("HTFI_TEST_DATA", ROOT.parent / "shared" / "data"))
REUTERS = DATA / "text_price" / "reuters_news_2006_2013.parquet"

pytestmark = pytest.mark.skipif(
    not REUTERS.is_file(), reason="the headlines are not at hand; see HTFI_TEST_DATA"
)


@cache
def headlines(num: int) -> list[tuple[str, News]]:
    """The first so many items with their slugs, as they came."""
    import pyarrow.parquet as pq

    table = pq.read_table(REUTERS).slice(0, num)
    told = zip(
        *(table[name].to_pylist() for name in ("published_at", "headline", "lead", "symbols", "slug")),
        strict=True,
    )
    items: list[tuple[str, News]] = []
    for row, (at, headline, lead, symbols, slug) in enumerate(told, 1):
        at_ns = int(at.timestamp()) * 10**9
        item = News(
            at_ns, at_ns, "reuters", row, f"r{row}", headline, tuple((symbols or "").split()), lead or ""
        )
        items.append((slug, item))
    return items


def screened(num: int, source: str) -> list[ScreenedItem]:
    from msgspec.structs import replace

    sanitiser = Sanitiser()
    return [sanitiser.screen(replace(item, source=source)) for _, item in headlines(num)]


@pytest.mark.parametrize("source", ["reuters", "feed"])
@pytest.mark.parametrize("num", [3_000, pytest.param(101_051, marks=pytest.mark.slow)])
def test_false_alarms_on_a_wires_headlines_are_below_one_in_a_hundred(source: str, num: int):
    verdicts = Counter(one.verdict for one in screened(num, source))
    assert (num - verdicts[Screening.PASS]) / num <= 0.01


def test_item_checks_alone_raise_no_alarm_on_a_wire():
    own = {"burst", "repetition", "contradicted", "impersonation", "instant"}
    found = Counter(
        finding.rule for one in screened(3_000, "feed") for finding in one.findings if finding.strength >= 0.5
    )
    assert sum(found[rule] for rule in own) <= 3


def test_rewrites_are_found_again_and_other_stories_are_not_taken_for_them():
    """Of pairs that are taken for one story, nine in ten share the subject that the slug names."""
    num = 3_000
    slugs = {item.id: slug for slug, item in headlines(num)}
    words = {item.id: _shingles(item) for _, item in headlines(num)}
    again = [(one.cluster, one.item.id) for one in screened(num, "reuters") if one.cluster != one.item.id]
    alike = sum(_jaccard(words[first], words[second]) >= 0.4 for first, second in again)
    subject = sum(_subject(slugs[first]) == _subject(slugs[second]) for first, second in again)
    assert len(again) > 50
    assert alike / len(again) > 0.95
    assert subject / len(again) > 0.85


def _subject(slug: str) -> str:
    return re.sub(r"^(?:us|uk|businesspro)-", "", slug).split("-")[0]


def _shingles(item: News) -> set[str]:
    words = re.findall(r"\w+", f"{item.headline} {item.body}".lower())
    return {*words, *map(" ".join, itertools.pairwise(words))}


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)
