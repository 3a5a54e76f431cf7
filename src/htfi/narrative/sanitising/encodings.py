# ruff: noqa: E501 -- a line is one pattern
"""Finds messages written in codes (base64, hex, percent, ROT13, …) and decodes them to be examined.

The text keeps its runs as they stand: what is decoded is never shown and never read by a model. Only what decodes to
words counts: digests, addresses and ticket numbers decode to noise.
"""

import base64
import binascii
import codecs
import html
import re

from htfi.domain.news import ScreeningFinding
from htfi.narrative.patterns import Patterns
from htfi.narrative.sanitising.confusables import script_of
from htfi.narrative.sanitising.english import bigram_log_likelihood, common_words, num_known_letters
from htfi.narrative.sanitising.phrase_lexicon import has_wide, kinds_in

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_WRAPPED64 = re.compile(r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{40,}\s){1,}[A-Za-z0-9+/]{4,}={0,2}")
_BASE32 = re.compile(r"(?<![A-Z2-7])[A-Z2-7]{16,}={0,6}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x|%|=)?[0-9A-Fa-f]{2}[\s,:;]{0,2}){6,}(?![0-9A-Za-z])")
_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "encodings")
_ESCAPES = _DATA.compiled("escapes")
_PERCENT = re.compile(r"(?:[\w.~+-]{0,40}%[0-9A-Fa-f]{2}){3,}[\w.~+-]{0,40}")
_QUOTED = re.compile(r"(?:[^=\s]{0,20}=[0-9A-F]{2}){4,}")
_BITS = re.compile(r"(?<![0-9])(?:[01]{7,8}[\s,]{0,2}){4,}(?![0-9])")
_CHARACTER_CODES = re.compile(r"(?<![0-9.$])(?:\d{2,3}[\s,;]{1,2}){6,}\d{2,3}(?![0-9.%])")
_OCTAL = re.compile(r"(?:\\[0-7]{3}){4,}")
_MORSE = re.compile(r"(?<![\w.])[.\-·−–_]{1,6}(?:[ /|]{1,3}[.\-·−–_]{1,6}){7,}")
_ONE_CODE = re.compile(r"[0-9A-Fa-f]{4,6}|[0-9A-Fa-f]{2}")
_SIGNS = ("%", "\\", "=", "#", "U+")
_CODED = re.compile(r"[A-Za-z0-9+/_]{16}|%[0-9A-Fa-f]{2}|=[0-9A-F]{2}|\\[xu0-7]|#x?\d|U\+[0-9A-F]")
_LONG = 16  # letters without a blank
_PAIR = re.compile("[0-9A-Fa-f]{2}")
_MANY = 6  # short groups of digits, hex or dots in a row
_MIN_CHARS = 6
_MAX_RUNS = 16
_MAX_DEPTH = 3
_MAX_SCRIPT_BLOCKS = 4  # of 256 characters
INSTRUCTION_KINDS = _DATA.words("instruction_kind_list")
_FEW_KINDS, _MANY_KINDS = 2, 3  # kinds of instruction words, in any language
_SHOWN_FLUENCY = -2.75  # a sentence lies near −2.4, random letters near −4
_MORSE_SIGNS = _DATA.text("morse_signs")
_MORSE_CODE: dict[str, str] = dict(
    zip(_MORSE_SIGNS.split(), "abcdefghijklmnopqrstuvwxyz0123456789", strict=True)
)
_LEET = re.compile(r"(?<![\w.,$])(?=\w*[^\W\d])(?=[^\W\d]*[013457@$!])[\w@$!]{3,24}")
_DIGIT_INSIDE = re.compile(r"[^\W\d_][013457@$!][^\W\d_]")
_LETTERED = str.maketrans("013457@$!", "oieastasi")
_MIN_LEET = 3  # words with digits for letters
_ATBASH = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA",
)


def decode_messages(text: str, depth: int = 0) -> tuple[list[ScreeningFinding], list[str]]:
    """Findings and decoded messages; codes within codes up to three levels."""
    found: list[tuple[str, str]] = []
    if _may_hold_codes(text):
        found = _encoded_runs(text, depth)
    if depth == 0:
        found += _ciphered_texts(text)
    findings: list[ScreeningFinding] = []
    messages: list[str] = []
    for kind, message in found:
        findings.append(
            ScreeningFinding(f"encoded {kind}", 0.6, f"{len(message)} characters were written in {kind}")
        )
        messages.append(message)
        if depth + 1 < _MAX_DEPTH:
            deeper, inner = decode_messages(message, depth + 1)
            findings += deeper
            messages += inner
    return findings, messages


