"""A prefilter never hides a match: whatever the pattern and the text, the search finds what plain search finds."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi import narrative
from htfi.narrative.facts import extraction
from htfi.narrative.patterns import KNOWN_WORDS, FilteredPattern, pattern_name
from htfi.narrative.prefilter import needed_words, words_of

CORPORA = Path(__file__).parents[2] / "corpora"
WORDS = [
    "rate",
    "rates",
    "cut",
    "cuts",
    "of",
    "Fed's",
    "unemployment",
    "über",
    "25",
    "U.S.",
    "§",
    "x-ray",
    "skiing",
    "the",
    "u",
    "k",
]
PARTS = [
    "rates?", "cut", r"unemploy\w*", r"c[ou]ts?", "skiing", "über", r"\d+", r"U\.S\.", "§", r"x-?ray", r"\w+",
    r"[a-z]+", "of", "the ", r"u\.k\.",
    r"\s+", " ", r"\b", r"(?<!\w)", r"(?!\w)", r"(?=cut)", r"(?<=\s)", "^", "$", "[^.]", "s", "",
]  # fmt: skip


def _branches(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    branches = st.lists(inner, min_size=1, max_size=4).map("|".join)
    counts = st.sampled_from(["", "?", "*", "+", "{0,2}", "{2}", "+?", "?+"])
    groups = st.tuples(st.sampled_from(["(?:", "(", "(?=", "(?!", "(?>"]), branches, counts)
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        groups.map(lambda made: f"{made[0]}{made[1]}){made[2] if made[0] in ('(?:', '(') else ''}"),
    )


PATTERNS = st.recursive(st.sampled_from(PARTS), _branches, max_leaves=12)
TEXTS = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", "", "-", ", ", "\n"]), st.booleans()), max_size=8
).map(lambda parts: "".join((word.upper() if is_upper else word) + gap for word, gap, is_upper in parts))


@settings(max_examples=600)
@given(PATTERNS, TEXTS, st.sampled_from([re.NOFLAG, re.IGNORECASE]))
def test_filtered_search_finds_what_plain_search_finds(pattern: str, text: str, flags: re.RegexFlag) -> None:
    plain, filtered = re.compile(pattern, flags), FilteredPattern(pattern, flags)
    assert [one.span() for one in filtered.finditer(text)] == [one.span() for one in plain.finditer(text)]


def test_every_form_of_a_letter_is_known() -> None:
    small = [char for char in map(chr, range(sys.maxunicode)) if char.isalnum() and char.lower() < "\u0300"]
    letters = [char for char in small if needed_words(rf"\b{char}\b")]
    assert "a" in letters
    assert "ü" in letters
    any_letter = re.compile(f"[{''.join(letters)}]", re.IGNORECASE)
    by_letter = {one: re.compile(one, re.IGNORECASE) for one in letters}
    hidden: list[tuple[str, str]] = []
    num_others = 0
    for char in map(chr, range(0x80, sys.maxunicode)):
        if any_letter.fullmatch(char):
            known = words_of(char)
            matched = [one for one, pattern in by_letter.items() if pattern.fullmatch(char)]
            num_others += len(matched)
            hidden += [(one, char) for one in matched if known.isdisjoint(needed_words(rf"\b{one}\b")[0])]
    assert num_others > 100
    assert hidden == []


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        (r"\b(?:f[ae]ll|slid\w*)\b", [{"fall", "fell", "slid", "slid*"}]),
        (r"§(?: \w+){0,8} (?:sued|accused) by", [{"sued", "accuse"}]),
        (r"\bnon-?farm", [{"non", "nonfar"}]),
        (r"rate|\bcut\b", []),  # 'corporate' has the first
        (r"(?i)\bq\d", [{"#"}]),
        # What stands in most texts tells least.
        (r"\b(?:of the fed|a\s+cut|rate)\b", [{"fed", "cut", "rate"}, {"of", "cut", "rate"}]),
        (r"\bu\.k\.", [{"k"}]),
        (r"\b(?:in|of)\b", [{"in", "of"}]),
    ],
)
def test_needed_words_are_those_of_the_pattern(pattern: str, needed: list[set[str]]) -> None:
    assert [set(words) for words in needed_words(pattern)] == needed


def _filtered(value: object) -> Iterator[FilteredPattern]:
    if isinstance(value, FilteredPattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in cast("list[Any]", value):
            yield from _filtered(one)
    elif isinstance(value, dict):
        yield from _filtered(list(cast("dict[Any, Any]", value).values()))


def test_patterns_of_facts_find_the_same_in_the_lines_of_the_corpora() -> None:
    assert extraction.MAX_TEXT_CHARS  # imports what facts are extracted with
    modules = [module for name, module in sys.modules.items() if name.startswith("htfi.narrative.")]
    patterns = list(_filtered([list(vars(module).values()) for module in modules]))
    files = sorted((CORPORA / "facts").glob("*.txt"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if line]
    lines = lines[::60]
    assert len(patterns) > 200
    assert len(lines) > 100
    num_found = num_skipped = 0
    for pattern in {(one.text, one.flags): one for one in patterns}.values():
        plain = re.compile(pattern.text, pattern.flags)
        for line in lines:
            found = [one.span() for one in plain.finditer(line)]
            assert [one.span() for one in pattern.finditer(line)] == found, (pattern.text, line)
            num_found += bool(found)
            num_skipped += not pattern.may_match(line)
    assert num_found > 100
    assert num_skipped > 0.8 * len(lines) * 200


def test_words_that_the_package_names_are_those_that_its_patterns_need() -> None:
    """Where it fails: python tests/needed_words.py > src/htfi/narrative/needed_words.json"""
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "tests/needed_words.py"], cwd=root, capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert found.count('": [') > 500
    assert found == (root / "src/htfi/narrative" / KNOWN_WORDS).read_text(encoding="utf-8")


def test_a_pattern_has_the_words_that_the_package_names_for_it_and_another_derives_them() -> None:
    named = json.loads((Path(narrative.__file__).with_name(KNOWN_WORDS)).read_text(encoding="utf-8"))
    pattern = next(one for one in _filtered(list(vars(extraction).values())) if named[pattern_name(one)])
    assert pattern.needed == needed_words(pattern.text, pattern.flags)
    other = FilteredPattern(r"\bzebras? graze")
    assert pattern_name(other) not in named
    assert other.needed == needed_words(other.text)
