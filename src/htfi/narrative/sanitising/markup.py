"""Removes markup from a text, and with it what the page would not have shown; that is returned to be examined.

One pass over HTML as a lenient browser reads it, then what Markdown, BBCode, LaTeX and terminals can hide.
"""

import re

from htfi.domain.news import ScreeningFinding
from htfi.narrative.patterns import Patterns

_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "markup")
WHITE_COLOUR = _DATA.compiled("white_colour", re.I)
TRANSPARENT_COLOUR = _DATA.compiled("transparent_colour", re.I)
_MARKDOWN = _DATA.compiled("markdown", re.M)
_BRACKETED = _DATA.compiled("bracketed", re.I)
_ESCAPE = _DATA.compiled("escape")
_BACKSPACED = re.compile("[^\x08]\x08")


def strip_markdown(text: str, findings: list[ScreeningFinding], hidden: list[str]) -> str:
    """Without Markdown's images, remarks and addresses."""
    return _MARKDOWN.sub(lambda match: _strip_link(match, findings, hidden), text)


def strip_bbcode_latex(text: str, findings: list[ScreeningFinding], hidden: list[str]) -> str:
    """Without what BBCode and LaTeX colour white or do not draw."""
    return _BRACKETED.sub(lambda match: _strip_bracketed(match, findings, hidden), text)


def _strip_link(match: re.Match[str], findings: list[ScreeningFinding], hidden: list[str]) -> str:
    alt, image, image_title, words, _, title, label, target, remark = match.groups()
    if image is not None:
        hidden += [one for one in (alt, image_title) if one]
        if "?" in image and len(image) > 40:
            findings.append(ScreeningFinding("beacon", 0.35, "the address of an image may carry data away"))
            hidden.append(image)
        return ""
    if words is not None:
        hidden += [one for one in (title,) if one]
        return words
    del target
    hidden.append(f"{label} {remark or ''}".strip())
    findings.append(ScreeningFinding("remarks", 0.35, "a remark that Markdown does not show"))
    return ""


def _strip_bracketed(match: re.Match[str], findings: list[ScreeningFinding], hidden: list[str]) -> str:
    name, value, inner, white, painted, phantom = match.groups()
    if name is not None:
        value = value.strip().lower().strip("\"'")
        hides = name.lower() in ("hide", "hidden") or (
            WHITE_COLOUR.match(value) or TRANSPARENT_COLOUR.match(value)
            if name.lower() == "color"
            else value in ("0", "0px", "0pt", "1", "1px")
        )
        if not hides:
            return inner
        found = inner
    else:
        found = painted if white else phantom
    if any(char.isalnum() for char in found):
        findings.append(
            ScreeningFinding("hidden text", 0.8, f"{len(found)} characters were hidden on the page")
        )
        hidden.append(found)
    return ""


def strip_terminal_codes(text: str, findings: list[ScreeningFinding], hidden: list[str]) -> str:
    """As a terminal would show it: without concealed runs and overstruck letters."""
    for _ in range(8):
        if "\x08" not in text:
            break
        text = _BACKSPACED.sub("", text)
    shown: list[str] = []
    at, is_hidden = 0, False
    for match in _ESCAPE.finditer(text):
        (hidden if is_hidden else shown).append(text[at : match.start()])
        at = match.end()
        if match[1] is not None:
            codes = match[1].split(";")
            if "8" in codes:
                is_hidden = True
            elif "0" in codes or "" in codes or "28" in codes:
                is_hidden = False
    (hidden if is_hidden else shown).append(text[at:])
    if any(hidden):
        findings.append(ScreeningFinding("hidden text", 0.8, "a terminal would have concealed a part"))
    return "".join(shown).replace("\x1b", "")


