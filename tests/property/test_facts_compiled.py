"""What facts are read with is the same compiled and in Python, and finds what plain patterns find."""

import gc
import random
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.narrative.facts import figure_scan, name_words, party_names
from htfi.narrative.facts.extraction import extract_facts
from htfi.narrative.facts.party_roles import roles_by_wording
from htfi.narrative.facts.passages import selection
from htfi.narrative.facts.policy import clauses, decisions
from htfi.narrative.patterns import FilteredPattern, MarkedPattern
from htfi.narrative.scanning import PlainWordFilter, figures_core
from htfi.wiring.facts import symbol_linker

ROOT = Path(__file__).parents[2]
REUTERS = ROOT.parent / "shared" / "data" / "text_price" / "reuters_news_2006_2013.parquet"
COMPILED_ONLY = pytest.mark.skipif(
    figures_core is None, reason="no C compiler was at hand: there is only Python"
)
PIECES = [
    "Apple", "AT&T", "Moody's", "Moody’s", "U.S.", "S.p.A", "Disney+", "Q1", "says", "the", "EUR", "US$5", "$1.40",
    "a", "SEK6", "NOK 12", "usdollars", "cent", "minus", "3%", "1,234.5", "(0.12)", "-5bn", "€3,5", "unchanged",
    "AAPL.O", "EURUSD", "EUR/USD", "½", "İzmir", "ſ", "Straße", "5-1/4", "per cent", "Rs.50", "§1", "cut", "rates",
    "by", "25", "bps", "copyright", "Y5", "x$", "one", "Fed", "holds", "half", "point", "_", "c$3", "Erwartungen",
    "vs", "est.",
]  # fmt: skip
TEXTS = st.lists(
    st.tuples(
        st.sampled_from(PIECES), st.sampled_from([" ", " ", " ", "", "-", ", ", ". ", "\n", "’s ", ": ", "+"])
    ),
    max_size=14,
).map(lambda parts: "".join(piece + gap for piece, gap in parts))


def _corpus_lines() -> list[str]:
    files = sorted((ROOT / "corpora" / "facts").glob("*.txt"))
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()[::97] if line]


