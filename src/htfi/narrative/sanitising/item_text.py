"""The text of a news item as it may be read and shown: without hidden text and disguises, on one line, cut to size."""

import msgspec
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import ScreeningFinding
from htfi.narrative.facts.passages.selection import select_passages
from htfi.narrative.facts.passages.tables import table_rows_as_sentences
from htfi.narrative.sanitising.config import MAX_BODY_CHARS, MAX_HEADLINE_CHARS, MAX_LONG_BODY_CHARS
from htfi.narrative.sanitising.deobfuscation import deobfuscate
from htfi.narrative.sanitising.manipulation import find_manipulation
from htfi.narrative.text import cut, one_line

MAX_ID_CHARS = 128
_MAX_URL_CHARS = 2_048


class UndisguisedText(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item's headline and body without hidden text and disguises, and what was found on the way."""

    headline: str
    body: str
    findings: tuple[ScreeningFinding, ...]


def undisguise(item: News, *, is_official: bool) -> UndisguisedText:
    """The item's text without hidden text and disguises, and the findings on them; of the item alone. Of a long body
    the passages count that matter for the headline, unless it `is_official`.
    """
    headline = deobfuscate(item.headline, MAX_HEADLINE_CHARS)
    findings = [*headline.findings, *find_manipulation(item.headline, headline)]
    body = item.body
    if body:
        undone = deobfuscate(table_rows_as_sentences(body), MAX_LONG_BODY_CHARS)
        if len(undone.text) > MAX_BODY_CHARS and not is_official:
            passages = select_passages(undone.text, headline.text, budget_chars=MAX_BODY_CHARS)
            undone = replace(undone, text=one_line(passages.text))
        findings += undone.findings
        findings += find_manipulation(body, undone)
        body = undone.text
    return UndisguisedText(headline.text, body, tuple(findings))


def displayable(item: News) -> News:
    """The item as it may be shown: its names too are text from outside."""
    if item.publisher or item.url:
        return replace(
            item,
            publisher=clean_field(item.publisher, MAX_ID_CHARS),
            url=clean_field(item.url, _MAX_URL_CHARS),
        )
    return item


def clean_field(text: str, max_chars: int) -> str:
    """A short field of an item on one line, cut to size."""
    if len(text) <= max_chars and text.isascii() and text.isprintable() and " " not in text:
        return text
    return cut(one_line(text[: 4 * max_chars]), max_chars)