_VOID_WORDS = "area base br col embed hr img input link meta param source track wbr"
_VOID = frozenset(_VOID_WORDS.split())
_BREAKING = _DATA.words("breaking_words")
_UNSHOWN = _DATA.words("unshown_words")
_INLINE = _DATA.words("inline_words")
_NAMES = _VOID | _BREAKING | _UNSHOWN | _INLINE
_OPENING = re.compile(r"<(?:!--|(/?)([A-Za-z][A-Za-z0-9]{0,15}(?:[-:][\w-]{1,30})?)(?=[\s/>])|([!?]))")
_SPECIAL = re.compile("[<>\"']")
_ATTRIBUTE = re.compile(r"""([\w:-]{1,40})\s*=\s*(?:"([^"]{0,4000})"|'([^']{0,4000})'|([^\s"'>]{1,400}))""")
_STYLE_HIDES = _DATA.compiled("style_hides", re.I)
_COLOUR = re.compile(r"(?<![-\w])color\s*:\s*([^;]+)", re.I)
_BACKGROUND = re.compile(r"background(?:-color)?\s*:\s*([^;]+)", re.I)
_HIDING_CLASS = _DATA.compiled("hiding_class", re.I)
_RULE = re.compile(r"([.#][\w-]{1,60})[^{}]{0,200}\{([^{}]{0,2000})\}")
_ALSO_TEXT = (
    "alt",
    "title",
    "aria-label",
    "aria-description",
    "content",
    "placeholder",
    "value",
    "data-prompt",
    "data-content",
)
_MAX_DEPTH = 256

_NUM_WORDS_OF_A_NOTE = 5


