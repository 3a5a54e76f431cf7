# ruff: noqa: E501 -- rows of a table
"""What can be done to an honest text so that eyes and machines read different things; seeded, for tests and evaluation.

Each trick takes rng and a text and gives the text as an attacker would send it. Those of `DISGUISES` and `HIDDEN` mean
the same to a person as the text they were made from: undone, they must give it back to the letter.
"""

import base64
import codecs
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

from htfi.narrative.sanitising.confusables import LookalikeKind, latin_substitutes, lookalike_table, script_of
from htfi_train.simulation.rng import Rng

TextTransform = Callable[[Rng, str], str]

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u034f\u2061\u2062\u2063\u2064\u200e\u200f\u061c"
DIRECTIONS = "\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_STYLES = (0x1D400, 0x1D434, 0x1D468, 0x1D4D0, 0x1D5A0, 0x1D5D4, 0x1D608, 0x1D63C, 0x1D670)
_HIDING = (
    "display:none", "visibility:hidden", "font-size:0", "opacity:0", "color:#ffffff", "color:white;background:white",
    "position:absolute;left:-9999px", "text-indent:-10000px", "height:0;overflow:hidden", "font-size:0px;line-height:0",
    "clip:rect(0,0,0,0)", "color:transparent", "display: none !important", "transform:scale(0)", "max-height:0;overflow:hidden",
    "clip-path:inset(100%)", "width:0;height:0;overflow:hidden", "color:rgb(255,255,255)",
)  # fmt: skip
_TAGS = ("span", "div", "p", "font", "b", "i", "section")


def with_lookalikes(rng: Rng, text: str, script: str = "", share: float = 0.35) -> str:
    """Letters by look-alikes: of one script, or of any; at least one letter of a word of three changes."""
    table = latin_substitutes() if not script else _of_script(script)
    words = text.split(" ")
    eligible = [
        at
        for at, word in enumerate(words)
        if sum(char.isascii() and char.isalpha() for char in word) > 2 and any(char in table for char in word)
    ]
    if not eligible:
        return text
    forced = rng.choice(eligible)
    for at in eligible:
        if at == forced or rng.chance(0.7):
            words[at] = _masked_word(rng, words[at], table, share)
    return " ".join(words)


def _masked_word(rng: Rng, word: str, table: dict[str, str], share: float) -> str:
    """Some letters changed, at least one, and one of the rest left: else the script that is meant would be unknown."""
    places = [at for at, char in enumerate(word) if char.isalpha() and char in table]
    letters = sum(char.isascii() and char.isalpha() for char in word)
    chosen = [at for at in places if rng.chance(share)] or [rng.choice(places)]
    if len(chosen) == letters:
        chosen = chosen[1:]
    return "".join(rng.choice(table[char]) if at in chosen else char for at, char in enumerate(word))


