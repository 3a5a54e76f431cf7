"""Removes invisible characters, and marks and accents that no spelling uses; puts text that is drawn backwards in
order.

Joiners belong to Arabic and Indic spelling and to emoji, marks of direction to Hebrew and Arabic: there they are
honest. Within a Latin word they hide it from a machine, and in long runs they carry messages.
"""

import re
import unicodedata

from htfi.domain.news import ScreeningFinding
from htfi.narrative.patterns import Patterns
from htfi.narrative.sanitising.english import is_common, reads_better_backwards

# ruff: noqa: E501 -- a line is one pattern


_BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u061c"
_HIDDEN = re.compile(f"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad{_BLANKS}\ufe00-\ufe0f\ue000-\uf8ff\U000e0000-\U000e01ef\U000f0000-\U0010ffff]+")  # fmt: skip
_OVERRIDES = re.compile("([\u202d\u202e])([^\u202c\u202d\u202e\u2066-\u2069\r\n\u2028\u2029]*)(\u202c?)")
_FLAG_OF_REGION = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,8}\U000e007f")
_JOINING = re.compile("[\u0590-\u109f\u1780-\u18af\ufb1d-\ufdff\ufe70-\ufeff]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_OVERRIDE_BIAS = 0.2  # of names alone the order is unclear: then an override that is ended counts as meant
_LONG_RUN = 8
_MIN_MESSAGE = 4
_SHY = "\u00ad"


def remove_invisible(text: str) -> tuple[str, list[ScreeningFinding], list[str]]:
    """The text without invisible characters, findings, and the messages that were written in them."""
    found = _HIDDEN.search(text)
    if found is None:
        return text, [], []
    findings: list[ScreeningFinding] = []
    messages: list[str] = []
    text = _reorder_overrides(text, findings)
    text = _FLAG_OF_REGION.sub("\U0001f3f4", text)
    is_joining = _JOINING.search(text) is not None
    num_inside = num_soft = 0
    for match in _HIDDEN.finditer(text):
        run = match[0]
        if len(run) >= _MIN_MESSAGE:
            messages += _hidden_messages(run)
        if len(run) >= _LONG_RUN and not is_joining:
            findings.append(ScreeningFinding("unseen", 0.8, f"a run of {len(run)} invisible characters"))
        before, after = text[: match.start()][-1:], text[match.end() : match.end() + 1]
        if not (before.isalnum() and after.isalnum()):
            continue
        if _JOINING.match(before) or _JOINING.match(after):
            continue
        if run == _SHY and _is_hyphenation(text, match.start()):
            num_soft += 1
        else:
            num_inside += 1
    if num_inside:
        findings.append(
            ScreeningFinding("unseen", 0.7, f"{num_inside} words were broken by invisible characters")
        )
    if num_soft:
        findings.append(ScreeningFinding("soft hyphens", 0.1, f"{num_soft} soft hyphens"))
    if messages:
        findings.append(ScreeningFinding("smuggled", 0.9, "a message was written in invisible characters"))
    text = _HIDDEN.sub(_replacement, text)
    return text, findings, messages


def _replacement(match: re.Match[str]) -> str:
    """A blank for control characters that stood for one, else nothing."""
    return " " if any(char in "\x1c\x1d\x1e\x1f" for char in match[0]) else ""


def _is_hyphenation(text: str, at: int) -> bool:
    """Whether a soft hyphen stands where a typesetter would put it: two letters or more on either side."""
    return (
        text[max(at - 2, 0) : at].isalpha()
        and text[at + 1 : at + 3].isalpha()
        and at >= 2
        and len(text) > at + 2
    )


def _reorder_overrides(text: str, findings: list[ScreeningFinding]) -> str:
    """Runs that were drawn from right to left in the order in which they were seen, where that makes sense."""
    if "\u202e" not in text and "\u202d" not in text:
        return text
    num = 0

    def drawn(match: re.Match[str]) -> str:
        nonlocal num
        num += 1
        run = match[2]
        if match[1] == "\u202e" and reads_better_backwards(
            _HIDDEN.sub("", run), _OVERRIDE_BIAS if match[3] else -_OVERRIDE_BIAS
        ):
            return run[::-1]
        return run

    is_mixed = _RIGHT_TO_LEFT.search(text) is not None
    text = _OVERRIDES.sub(drawn, text)
    findings.append(
        ScreeningFinding(
            "direction", 0.3 if is_mixed else 0.8, f"{num} runs were forced into another drawing order"
        )
    )
    return text


def _hidden_messages(run: str) -> list[str]:
    """What a run of invisible characters may spell: tags, variation selectors as bytes, two kinds as bits."""
    found: list[str] = []
    tags = "".join(chr(ord(char) - 0xE0000) for char in run if 0xE0020 <= ord(char) < 0xE007F)
    if len(tags) >= _MIN_MESSAGE:
        found.append(tags)
    bytes_ = bytes(
        code - 0xFE00 if code <= 0xFE0F else code - 0xE0100 + 16
        for code in map(ord, run)
        if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
    )
    if len(bytes_) >= _MIN_MESSAGE:
        found.append(bytes_.decode("utf-8", "replace"))
    found += _binary_messages(run)
    return [
        message
        for message in found
        if sum(char.isalpha() or char == " " for char in message) >= 0.7 * len(message)
    ]


def _binary_messages(run: str) -> list[str]:
    kinds = sorted(set(run), key=lambda char: (-run.count(char), char))[:2]
    if len(run) < 32 or len(kinds) < 2:
        return []
    found: list[str] = []
    for one in kinds:
        bits = "".join("1" if char == one else "0" for char in run if char in kinds)
        for width in (8, 7):
            codes = [int(bits[at : at + width], 2) for at in range(0, len(bits) - width + 1, width)]
            text = "".join(map(chr, codes))
            if text.isascii() and text.isprintable():
                found.append(text)
    return found


_MAX_ACCENTED_SHARE = 0.45  # of a text's letters: Vietnamese, the most accented spelling alive, stays below
_WORDS = re.compile(r"[^\W\d_]+")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_OVERLAYS = "\u0300-\u036f\u0488\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_MARKED_LETTER = re.compile(rf"([A-Za-z\u00c0-\u024f\u1e00-\u1eff0-9])([{_OVERLAYS}]+)")


def without_overlays(text: str) -> tuple[str, int]:
    """Latin letters without marks that no spelling uses, and how many letters had them."""
    num = 0

    def bare(found: re.Match[str]) -> str:
        nonlocal num
        if found[2] == "\u20e3":
            return found[1]  # a keycap
        composed = unicodedata.normalize("NFC", found[0])
        if len(composed) == 1:
            return composed
        num += 1
        return unicodedata.normalize("NFD", found[1])[0]

    return _MARKED_LETTER.sub(bare, text), num


def without_accents(text: str, findings: list[ScreeningFinding]) -> str:
    """The text without accents that turn English words into nonsense; those of names and of other languages stay."""
    if text.isascii():
        return text
    num_accented = len(_ACCENTED.findall(text))
    if not num_accented:
        return text
    if num_accented > _MAX_ACCENTED_SHARE * len(text) / 2 and num_accented > _MAX_ACCENTED_SHARE * max(
        8, sum(map(str.isalpha, text))
    ):
        findings.append(ScreeningFinding("accents", 0.7, "nearly every letter had an accent"))
        return "".join(_base_letter(char) for char in text)
    num = 0

    def plain(found: re.Match[str]) -> str:
        nonlocal num
        word = found[0]
        bare = word if word.isascii() else _without_word_accents(word)
        if word.isascii() or not word.islower() or len(word) < 4 or word in _LOANWORDS or not is_common(bare):
            return word
        num += 1
        return bare

    if not any(
        is_common(_without_word_accents(word))
        for word in set(_WORDS.findall(text))
        if not word.isascii() and word.islower()
    ):
        return text
    stripped = re.sub(r"[^\W\d_]+", plain, text)
    # In a text of another language some words happen to be English without their accents.
    if not num or num * 2 < len({word for word in re.findall(r"[^\W\d_]+", stripped) if not word.isascii()}):
        return text
    num_common = sum(is_common(word) for word in re.findall(r"[a-z]+", stripped))
    if num_common < 2 * num or num_common < 3:
        return text
    findings.append(
        ScreeningFinding("accents", 0.5, f"{num} English words had accents that they do not have")
    )
    return stripped


_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "characters")
_LOANWORDS = _DATA.words("loanword_list")
_FOLDED = str.maketrans("ıøłđðæœŋħĸſəɛɔØŁĐÐÆŒŊĦþÞß", "iolddaonhkseeoOLDDAONHpPs")


def _without_word_accents(word: str) -> str:
    return "".join(map(_base_letter, word))


def _base_letter(char: str) -> str:
    """A Latin letter without its accents."""
    if char.isascii():
        return char
    folded = unicodedata.normalize("NFD", char)[0].translate(_FOLDED)
    return folded if folded.isascii() else char
