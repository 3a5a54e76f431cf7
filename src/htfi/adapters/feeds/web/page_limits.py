"""Any HTML made small and well nested, in one linear pass, before a real parser sees it. `pages` calls it.

HTML parsers take time by the square of a tag's attributes and of the nesting: a megabyte of either costs minutes.
Here tags keep a few attributes, nest to a bound, and close in order; scripts, comments and drawings are left out.
"""

import re

MAX_PAGE_BYTES = 4_000_000
_MAX_DEPTH = 200
_MAX_ATTRIBUTES = 64  # of one tag are read
_MAX_VALUE_CHARS = 2048
_NAME = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_ATTRIBUTE = re.compile(
    r"""[\s/]*(?P<name>[^\s/>=][^\s/>=]*|=[^\s/>=]*)(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^\s>]*)))?"""
)
_END = re.compile(r"[\s/]*>")
_KEPT_ATTRIBUTES = frozenset({
    "class", "id", "href", "style", "hidden", "role", "datetime", "isodate", "content", "property", "name", "itemprop",
    "itemtype", "lang", "title", "rel", "type", "aria-hidden", "aria-label",
})  # fmt: skip
_VOID_ELEMENTS = frozenset({
    "br", "hr", "meta", "wbr", "img", "col", "source", "track", "area", "base", "param", "embed", "link", "input",
})  # fmt: skip
_SKIPPED_ELEMENTS = frozenset({
    "script", "style", "noscript", "textarea", "iframe", "xmp", "noembed", "noframes", "template", "svg", "math",
    "select", "object", "canvas", "audio", "video", "datalist",
})  # fmt: skip
_IMPLIED_ENDS: dict[str, frozenset[str]] = {
    "p": frozenset({"p"}),
    "li": frozenset({"li", "p"}),
    "dt": frozenset({"dt", "dd", "p"}),
    "dd": frozenset({"dt", "dd", "p"}),
    "td": frozenset({"td", "th", "p"}),
    "th": frozenset({"td", "th", "p"}),
    "tr": frozenset({"tr", "td", "th", "p"}),
    "tbody": frozenset({"tbody", "thead", "tfoot", "tr", "td", "th", "p"}),
}
_DROPPED_TAGS = frozenset(
    {"option", "optgroup", "plaintext", "frameset", "frame"}
)  # parsers treat these unlike others


def limit_html(text: str) -> str:
    """The same page for who reads it, bounded for who parses it."""
    parts: list[str] = []
    stack: list[str] = []
    at, end = 0, len(text)
    while at < end:
        begin = text.find("<", at)
        if begin < 0:
            parts.append(text[at:])
            break
        parts.append(text[at:begin])
        if text.startswith(("<!", "<?"), begin):
            at = _after_comment(text, begin)
            continue
        tag = _NAME.match(text, begin)
        if tag is None:
            parts.append("&lt;")
            at = begin + 1
            continue
        name = tag[2].lower()
        attributes, at = _attributes(text, tag.end(), wanted=not tag[1])
        if tag[1]:
            _close(name, stack, parts)
        elif name in _SKIPPED_ELEMENTS:
            at = _after_element(text, at, name)
        elif name == "title":
            close = text.find("</", at)
            close = end if close < 0 else close
            parts.append(f"<title>{text[at:close].replace('<', '&lt;')}</title>")
            at = close
        elif name in _VOID_ELEMENTS:
            parts.append(f"<{name}{attributes}>")
        elif name.isalnum() and name.isascii() and name not in _DROPPED_TAGS:
            _open(name, attributes, stack, parts)
    parts += [f"</{name}>" for name in reversed(stack)]
    return "".join(parts)


def _open(name: str, attributes: str, stack: list[str], parts: list[str]) -> None:
    ended = _IMPLIED_ENDS.get(name)
    while ended and stack and stack[-1] in ended:
        parts.append(f"</{stack.pop()}>")
    if len(stack) < _MAX_DEPTH:
        stack.append(name)
        parts.append(f"<{name}{attributes}>")
    else:
        parts.append(" ")


def _close(name: str, stack: list[str], parts: list[str]) -> None:
    if name == "br":
        parts.append("<br>")
    if name not in stack:
        return
    while True:
        top = stack.pop()
        parts.append(f"</{top}>")
        if top == name:
            return


def _attributes(text: str, at: int, *, wanted: bool) -> tuple[str, int]:
    """The attributes worth keeping, and where the tag ends."""
    kept: dict[str, str] = {}
    num_read = 0
    while True:
        if tag_end := _END.match(text, at):
            at = tag_end.end()
            break
        found = _ATTRIBUTE.match(text, at)
        if found is None:
            at = len(text)
            break
        at, num_read = found.end(), num_read + 1
        name = found["name"].lower()
        if wanted and num_read <= _MAX_ATTRIBUTES and name in _KEPT_ATTRIBUTES and name not in kept:
            value = found["double"] or found["single"] or found["plain"] or ""
            kept[name] = value[:_MAX_VALUE_CHARS].replace('"', "&quot;")
    return "".join(f' {name}="{value}"' for name, value in kept.items()), at


def _after_comment(text: str, begin: int) -> int:
    if not text.startswith("<!--", begin):
        found = text.find(">", begin)
        return len(text) if found < 0 else found + 1
    if text.startswith((">", "->"), begin + 4):
        return text.find(">", begin) + 1
    found = text.find("-->", begin + 4)
    return len(text) if found < 0 else found + 3


def _after_element(text: str, at: int, name: str) -> int:
    """Past the element's end tag; an element within one of its own kind is passed with it. Without an end, all is."""
    edges = re.compile(rf"<(/?){name}(?=[\s/>])", re.I)
    depth = 1
    nests = name in ("svg", "template", "object")
    for edge in edges.finditer(text, at):
        if edge[1]:
            depth -= 1
        elif nests:
            depth += 1
        if depth == 0:
            found = text.find(">", edge.end())
            return len(text) if found < 0 else found + 1
    return len(text)