def _may_hold_codes(text: str) -> bool:
    tokens = text.split()
    if not tokens:
        return False
    has_signs = max(map(len, tokens)) >= _LONG or any(sign in text for sign in _SIGNS)
    if has_signs and _CODED.search(text) is not None:
        return True
    return (
        sum(
            token[0] in "0123456789.-·−–_" or (len(token) == 2 and _PAIR.fullmatch(token) is not None)
            for token in tokens
        )
        >= _MANY
    )


def _encoded_runs(text: str, depth: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    taken: list[tuple[int, int]] = []
    for kind, pattern, read in _CODES_BY_NAME:
        num = 0
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            num += 1
            if num > _MAX_RUNS:
                break
            message = read(match[0])
            if message and (_is_language(message) or _holds_more(message, depth)):
                found.append((kind, message))
                taken.append(match.span())
    return found


def _holds_more(message: str, depth: int) -> bool:
    """Whether a message contains a further code."""
    is_plain = message.isascii() and message.isprintable()
    return depth + 1 < _MAX_DEPTH and is_plain and bool(_encoded_runs(message, depth + 1))


def _is_language(message: str) -> bool:
    """Whether a message is printable, mostly letters and blanks, and made of words or of plausible letters."""
    if len(message) < _MIN_CHARS or not message.replace("\n", " ").replace("\t", " ").isprintable():
        return False
    num_letters = sum(char.isalpha() or script_of(char) != "" for char in message)
    if num_letters + message.count(" ") < 0.75 * len(message) or num_letters < _MIN_CHARS - 1:
        return False
    if not message.isascii():
        if has_wide(message):  # any bytes are Chinese letters to UTF-16
            return _num_instruction_kinds(message) >= _FEW_KINDS
        return len({ord(char) >> 8 for char in message}) <= _MAX_SCRIPT_BLOCKS
    if num_known_letters(message) >= 0.4 * num_letters or (num_letters >= 8 and " " in message and bigram_log_likelihood(message) > _SHOWN_FLUENCY):  # fmt: skip
        return True
    return _num_instruction_kinds(message) >= _MANY_KINDS


def _as_text(raw: bytes) -> str:
    for encoding in ("utf-8", "utf-16-le"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text.strip()
    return ""


def _base64(run: str) -> str:
    run = "".join(run.split()).rstrip("=").translate(str.maketrans("-_", "+/"))
    if run.isalpha() and (run.islower() or run.isupper() or run.istitle()):
        return ""  # a long word
    for start in range(4 if len(run) < 400 else 1):
        part = run[start:]
        part = part[: len(part) - (len(part) % 4 == 1)]
        try:
            text = _as_text(base64.b64decode(part + "=" * (-len(part) % 4)))
        except (binascii.Error, ValueError):
            continue
        if text and (_is_language(text) or (start == 0 and text.isprintable() and text.isascii())):
            return text
    return ""


def _base32(run: str) -> str:
    run = run.rstrip("=")
    try:
        return _as_text(base64.b32decode(run + "=" * (-len(run) % 8)))
    except (binascii.Error, ValueError):
        return ""


def _hex(run: str) -> str:
    pairs = re.findall(r"(?:0x|\\x|%|=)?([0-9A-Fa-f]{2})", run)
    return _as_text(bytes(int(pair, 16) for pair in pairs))


def _escapes(run: str) -> str:
    if "&#" in run or run.startswith("#"):
        return html.unescape(re.sub("&?#", "&#", run))
    return "".join(_character(int(code, 16)) for code in _ONE_CODE.findall(run))


def _character(code: int) -> str:
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else ""


def _percent(run: str) -> str:
    raw = re.sub(
        rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), run.replace("+", " ").encode()
    )
    return _as_text(raw)


def _quoted(run: str) -> str:
    try:
        return _as_text(binascii.a2b_qp(run.encode("ascii")))
    except (UnicodeEncodeError, binascii.Error):
        return ""


def _bits(run: str) -> str:
    parts = re.findall("[01]{7,8}", run)
    return "".join(map(chr, (int(part, 2) for part in parts)))


def _codes(run: str) -> str:
    codes = [int(code) for code in re.findall(r"\d{2,3}", run)]
    return "".join(map(chr, codes)) if all(32 <= code < 127 for code in codes) else ""


def _octal(run: str) -> str:
    return "".join(chr(int(code, 8)) for code in re.findall("[0-7]{3}", run) if int(code, 8) < 256)


def _morse(run: str) -> str:
    plain = re.sub("[−–_]", "-", run).replace("·", ".")
    words = re.split(r"\s*[/|]\s*|\s{3,}", plain)
    return " ".join("".join(_MORSE_CODE.get(sign, "") for sign in word.split()) for word in words)


_CODES_BY_NAME = (
    ("escapes", _ESCAPES, _escapes),
    ("percent signs", _PERCENT, _percent),
    ("bits", _BITS, _bits),
    ("octal", _OCTAL, _octal),
    ("hex", _HEX, _hex),
    ("quoted-printable", _QUOTED, _quoted),
    ("base64", _WRAPPED64, _base64),
    ("base64", _BASE64, _base64),
    ("base32", _BASE32, _base32),
    ("character codes", _CHARACTER_CODES, _codes),
    ("Morse", _MORSE, _morse),
)


def _ciphered_texts(text: str) -> list[tuple[str, str]]:
    """The whole text, or a long run of it, with letters shifted, mirrored, written backwards or as digits."""
    found: list[tuple[str, str]] = []
    if has_wide(text) and (turned := text[::-1]) and _reads_more_like_instructions(turned, text):
        found.append(("backwards", turned))
    if _DIGIT_INSIDE.search(text) and len(_LEET.findall(text)) >= _MIN_LEET:
        lettered = text.translate(_LETTERED)
        if _reads_more_like_instructions(lettered, text):
            found.append(("digits for letters", lettered))
    for run in _unknown_word_runs(text):
        known = num_known_letters(run)
        candidates = [("backwards", run[::-1]), ("Atbash", run.translate(_ATBASH))]
        candidates += [("ROT13", codecs.encode(run, "rot13"))]
        candidates += [(f"a shift of {shift}", _shifted(run, shift)) for shift in range(1, 26) if shift != 13]
        kind, best = max(candidates, key=lambda one: num_known_letters(one[1]))
        if num_known_letters(best) >= max(8, 2 * known + 6) and num_known_letters(best) >= 0.5 * sum(
            map(str.isalpha, best)
        ):
            found.append((kind, best))
            continue
        if 2 * sum(map(str.islower, run.split())) >= len(run.split()):  # otherwise they are names
            found += [one for one in candidates if _reads_more_like_instructions(one[1], run)][:1]
    return found


def _reads_more_like_instructions(message: str, text: str) -> bool:
    """Whether a message holds words of instructions, in any language, and the text as it stands few of them."""
    num = _num_instruction_kinds(message)
    return num >= _MANY_KINDS and num >= _num_instruction_kinds(text) + 2


def _num_instruction_kinds(text: str) -> int:
    """Kinds of instruction words, in the language that has most."""
    return max((len(kinds & INSTRUCTION_KINDS) for kinds in kinds_in(text.lower())), default=0)


def _unknown_word_runs(text: str) -> list[str]:
    """Runs of four or more words without a common English one that hardly look like language."""
    known = common_words()
    tokens = text[:4_000].split()
    strange = [
        token not in known and (token.islower() or token.isupper()) and len(token) > 2 for token in tokens
    ]
    if sum(strange) < 3:
        return []
    runs: list[str] = []
    run: list[str] = []
    for word in (*tokens, ""):
        if not run and word in known:
            continue
        bare = word.strip(".,:;!?\"'()[]").lower()
        if bare.isalpha() and (bare not in known or (run and len(bare) <= 2)):
            run.append(word)
            continue
        if len(run) >= 4:
            runs.append(" ".join(run))
        run = []
    return [one for one in runs[:4] if len(one) >= 16]


def _shifted(text: str, shift: int) -> str:
    lower, upper = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return text.translate(
        str.maketrans(lower + upper, lower[shift:] + lower[:shift] + upper[shift:] + upper[:shift])
    )
