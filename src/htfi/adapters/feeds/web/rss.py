"""RSS 0.9 to 2.0, RDF and Atom by one pass of expat, which loads nothing and expands no entity. The web pump calls it.

A document with entities of its own is refused: no feed needs one, and bombs are made of them. HTML inside a
description stays as it came: what is hidden in it is for the sanitiser to see.
"""

from html.entities import html5
from typing import Any
from xml.parsers import expat

from htfi.adapters.feeds.records import MAX_ROW_BYTES
from htfi.adapters.feeds.web.encoding import decode_xml, repair_xml
from htfi.adapters.feeds.web.entries import (
    MAX_ENTRIES,
    BadDocument,
    ParsedDocument,
    WebEntry,
    normalise_time,
    oldest_first,
    one_line,
)
from htfi.pipeline.intake.quarantine_reasons import MAX_DETAIL_CHARS, QuarantineReason

_ENTRIES = frozenset({"item", "entry"})
_ROOTS = frozenset({"rss", "RDF", "feed"})
_MAX_DEPTH = 100
_KEYS = ("guid", "id", "about")
_BODIES = ("encoded", "content", "description", "summary")  # the fullest first
_PUBLISHED = ("pubDate", "published", "issued", "date", "updated", "modified")
_SYMBOLS = frozenset({"tickers", "ticker", "symbols", "symbol"})
_KEPT = frozenset(
    {"title", "link", *_KEYS, *_BODIES, *_PUBLISHED, *_SYMBOLS, "source", "publisher", "category"}
)
_IGNORED_NAMESPACES = (
    "search.yahoo.com/mrss",
    "itunes.com/dtds",
)  # their titles are those of pictures and sounds
_BLOCKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "ul", "ol", "table"})


class _EnoughRead(Exception):
    """The parser has seen enough."""


def parse_feed(body: bytes, charset: str = "") -> ParsedDocument:
    """Entries of a feed, oldest first. Raises: BadDocument, where not one can be had."""
    text, decoded_as = decode_xml(body, charset)
    entries, trouble = _parse(text)
    if trouble:  # stray ampersands and characters that XML forbids are common, and harmless to mend
        more, trouble_left = _parse(repair_xml(text))
        if len(more) > len(entries) or not trouble_left:
            entries, trouble = more, trouble_left
    if trouble and not entries:
        raise BadDocument(trouble + (f" (read as {decoded_as})" if decoded_as != "utf-8" else ""))
    return ParsedDocument(oldest_first(entries), trouble)


def _parse(text: str) -> tuple[list[WebEntry], str]:
    reader = _FeedHandler()
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    parser.UseForeignDTD(True)  # so that undeclared entities come to us and are no error
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_UNLESS_STANDALONE)
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.SkippedEntityHandler = reader.entity
    parser.EntityDeclHandler = reader.declared

    def outside(context: str, *_: Any) -> int:
        """Whatever a document names outside of itself is read as empty; nothing is loaded."""
        parser.ExternalEntityParserCreate(context).Parse(b"", True)
        return 1

    parser.ExternalEntityRefHandler = outside
    trouble = ""
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        why = expat.ErrorString(error.code)
        trouble = f"not well-formed XML: {why} at line {error.lineno}"
    except _EnoughRead as stop:
        trouble = str(stop)
    if not trouble and not reader.is_feed:
        trouble = "XML, but neither RSS nor Atom"
    return reader.entries, trouble


