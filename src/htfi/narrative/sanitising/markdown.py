# ruff: noqa: E501 -- a line is one pattern
"""What Markdown, BBCode, LaTeX and terminals can hide, taken out; `markup` calls it after HTML."""

import re

from htfi.domain.news import Finding

WHITE = re.compile(r"\s*(?:white|snow|ivory|ghostwhite|#f{3,4}\b|#f{6}(?:ff)?\b|#f[c-f]f[c-f]f[c-f]\b|rgba?\(\s*25[0-5]\s*,\s*25[0-5]\s*,\s*25[0-5]|hsla?\([^,]+,[^,]+,\s*(?:100|9[89])%)", re.I)  # fmt: skip
CLEAR = re.compile(
    r"\s*(?:transparent|rgba\([^)]*,\s*0?(?:\.0+)?\s*\)|#[0-9a-f]{3}0\b(?!\w)|#[0-9a-f]{6}00\b)", re.I
)
_MARKDOWN = re.compile(
    r"!\[([^\[\]]{0,2000})\]\(([^()\s]{0,2000})(?:\s+[\"'(]([^\"')]{0,2000})[\"')])?\s*\)"
    r"|(?<!!)\[([^\[\]]{1,500})\]\(([^()\s]{1,2000})(?:\s+[\"'(]([^\"')]{0,2000})[\"')])?\s*\)"
    r"|^[ \t]{0,3}\[([^\[\]]{1,200})\]:[ \t]*(\S{1,2000})?[ \t]*(\([^()\n]{0,2000}\)|\"[^\"\n]{0,2000}\"|'[^'\n]{0,2000}')?[ \t]*$",
    re.M,
)
_BRACKETED = re.compile(
    r"\[(color|size|font|hide|hidden|spoiler)\s*=?\s*([^\[\]]{0,40})\]([^\[\]]{0,4000})\[/\1\]|"
    r"\\(?:color|textcolor)\{(white)\}\s*\{([^{}]{0,4000})\}|\\(?:phantom|vphantom|hphantom|iffalse)\{([^{}]{0,4000})\}",
    re.I,
)
_ESCAPE = re.compile(
    r"\x1b\[([0-9;]{0,32})m|\x1b\[[0-9;?]{0,32}[A-Za-ln-z]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)"
)
_BACKSPACED = re.compile("[^\x08]\x08")


def linked(text: str, findings: list[Finding], hidden: list[str]) -> str:
    """Without Markdown's images, remarks and addresses."""
    return _MARKDOWN.sub(lambda match: _linked(match, findings, hidden), text)


def bracketed(text: str, findings: list[Finding], hidden: list[str]) -> str:
    """Without what BBCode and LaTeX paint white or do not draw."""
    return _BRACKETED.sub(lambda match: _bracketed(match, findings, hidden), text)


def _linked(match: re.Match[str], findings: list[Finding], hidden: list[str]) -> str:
    alt, image, image_title, words, _, title, label, target, remark = match.groups()
    if image is not None:
        hidden += [one for one in (alt, image_title) if one]
        if "?" in image and len(image) > 40:
            findings.append(Finding("beacon", 0.35, "an image carries data away in its address"))
            hidden.append(image)
        return ""
    if words is not None:
        hidden += [one for one in (title,) if one]
        return words
    del target
    hidden.append(f"{label} {remark or ''}".strip())
    findings.append(Finding("remarks", 0.35, "a remark that Markdown does not show"))
    return ""


def _bracketed(match: re.Match[str], findings: list[Finding], hidden: list[str]) -> str:
    name, value, inner, white, painted, phantom = match.groups()
    if name is not None:
        value = value.strip().lower().strip("\"'")
        hides = name.lower() in ("hide", "hidden") or (
            WHITE.match(value) or CLEAR.match(value)
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
            Finding("hidden text", 0.8, f"{len(found)} characters stood where a page does not show them")
        )
        hidden.append(found)
    return ""


def printed(text: str, findings: list[Finding], hidden: list[str]) -> str:
    """As a terminal would show it: concealed runs out, what was struck over gone."""
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
        findings.append(Finding("hidden text", 0.8, "a terminal would have concealed a part"))
    return "".join(shown).replace("\x1b", "")
