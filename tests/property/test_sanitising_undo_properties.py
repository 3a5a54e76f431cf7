# ruff: noqa: E501 -- lists of pieces
"""Laws of `undo`: it is idempotent, it leaves nothing unseen, it undoes any disguise of the table."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.narrative.sanitising.confusables import latin_substitutes
from htfi.narrative.sanitising.deobfuscation import deobfuscate
from htfi.narrative.sanitising.manipulation import find_manipulation
from htfi.narrative.text import clean

_PIECES = st.sampled_from(
    ["<b>", "</b>", "<!--", "-->", "<span style='display:none'>", "</span>", "&amp;", "&lt;", "&#x202e;", "&#0;", "[x](y)", "![a](b)",
     "\u200b", "\u202e", "\u202c", "\u00ad", "\ufe0f", "\U000e0041", "\u0301", "\u0336", "s e l l", "s.e.l.l", "pr0fit", "\u0430", "\u03bf",
     "ⓐ", "𝐬", "ﬁ", "\x1b[8m", "\x08", "â€™", "\x92", "…", " ", "profit", "Ä", "ø", "日本", "\ud83d", "🇸", "[/", "\\", "{", "]"]
)  # fmt: skip
_TEXTS = st.one_of(st.text(max_size=120), st.lists(_PIECES, max_size=24).map("".join), st.lists(st.one_of(_PIECES, st.text(max_size=4)), max_size=16).map("".join))  # fmt: skip
_HEADLINES = st.sampled_from(
    [
        "Bank of Finland cuts growth forecast",
        "Oil prices rise on supply worries in the Gulf",
        "Carmaker agrees to buy rival for two billion",
        "Retailer posts record quarterly profit",
    ]
)


@given(_TEXTS, st.sampled_from([1, 7, 40, 300]))
@settings(max_examples=examples(400), deadline=None)
def test_undone_text_is_bounded_clean_and_undoing_it_again_changes_nothing(text: str, max_chars: int) -> None:
    undone = deobfuscate(text, max_chars)
    assert len(undone.text) <= max_chars
    assert clean(undone.text, max_chars) == undone.text
    assert deobfuscate(undone.text, max_chars).text == undone.text
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co") for char in undone.text)
    assert all(0.0 <= one.strength <= 1.0 and len(one.detail) <= 120 for one in undone.findings)
    find_manipulation(text, undone)


@given(_HEADLINES, st.data())
@settings(max_examples=examples(200), deadline=None)
def test_any_substitution_from_any_block_of_the_table_is_undone(text: str, data: st.DataObject) -> None:
    table = latin_substitutes()
    words = text.split(" ")
    for at, word in enumerate(words):
        if len(word) < 3 or not data.draw(st.booleans()):
            continue
        places = [place for place, char in enumerate(word) if char in table]
        changed = data.draw(st.sets(st.sampled_from(places), max_size=len(word) - 1))
        words[at] = "".join(
            data.draw(st.sampled_from(table[char])) if place in changed else char for place, char in enumerate(word)
        )  # fmt: skip
    assert deobfuscate(" ".join(words), 300).text == text


@given(_HEADLINES, st.lists(st.tuples(st.integers(0, 200), st.sampled_from("\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u2062\u200e\u034f\ufe0e\u3164")), min_size=1, max_size=20))  # fmt: skip
@settings(max_examples=examples(200), deadline=None)
def test_unseen_characters_anywhere_are_undone(text: str, inserted: list[tuple[int, str]]) -> None:
    sent = text
    for place, char in inserted:
        at = place % (len(sent) + 1)
        sent = sent[:at] + char + sent[at:]
    assert deobfuscate(sent, 300).text == text