class _FeedHandler:
    """Handlers of one document. A field of an entry is kept once: the first, or the fullest of bodies."""

    def __init__(self) -> None:
        self.entries: list[WebEntry] = []
        self.is_feed = False
        self._path: list[str] = []
        self._fields: dict[str, str] = {}
        self._feed: dict[str, str] = {}
        self._symbols: list[str] = []
        self._links: dict[str, str] = {}
        self._within = 0  # depth of the entry under way
        self._kept = ""  # field under way
        self._kept_at = 0
        self._text: list[str] = []
        self._num_chars = 0
        self._source = 0  # depth of an entry's source element

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        self._path.append(tag)
        depth = len(self._path)
        if depth > _MAX_DEPTH:
            raise _EnoughRead(f"XML, but nested more than {_MAX_DEPTH} deep")
        if depth == 1:
            self.is_feed = tag in _ROOTS
            if not self.is_feed:
                raise _EnoughRead(f"XML, but neither RSS nor Atom: it is <{tag[:40]}>")
        if self._kept:
            if tag in _BLOCKS:
                self._add(" ")
            return
        if tag == "deleted-entry":
            self._withdrawn(attributes)
        elif tag in _ENTRIES and not self._within:
            self._begin(depth, attributes)
        elif self._within or (depth <= 3 and tag == "title"):
            inside = not self._within or depth == self._within + 1 or depth == self._source + 1
            if inside and not any(other in name for other in _IGNORED_NAMESPACES):
                self._field(tag, depth, attributes)

    def end(self, name: str) -> None:
        depth = len(self._path)
        self._path.pop()
        if self._kept and depth == self._kept_at:
            self._store_field()
        elif self._kept and name.rpartition(" ")[2] in _BLOCKS:
            self._add(" ")
        if self._source == depth:
            self._source = 0
        if self._within == depth:
            self._finish_entry()

    def data(self, text: str) -> None:
        if self._within:
            self._num_chars += len(text)
        if self._kept:
            self._add(text)

    def entity(self, name: str, is_parameter: bool) -> None:
        if self._kept and not is_parameter:
            self._add(html5.get(f"{name};", ""))

    def declared(self, *_: Any) -> None:
        raise _EnoughRead("the XML declares entities: refused, a feed needs none")

    def _begin(self, depth: int, attributes: dict[str, str]) -> None:
        if len(self.entries) >= MAX_ENTRIES:
            raise _EnoughRead(f"more than {MAX_ENTRIES} entries")
        self._within, self._fields, self._symbols, self._links, self._num_chars = depth, {}, [], {}, 0
        for name, value in attributes.items():
            if name.endswith(" about"):
                self._fields["about"] = value

    def _field(self, tag: str, depth: int, attributes: dict[str, str]) -> None:
        if tag == "source" and not self._source:
            self._source = depth
            if not attributes.get("url"):
                return  # Atom's: its own title follows inside
        if self._source and self._source != depth:
            if tag != "title":
                return
            tag = "source"
        if tag == "link" and attributes.get("href"):
            self._links.setdefault(attributes.get("rel", "alternate"), attributes["href"])
            return
        if tag == "category":
            scheme = (attributes.get("domain", "") + attributes.get("scheme", "")).lower()
            if not any(word in scheme for word in ("ticker", "symbol", "stock")):
                return
            if attributes.get("term"):
                self._symbols.append(attributes["term"])
                return
        if tag in _KEPT:
            self._kept, self._kept_at, self._text = tag, depth, []

    def _add(self, text: str) -> None:
        if self._num_chars <= MAX_ROW_BYTES:
            self._text.append(text)

    def _store_field(self) -> None:
        text, name = "".join(self._text).strip(), self._kept
        self._kept, self._text = "", []
        if not self._within:
            self._feed.setdefault(name, one_line(text)[:200])
        elif name in _SYMBOLS or name == "category":
            self._symbols += text.replace(",", " ").split()
        elif text:
            self._fields.setdefault(name, text)

    def _finish_entry(self) -> None:
        fields, self._within = self._fields, 0
        headline = one_line(fields.get("title", ""))
        links = [one_line(fields.get("link", "")), self._links.get("alternate", ""), *self._links.values()]
        published = next((fields[name] for name in _PUBLISHED if name in fields), "")
        entry = WebEntry(
            key=next((fields[name] for name in _KEYS if name in fields), ""),
            headline=headline,
            body=next((fields[name] for name in _BODIES if name in fields), ""),
            url=next((link for link in links if link), "")[:2048],
            published=normalise_time(published),
            publisher=one_line(
                fields.get("source") or fields.get("publisher") or self._feed.get("title", "")
            )[:200],
            symbols=self._symbols[:64],
        )
        if self._num_chars > MAX_ROW_BYTES:
            shown = f"{headline[:MAX_DETAIL_CHARS]} {entry.body}"[:MAX_DETAIL_CHARS]
            detail = f"{self._num_chars} characters: an entry has at most {MAX_ROW_BYTES} bytes"
            entry.refused, entry.body = (QuarantineReason.TOO_LONG, detail, shown), ""
            entry.headline = headline[:MAX_DETAIL_CHARS]
        self.entries.append(entry.with_key())

    def _withdrawn(self, attributes: dict[str, str]) -> None:
        """RFC 6721: an Atom feed's word that an entry is gone."""
        entry = WebEntry(key=attributes.get("ref", ""), published=normalise_time(attributes.get("when", "")))
        entry.withdraws = True
        if entry.key:
            self.entries.append(entry.with_key())