class _HtmlReading:
    """The state of one pass: what is shown, what is not, and the open elements."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.hidden: list[str] = []  # inside elements that are not drawn
        self.notes: list[str] = []  # comments and attributes
        self.code: list[str] = []  # scripts and styles
        self.stack: list[tuple[str, bool, bool]] = []  # name, hides, is code
        self.num_hiding = self.num_code = 0
        self.hiding_names: set[str] = set()

    def add(self, text: str) -> None:
        if self.num_code:
            self.code.append(text)
        elif self.num_hiding:
            self.hidden.append(text)
        else:
            self.shown.append(text)

    def open(self, name: str, hides: bool) -> None:
        if name in _VOID or len(self.stack) >= _MAX_DEPTH:
            return
        is_code = name in ("script", "style")
        self.stack.append((name, hides, is_code))
        self.num_hiding += hides
        self.num_code += is_code

    def close(self, name: str) -> None:
        if not any(one[0] == name for one in self.stack):
            return
        while self.stack:
            one, hides, is_code = self.stack.pop()
            self.num_hiding -= hides
            self.num_code -= is_code
            if one == name:
                return


def strip_markup(text: str) -> tuple[str, list[ScreeningFinding], list[str]]:
    """The text as the page would show it, findings, and what it would not have shown."""
    findings: list[ScreeningFinding] = []
    hidden: list[str] = []
    if "\x1b" in text or "\x08" in text:
        text = strip_terminal_codes(text, findings, hidden)
    if "<" in text:
        text = _strip_html(text, findings, hidden)
    if "](" in text or "]:" in text:
        text = strip_markdown(text, findings, hidden)
    if "[/" in text or "\\" in text:
        text = strip_bbcode_latex(text, findings, hidden)
    return text, findings, hidden


def _strip_html(text: str, findings: list[ScreeningFinding], hidden: list[str]) -> str:
    reading = _HtmlReading()
    at = 0
    num_tags = 0
    while (found := _OPENING.search(text, at)) is not None:
        end = _end_of(text, found)
        name = (found[2] or "").lower()
        if end < 0 or (name and name not in _NAMES and "style" not in text[found.start() : end]):
            reading.add(text[at : found.end()])  # no markup: <IBM.N>, a<b
            at = found.end()
            continue
        reading.add(text[at : found.start()])
        num_tags += 1
        if found[0] == "<!--":
            reading.notes.append(text[found.end() : end].removesuffix("-->"))
        elif name:
            _read_tag(reading, name, bool(found[1]), text[found.end() : end])
        at = end
    if not num_tags:
        return text
    reading.add(text[at:])
    _report_hidden(reading, findings, hidden)
    return "".join(reading.shown)


def _end_of(text: str, found: re.Match[str]) -> int:
    """Where the tag or comment ends, past its '>'; −1 if it is none."""
    if found[0] == "<!--":
        ends = [
            end + num for mark, num in (("-->", 3), ("--!>", 4)) if (end := text.find(mark, found.end())) >= 0
        ]
        return min(ends) if ends else len(text)
    at = found.end()
    while (special := _SPECIAL.search(text, at)) is not None:
        sign = special[0]
        if sign == ">":
            return special.end()
        if sign == "<":
            return -1
        close = text.find(sign, special.end(), special.end() + 4_000)
        at = (
            special.end()
            if close < 0 or text[special.start() - 1 : special.start()] not in "= \t\n"
            else close + 1
        )
    return -1


def _read_tag(reading: _HtmlReading, name: str, is_closing: bool, rest: str) -> None:
    if name in _BREAKING:
        reading.add(" ")
    if is_closing:
        if name == "style":
            _learn_rules(reading)
        reading.close(name)
        return
    attributes = {
        key.lower(): one or two or three for key, one, two, three in _ATTRIBUTE.findall(rest)
    } if "=" in rest else {}  # fmt: skip
    reading.notes += [value for key in _ALSO_TEXT if (value := attributes.get(key))]
    bare = _ATTRIBUTE.sub(" ", rest).lower().rstrip("/>").split() if "hidden" in rest.lower() else []
    hides = name in _UNSHOWN or "hidden" in bare or _hides(name, attributes, reading.hiding_names)
    if rest.endswith("/>"):
        return
    reading.open(name, hides)


def _learn_rules(reading: _HtmlReading) -> None:
    """Learn which classes and ids the style sheet just read hides."""
    sheet = reading.code[-1] if reading.code else ""
    reading.hiding_names |= {name for name, body in _RULE.findall(sheet[:32_000]) if style_hides(body)}


def _hides(name: str, attributes: dict[str, str], hiding_names: set[str]) -> bool:
    if not attributes:
        return False
    if "hidden" in attributes or attributes.get("type", "").lower() == "hidden":
        return True
    if (style := attributes.get("style")) and style_hides(style):
        return True
    if name == "font" and (
        WHITE_COLOUR.match(attributes.get("color", "")) or attributes.get("size", "").strip() in ("0", "0px")
    ):
        return True
    classes = attributes.get("class", "")
    if classes and _HIDING_CLASS.search(classes):
        return True
    named = [f".{one}" for one in classes.split()]
    named.append(f"#{attributes.get('id', '')}")
    return any(one in hiding_names for one in named)


def style_hides(style: str) -> bool:
    """Whether a style makes text invisible on a white page."""
    style = re.sub(r"/\*.{0,200}?\*/", "", style)
    if _STYLE_HIDES.search(style):
        return True
    colour = _COLOUR.search(style)
    if colour is None:
        return False
    if TRANSPARENT_COLOUR.match(colour[1]):
        return True
    ground = _BACKGROUND.search(style)
    if ground is None:
        return WHITE_COLOUR.match(colour[1]) is not None
    same = colour[1].strip().lower() == ground[1].strip().lower()
    return same or (WHITE_COLOUR.match(colour[1]) is not None and WHITE_COLOUR.match(ground[1]) is not None)


def _report_hidden(reading: _HtmlReading, findings: list[ScreeningFinding], hidden: list[str]) -> None:
    unseen = " ".join("".join(reading.hidden).split())
    if any(char.isalnum() for char in unseen):
        findings.append(
            ScreeningFinding("hidden text", 0.8, f"{len(unseen)} characters were hidden on the page")
        )
        hidden.append(unseen)
    notes = [" ".join(note.split()) for note in reading.notes]
    long = [note for note in notes if len(note.split()) >= _NUM_WORDS_OF_A_NOTE]
    if long:
        findings.append(
            ScreeningFinding("remarks", 0.35, f"{len(long)} comments or attributes contained sentences")
        )
    hidden += [note for note in notes if len(note) >= 8]
    hidden += [code for one in reading.code if len(code := one.strip()) >= 16]
