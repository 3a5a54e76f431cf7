"""Lists of press releases and the statements behind them, out of HTML by lexbor. The parser of pages calls it.

A statement's text is its main part without navigation; what its page hides from readers is cut out and reported.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from htfi.adapters.feeds.web.encoding import decode_html
from htfi.adapters.feeds.web.entries import MAX_ENTRIES, one_line
from htfi.adapters.feeds.web.page_limits import limit_html
from htfi.adapters.feeds.web.page_rules import GENERIC, PageRules, read_clock, read_day
from htfi.domain.errors import InvalidInput

_HIDDEN = "[hidden], [style]"
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])"
    r"|(?:left|top|text-indent|margin-left)\s*:\s*-\d{3,}",
    re.I,
)
_BLOCKS = "p, div, section, article, br, li, ul, ol, h1, h2, h3, h4, h5, h6, tr, td, th, table, blockquote, dt, dd, pre"
_MIN_TITLE_CHARS = 12
_MAX_LINKS_PER_ITEM = 4
_MAX_ANCESTORS = 4
_MAX_ITEM_CHARS = 400


@dataclass(slots=True)
class ListedRelease:
    """One line of a list; `link` as it stands in the page."""

    link: str
    title: str
    published: str = ""


@dataclass(slots=True)
class Statement:
    """What a page says: `hidden` are parts that a reader does not see, cut out of the text."""

    heading: str
    published: str
    text: str
    publisher: str
    hidden: list[str] = field(default_factory=list[str])


def read_list(
    body: bytes, charset: str, candidates: Sequence[PageRules]
) -> tuple[list[ListedRelease], PageRules]:
    """The lines of a list, as they stand, by the rules that find most; none where none finds any.

    Raises: InvalidInput, for selectors that are none.
    """
    page = LexborHTMLParser(limit_html(decode_html(body, charset)))
    known = [(_listed_by_rules(page, rules), rules) for rules in candidates if rules.item]
    best = max(known, key=lambda found: len(found[0]), default=(list[ListedRelease](), GENERIC))
    if best[0]:
        return best
    guess = next((rules for rules in candidates if not rules.item), None)
    return (_listed_by_dates(page, guess), guess) if guess is not None else best


def read_statement(body: bytes, charset: str, rules: PageRules) -> Statement:
    """Raises: InvalidInput, for selectors that are none."""
    page = LexborHTMLParser(limit_html(decode_html(body, charset)))
    publisher = _meta(page, "og:site_name") or rules.publisher
    heading = _first_text(page, rules.heading) or _meta(page, "og:title") or _first_text(page, "title")
    published = _published(page, rules)
    hidden = _remove_hidden(page)
    _remove_boilerplate(page, rules)
    text = _main_text(page, rules)
    return Statement(one_line(heading)[:_MAX_ITEM_CHARS], published, text, one_line(publisher)[:200], hidden)


def check_selectors(rules: PageRules) -> None:
    """Raises: InvalidInput, for a selector that cannot be read."""
    empty = LexborHTMLParser("<p></p>")
    for selector in (
        rules.item,
        rules.link,
        rules.title,
        rules.date,
        rules.heading,
        rules.dated,
        rules.text,
        rules.drop,
    ):
        if selector:
            _select(empty, selector)


def _listed_by_rules(page: LexborHTMLParser, rules: PageRules) -> list[ListedRelease]:
    found: list[ListedRelease] = []
    for item in _outermost(_select(page, rules.item))[:MAX_ENTRIES]:
        anchor = item if item.tag == "a" else _select_first(item, rules.link)
        link = (anchor.attributes.get("href") or "") if anchor is not None else ""
        title = _first_text(item, rules.title) or (_text(anchor) if anchor is not None else "")
        if link and title:
            found.append(ListedRelease(link, title[:_MAX_ITEM_CHARS], _item_date(item, rules)))
    return _without_repeats(found)


def _listed_by_dates(page: LexborHTMLParser, rules: PageRules) -> list[ListedRelease]:
    """Links with a title's length and a date beside them, outside of navigation."""
    _remove_boilerplate(page, rules)
    found: list[ListedRelease] = []
    judged: dict[int, tuple[int, str]] = {}  # of what stands around links: how many it holds, and its date
    for anchor in _select(page, rules.link)[:MAX_ENTRIES]:
        title, link = _text(anchor), anchor.attributes.get("href") or ""
        if len(title) < _MIN_TITLE_CHARS or link.startswith(("#", "mailto:", "javascript:", "tel:")):
            continue
        around: LexborNode | None = anchor
        for _ in range(_MAX_ANCESTORS):
            if around is None or around.tag in ("body", "html", "main"):
                break
            if around.mem_id not in judged:
                num_links = len(around.css("a[href]"))
                few = num_links <= _MAX_LINKS_PER_ITEM
                judged[around.mem_id] = num_links, _item_date(around, rules) if few else ""
            num_links, published = judged[around.mem_id]
            if num_links > _MAX_LINKS_PER_ITEM:
                break
            if published:
                found.append(ListedRelease(link, title[:_MAX_ITEM_CHARS], published))
                break
            around = around.parent
    return _without_repeats(found)


def _item_date(item: LexborNode, rules: PageRules) -> str:
    """In the item, else in what stands before it, as in a list of terms."""
    for node in _select(item, rules.date):
        if published := _date_of(node, rules):
            return published
    before = item.prev
    for _ in range(6):
        if before is None:
            break
        if before.tag == "dt" and (published := _date_of(before, rules)):
            return published
        before = before.prev
    day = read_day(_text(item), month_first=rules.month_first) if not rules.item else None
    return day.isoformat() if day else ""