@cache
def _of_script(script: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for char, glyph in sorted(lookalike_table().items()):
        if glyph.kind is LookalikeKind.CLOSE and script_of(char) == script and len(glyph.latin) == 1:
            found[glyph.latin] = found.get(glyph.latin, "") + char
    return found


def full_width(rng: Rng, text: str) -> str:
    del rng
    return "".join(
        chr(ord(char) + 0xFEE0) if "!" <= char <= "~" and char.isalnum() else char for char in text
    )


def mathematical(rng: Rng, text: str) -> str:
    """Every letter of some words in bold, italic or a like font."""
    start = rng.choice(_STYLES)

    def styled(char: str) -> str:
        if not (char.isascii() and char.isalpha()):
            return char
        offset = ord(char) - 65 if char.isupper() else ord(char) - 97 + 26
        changed = chr(start + offset)
        return changed if changed in lookalike_table() else char

    return "".join(styled(char) for char in text)


def with_invisible_characters(rng: Rng, text: str) -> str:
    """Characters that are invisible inside of words."""
    out: list[str] = []
    for at, char in enumerate(text):
        out.append(char)
        if char.isalnum() and text[at + 1 : at + 2].isalnum() and (rng.chance(0.25) or at == 0):
            out.append(rng.choice(ZERO_WIDTH) * (1 + rng.integer(2)))
    return "".join(out)


def with_reversed_text(rng: Rng, text: str) -> str:
    """A stretch stored backwards and drawn the right way by an override."""
    words = text.split(" ")
    first = rng.integer(max(len(words) - 3, 1))
    last = min(first + 3 + rng.integer(3), len(words))
    run = " ".join(words[first:last])
    return " ".join([*words[:first], f"\u202e{run[::-1]}\u202c", *words[last:]])


def with_direction_marks(rng: Rng, text: str) -> str:
    """Marks of direction strewn among the words."""
    return "".join(char + (rng.choice(DIRECTIONS) if rng.chance(0.1) else "") for char in text)


def with_stacked_marks(rng: Rng, text: str) -> str:
    """Strokes and stacked marks over letters."""
    marks = "\u0336\u0337\u0334\u0335\u0338\u0332\u033f\u0489"
    return "".join(
        char + rng.choice(marks) * (1 + rng.integer(3)) if char.isalpha() and rng.chance(0.5) else char
        for char in text
    )


DISGUISES: dict[str, TextTransform] = {
    "any block": with_lookalikes,
    "Cyrillic": lambda rng, text: with_lookalikes(rng, text, "CYRILLIC", 0.6),
    "Greek": lambda rng, text: with_lookalikes(rng, text, "GREEK", 0.8),
    "Armenian": lambda rng, text: with_lookalikes(rng, text, "ARMENIAN", 0.8),
    "Cherokee": lambda rng, text: with_lookalikes(rng, text, "CHEROKEE", 0.8),
    "small capitals": lambda rng, text: with_lookalikes(rng, text, "LATIN", 0.5),
    "full width": full_width,
    "mathematical": mathematical,
    "zero width": with_invisible_characters,
    "override": with_reversed_text,
    "directions": with_direction_marks,
    "stacked marks": with_stacked_marks,
}  # fmt: skip


def _element(rng: Rng, order: str) -> str:
    tag = rng.choice(_TAGS)
    return f'<{tag} style="{rng.choice(_HIDING)}">{order}</{tag}>'


def _tag_characters(rng: Rng, order: str) -> str:
    del rng
    return "".join(chr(0xE0000 + ord(char)) for char in order if " " <= char <= "~")


def _variation_selectors(rng: Rng, order: str) -> str:
    del rng
    return "".join(chr(0xFE00 + byte if byte < 16 else 0xE0100 + byte - 16) for byte in order.encode())


def _variation_bits(rng: Rng, order: str) -> str:
    zero, one = rng.choice(("\u200b\u200c", "\u200c\u200d", "\u2060\u200b", "\u2063\u2062"))
    return "".join(one if bit == "1" else zero for char in order[:80] for bit in f"{ord(char) & 255:08b}")


HIDDEN: dict[str, TextTransform] = {
    "undrawn element": _element,
    "comment": lambda _, order: f"<!-- {order} -->",
    "hidden attribute": lambda rng, order: f"<{(tag := rng.choice(_TAGS))} hidden>{order}</{tag}>",
    "class": lambda rng, order: f'<span class="{rng.choice(("sr-only", "visually-hidden", "hidden", "d-none"))}">{order}</span>',
    "style sheet": lambda rng, order: f"<style>.k{rng.integer(99)} {{}} .zq{{display:none}}</style><span class='zq'>{order}</span>",
    "script": lambda _, order: f"<script>/* {order} */</script>",
    "alternative text": lambda _, order: f'<img src="x.png" alt="{order.replace(chr(34), "")}">',
    "font": lambda rng, order: f'<font {rng.choice(("color=white", "size=0", "color=#FFFFFF"))}>{order}</font>',
    "tag characters": _tag_characters,
    "variation selectors": _variation_selectors,
    "zero-width bits": _variation_bits,
    "Markdown remark": lambda _, order: f"\n\n[//]: # ({order.replace('(', '').replace(')', '')})\n",
    "terminal": lambda _, order: f"\x1b[8m{order}\x1b[0m",
}  # fmt: skip


def hide_order(rng: Rng, text: str, order: str, kind: str = "") -> str:
    """The text with an order in it that a page does not show, at its end or between two words."""
    name = kind or rng.choice(tuple(HIDDEN))
    planted = HIDDEN[name](rng, order)
    words = text.split(" ")
    if name == "Markdown remark" or rng.chance(0.5) or len(words) < 3:
        return text + planted
    at = 1 + rng.integer(len(words) - 1)
    return " ".join(words[:at]) + planted + " " + " ".join(words[at:])


ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": lambda order: base64.b64encode(order.encode()).decode(),
    "base64 for addresses": lambda order: base64.urlsafe_b64encode(order.encode()).decode().rstrip("="),
    "base32": lambda order: base64.b32encode(order.encode()).decode(),
    "hex": lambda order: order.encode().hex(),
    "spaced hex": lambda order: order.encode().hex(" "),
    "escapes": lambda order: "".join(f"\\u{ord(char):04x}" for char in order),
    "hex escapes": lambda order: "".join(f"\\x{ord(char) & 255:02x}" for char in order),
    "percent": lambda order: "".join(f"%{byte:02X}" for byte in order.encode()),
    "address": lambda order: quote(order, safe=""),
    "ROT13": lambda order: codecs.encode(order, "rot13"),
    "backwards": lambda order: order[::-1],
    "entities": lambda order: "".join(f"&#{ord(char)};" for char in order),
    "bits": lambda order: " ".join(f"{ord(char) & 255:08b}" for char in order[:60]),
    "codes": lambda order: " ".join(str(ord(char)) for char in order if ord(char) < 127),
}


def encode_order(rng: Rng, text: str, order: str, kind: str = "") -> str:
    """The text, and after it an order in a code that a model may know how to read."""
    plain = "".join(char for char in order if " " <= char <= "~")
    code = ENCODINGS[kind or rng.choice(tuple(ENCODINGS))](plain)
    lead = rng.choice(("", "ref: ", "data: ", "id ", "see ", "Decode and follow: "))
    return f"{text} {lead}{code}"


def with_separators(rng: Rng, text: str) -> str:
    """A significant word or more of the text with something between its letters."""
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= 4 and word.isalpha() and word.isascii()]
    sign = rng.choice((" ", ".", "-", "_", "*", "|", "\u00ad", "\u200b", "·", "/"))
    for at in rng.sample(long, 1 + rng.integer(3)):
        words[at] = sign.join(words[at])
    return " ".join(words)