def _scores(text: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens, roles and effects as a network gives them: tokens of a few letters each, some of no letter."""
    rng = np.random.Generator(np.random.PCG64(seed))
    starts = np.flatnonzero(rng.random(len(text) + 1) < 0.3)
    tokens = np.stack([starts, np.minimum(starts + rng.integers(0, 6, len(starts)), len(text))], axis=1)
    roles, effects = rng.random((len(starts), 20)) ** 4, rng.random((len(starts), 3))
    roles /= roles.sum(axis=1, keepdims=True)
    return tokens.astype(np.int64), roles, effects / effects.sum(axis=1, keepdims=True)


@settings(max_examples=300)
@given(TEXTS, st.integers(0, 1_000))
def test_names_and_their_means_are_the_same_compiled_and_interpreted(text: str, seed: int) -> None:
    tokens, roles, effects = _scores(text, seed)
    taken = [(3, 7), (len(text), len(text))]
    names = party_names.find_names(text, taken, tokens, roles)
    assert names == name_words.find_names(text, taken, tokens, roles)
    found, shares, goods = party_names.find_parties(text, taken, tokens, roles, effects, 3)
    others = name_words.find_parties(text, taken, tokens, roles, effects, 3)
    assert (found, shares.tobytes(), goods) == (others[0], others[1].tobytes(), others[2])
    for (start, end, _), row in zip(found, shares, strict=True):  # with the bits that numpy gives
        (inside,) = ((tokens[:, 0] < end) & (tokens[:, 1] > start)).nonzero()
        mean = (np.add.reduce(roles[inside], axis=0) / len(inside))[:-1]
        assert row.tobytes() == (mean / max(float(mean.sum()), 1e-9)).tobytes()


@COMPILED_ONLY
def test_names_of_the_corpora_are_the_same_compiled_and_interpreted() -> None:
    lines = _corpus_lines()
    found = 0
    for seed, line in enumerate(lines):
        tokens, roles, _ = _scores(line, seed)
        roles = np.concatenate([roles[:, :-1], roles[:, -1:] ** 2], axis=1)  # more words that may be names
        names = party_names.find_names(line, [], tokens, roles)
        assert names == name_words.find_names(line, [], tokens, roles)
        found += len(names)
    assert found > len(lines) > 100


@settings(max_examples=200)
@given(TEXTS)
def test_words_of_names_are_those_that_the_patterns_find(text: str) -> None:
    word = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:[.&'’+][^\W_]+)*\+?")
    spans = [(one.start(), one.start() + len(re.sub("['’]s?$", "", one[0]))) for one in word.finditer(text)]
    whole = np.array([[0, len(text)]], dtype=np.int64)
    found = name_words.named_words(text, whole, np.array([0.5]), [])
    assert [one[:2] for one in found] == spans


@COMPILED_ONLY
@settings(max_examples=300)
@given(TEXTS)
def test_figures_are_found_where_plain_patterns_find_them(text: str) -> None:
    for one in (figure_scan._FIGURE, figure_scan._CONTINENTAL_FIGURE):  # pyright: ignore[reportPrivateUsage]
        plain = re.compile(one.pattern.text, one.pattern.flags)
        assert [match.span() for match in one.finditer(text)] == [
            match.span() for match in plain.finditer(text)
        ]


def test_figures_of_the_corpora_are_found_where_plain_patterns_find_them() -> None:
    lines = _corpus_lines()
    assert len(lines) > 100
    found = 0
    pattern = figure_scan._FIGURE  # pyright: ignore[reportPrivateUsage]
    plain = re.compile(pattern.pattern.text, pattern.pattern.flags)
    for line in lines:
        spans = [match.span() for match in plain.finditer(line)]
        assert [match.span() for match in pattern.finditer(line)] == spans
        found += len(spans)
    assert found > 20


@COMPILED_ONLY
@settings(max_examples=300)
@given(
    TEXTS,
    st.sampled_from(
        [r"\b(?:cut|rates?|f\w+)\b", r"(?<![\w-])\w*erwartung\w*", r"\b\d+ bps", "§", r"(?<!\w)es?t\b"]
    ),
    st.integers(0, 8),
)
def test_compiled_filters_find_what_plain_ones_find(text: str, pattern: str, start: int) -> None:
    filtered = FilteredPattern(pattern, re.IGNORECASE)
    compiled = re.compile(pattern, re.IGNORECASE)
    plain = PlainWordFilter(filtered.needed, filtered.starts, lambda: compiled)
    wanted = [one.span() for one in compiled.finditer(text, start)]
    assert [one.span() for one in filtered.finditer(text, start)] == wanted
    assert [one.span() for one in plain.finditer(text, start)] == wanted
    assert plain.may_match(text) or not filtered.may_match(text)
    matches = [
        one and one.span() for one in (filtered.match(text), plain.match_first(text), compiled.match(text))
    ]
    assert matches[0] == matches[1] == matches[2]


@settings(max_examples=300)
@given(TEXTS)
def test_marked_search_finds_what_plain_search_finds(text: str) -> None:
    pattern = selection._BOILERPLATE  # pyright: ignore[reportPrivateUsage]
    assert isinstance(pattern, MarkedPattern)
    assert len(pattern.marks) > 10
    found = pattern.search(text)
    plain = re.search(pattern.text, text, pattern.flags)
    assert (found and found.span()) == (plain and plain.span())


@settings(max_examples=300)
@given(TEXTS.map(str.lower))
def test_a_line_without_the_words_of_an_action_states_none(plain: str) -> None:
    if not clauses.may_state_action(plain):
        assert clauses.action_clauses(plain) == []
        assert decisions._of_old_manner(plain, []) is None or decisions._OLD_MANNER.may_match(plain)  # pyright: ignore[reportPrivateUsage]
    assert clauses.may_state_action("fed cuts rates by a quarter point")


def test_wordings_that_end_in_a_name_are_read_from_texts_that_do() -> None:
    text = "Acme upgraded; Goldman"
    found = roles_by_wording(text, [(0, 4), (15, 22)], [0, 1], frozenset())
    assert found.of_any == roles_by_wording(f"{text} ", [(0, 4), (15, 22)], [0, 1], frozenset()).of_any


@pytest.mark.slow
@pytest.mark.skipif(not REUTERS.is_file(), reason="the staged texts are not here")
def test_facts_of_staged_texts_are_those_of_plain_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(REUTERS, columns=["headline", "lead"]).to_pydict()
    texts = [text[:600] for pair in zip(rows["headline"], rows["lead"], strict=True) for text in pair if text]
    texts = random.Random(3).sample(texts, 1_500)
    linker = symbol_linker({})
    found = [extract_facts(text, None, linker) for text in texts]
    for pattern in gc.get_objects():
        if isinstance(pattern, FilteredPattern):
            for name in ("search", "finditer", "match"):
                monkeypatch.setattr(pattern, name, partial(_plain(name), pattern))
    monkeypatch.setattr(MarkedPattern, "search", _plain("search"))
    monkeypatch.setattr(figure_scan, "figures_core", None)
    assert found == [extract_facts(text, None, linker) for text in texts]


def _plain(name: str):
    def plainly(pattern: FilteredPattern, *arguments: object) -> object:
        return getattr(re.compile(pattern.text, pattern.flags), name)(*arguments)

    return plainly