def _date_of(node: LexborNode, rules: PageRules) -> str:
    for name in ("datetime", "isodate", "content"):
        stated = (node.attributes.get(name) or "").strip()
        if stated and (instant := _instant(stated, rules)):
            return instant
        if stated and (day := read_day(stated, month_first=rules.month_first)):
            return day.isoformat()
    text = _text(node)
    day = read_day(text, month_first=rules.month_first)
    if day is None:
        return ""
    clock = read_clock(text, day, rules.zone)
    return clock.isoformat() if clock else day.isoformat()


def _published(page: LexborHTMLParser, rules: PageRules) -> str:
    """The statement's own time: its meta data where they hold an instant, else the first date that stands on it."""
    stated = _meta(page, "article:published_time")
    if instant := _instant(stated, rules):
        return instant
    found = [published for node in _select(page, rules.dated)[:16] if (published := _date_of(node, rules))]
    best = next((published for published in found if "T" in published), found[0] if found else "")
    if not best and (day := read_day(stated, month_first=rules.month_first)):
        best = day.isoformat()
    if best and "T" not in best:
        beside = " ".join(
            _text(node) for node in page.css(".releaseTime, [class*=release], [class*=embargo]")[:4]
        )
        clock = read_clock(beside, datetime.fromisoformat(best).date(), rules.zone)
        best = clock.isoformat() if clock else best
    return best


def _instant(text: str, rules: PageRules) -> str:
    """An ISO instant; one without zone is by the bank's clock."""
    if len(text) < 16 or text[10:11] not in ("T", " "):
        return ""
    try:
        found = datetime.fromisoformat(text[:40])
    except ValueError:
        return ""
    if found.tzinfo is None:
        if not rules.zone:
            return ""
        found = found.replace(tzinfo=ZoneInfo(rules.zone))
    return found.isoformat()


def _remove_hidden(page: LexborHTMLParser) -> list[str]:
    hidden: list[str] = []
    for node in _select(page, _HIDDEN):
        attributes = node.attributes
        if "hidden" in attributes or _HIDING_STYLE.search(attributes.get("style") or ""):
            if node.tag in ("html", "body", "main", "article"):
                continue
            if text := _text(node):
                hidden.append(text[:_MAX_ITEM_CHARS])
            node.decompose()
    return hidden[:16]


def _remove_boilerplate(page: LexborHTMLParser, rules: PageRules) -> None:
    """Take out what is not part of the text, by name; but never most of the page, whatever its name."""
    most = len(_text(page.body)) / 2 if page.body is not None else 0
    for node in _outermost(_select(page, rules.drop)):
        if node.tag not in ("html", "body", "main", "article") and len(_text(node)) <= most:
            node.decompose()


def _main_text(page: LexborHTMLParser, rules: PageRules) -> str:
    """Of the first selector that finds a text, all that it finds; else of the body."""
    for selector in (*_alternatives(rules.text), "body"):
        nodes = _outermost(_select(page, selector))
        text = "\n".join(part for node in nodes if (part := _paragraphs(node)))
        if text:
            return text
    return ""


def _alternatives(selectors: str) -> list[str]:
    """A list of selectors in the order of preference, cut at commas outside of brackets."""
    parts: list[str] = []
    depth, begin = 0, 0
    for place, mark in enumerate(selectors):
        depth += (mark in "([") - (mark in ")]")
        if mark == "," and depth == 0:
            parts.append(selectors[begin:place].strip())
            begin = place + 1
    return [part for part in (*parts, selectors[begin:].strip()) if part]


def _outermost(nodes: list[LexborNode]) -> list[LexborNode]:
    ids = {node.mem_id for node in nodes}
    found: list[LexborNode] = []
    for node in nodes:
        above = node.parent
        while above is not None and above.mem_id not in ids:
            above = above.parent
        if above is None:
            found.append(node)
    return found


def _paragraphs(node: LexborNode) -> str:
    for block in node.css(_BLOCKS):
        block.insert_before("\n")
        block.insert_after("\n")
    lines = (one_line(line) for line in node.text(deep=True, separator="", strip=False).split("\n"))
    return "\n".join(line for line in lines if line)


def _meta(page: LexborHTMLParser, name: str) -> str:
    node = page.css_first(f'meta[property="{name}"], meta[name="{name}"]')
    return (node.attributes.get("content") or "").strip()[:_MAX_ITEM_CHARS] if node is not None else ""


def _select(node: Any, selector: str) -> list[LexborNode]:
    try:
        return node.css(selector)
    except (SelectolaxError, ValueError) as error:
        raise InvalidInput(
            f"'{selector[:80]}' is not a CSS selector: correct it under [source.page]"
        ) from error


def _select_first(node: LexborNode, selector: str) -> LexborNode | None:
    """By the order of the alternatives, not of the page."""
    for alternative in _alternatives(selector):
        if found := _select(node, alternative):
            return found[0]
    return None


def _first_text(node: Any, selector: str) -> str:
    for alternative in _alternatives(selector):
        for found in _select(node, alternative):
            if text := _text(found):
                return text
    return ""


def _text(node: LexborNode) -> str:
    return one_line(node.text(deep=True, separator=" ", strip=False))


def _without_repeats(found: list[ListedRelease]) -> list[ListedRelease]:
    return list({listed.link: listed for listed in reversed(found)}.values())[::-1]
