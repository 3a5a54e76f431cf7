"""Selects the passages of a long body that matter, within a budget of characters, in time linear in its length."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from htfi.narrative.facts.sentences import Sentence, split_sentences
from htfi.narrative.patterns import Patterns

MAX_BODY_CHARS = 200_000  # that are read
DEFAULT_BUDGET_CHARS = 2_000
_MAX_PASSAGE_CHARS = 700  # a longer sentence is cut in pieces: some texts have no stops
_DATA = Patterns("htfi.narrative.facts.passages", "patterns.toml", "selection")
_WEIGHTY = _DATA.filtered("weighty", re.IGNORECASE)
_BOILERPLATE = _DATA.marked("boilerplate", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u9fff]{2}")
_FIGURE = re.compile(r"[$€£¥]?\d[\d.,]*\s?(?:%|percent|bps?\b|basis|million|billion|bln|mln|bn|cents|pct)?")
_ENDED = re.compile(r"[.!?…。！？\"'”’»)\]:;|]\s*$")
# Weights of a passage: a sentence of the headline's words, with a name that was asked for, or near the beginning.
_OF_HEADLINE, _OF_NAME, _OF_WEIGHTY, _OF_FIGURE, _OF_LEAD = 2.0, 2.0, 0.7, 0.35, 1.5
_MAX_LINE_CHARS = 80
_MIN_CHARS = 12  # a shorter one is a number of a list
_MAX_FIGURES = 4
_LEAD_SENTENCES = 6  # over which the weight of the beginning halves
_BOILERPLATE_SHARE = 0.1  # of its weight that boilerplate keeps
_NEW_SHARE = 0.25  # of a passage's words that must be new
_REPEATED_SHARE = 0.35  # of the weight that words keep which stand in passages chosen before


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a body, characters `start` to before `end`, on one line, and its relevance beside the others'."""

    start: int
    end: int
    text: str
    relevance: float


@dataclass(frozen=True, slots=True)
class Selection:
    """The passages in the order of the text; `is_cut` marks a text that ends in the middle of a sentence."""

    passages: tuple[Passage, ...]
    num_sentences: int
    is_cut: bool

    @property
    def text(self) -> str:
        return "\n".join(passage.text for passage in self.passages)


def select_passages(
    body: str, headline: str = "", names: Collection[str] = (), budget_chars: int = DEFAULT_BUDGET_CHARS
) -> Selection:
    """The passages of a body with the most of what was asked, at most `budget_chars` together.

    A body within the budget is kept whole. Relevance counts words of the headline, `names`, figures, words of decisions
    and results, and the beginning; boilerplate and repetitions count little. It needs no grammar of a language.
    """
    body = body[:MAX_BODY_CHARS]
    sentences = _bounded(split_sentences(body))
    is_cut = bool(sentences) and _ends_within(body, sentences[-1])
    if sum(len(one.text) + 1 for one in sentences) <= budget_chars:
        whole = tuple(Passage(one.start, one.end, one.text, 1.0) for one in sentences)
        return Selection(whole, len(sentences), is_cut)
    scores = _scores(sentences, _bags(sentences), _are_boilerplate(sentences), headline, names)
    chosen = _chosen(sentences, scores, budget_chars)
    most = max((scores[place] for place in chosen), default=1.0) or 1.0
    passages = [
        Passage(
            sentences[place].start,
            sentences[place].end,
            sentences[place].text,
            round(scores[place] / most, 3),
        )
        for place in sorted(chosen)
    ]
    return Selection(tuple(passages), len(sentences), is_cut)


def most_relevant(
    body: str, headline: str = "", names: Iterable[str] = (), num: int = 4
) -> tuple[Passage, ...]:
    """At most `num` passages of a body that say most of what was asked, in the order of the text.

    Left out are boilerplate, and what only repeats the headline or a passage that was chosen.
    """
    if num <= 0 or not body.strip():
        return ()
    sentences = _bounded(split_sentences(body[:MAX_BODY_CHARS]))
    bags, boilerplate = _bags(sentences), _are_boilerplate(sentences)
    if len(sentences) > 1:
        scores = _scores(sentences, bags, boilerplate, headline, names)
    else:
        scores = [1.0 if len(one.text) >= _MIN_CHARS else 0.0 for one in sentences]
    said = [frozenset(_words(headline))]
    chosen: list[Passage] = []
    order = sorted(range(len(sentences)), key=lambda place: (-scores[place], place))
    most = scores[order[0]] if order else 0.0
    for place in order:
        one = sentences[place]
        words = bags[place]
        if len(chosen) == num or scores[place] <= 0.0:
            break
        if boilerplate[place] or any(_says_no_more(words, before) for before in said):
            continue
        said.append(words)
        chosen.append(Passage(one.start, one.end, one.text, round(scores[place] / most, 3)))
    return tuple(sorted(chosen, key=lambda passage: passage.start))


def _says_no_more(words: frozenset[str], before: frozenset[str]) -> bool:
    return not words or len(words - before) / len(words) < _NEW_SHARE


def _ends_within(body: str, last: Sentence) -> bool:
    """Whether a text ends in the middle of a sentence; a short last line of its own is a heading or a signature."""
    if _ENDED.search(body) is not None:
        return False
    return len(last.text) > _MAX_LINE_CHARS or not body[: last.start].rstrip(" \t").endswith("\n")


def _bounded(sentences: Sequence[Sentence]) -> list[Sentence]:
    """No sentence longer than a passage may be."""
    found: list[Sentence] = []
    for one in sentences:
        if len(one.text) <= _MAX_PASSAGE_CHARS:
            found.append(one)
            continue
        for start in range(0, len(one.text), _MAX_PASSAGE_CHARS):
            piece = one.text[start : start + _MAX_PASSAGE_CHARS]
            place = min(one.start + start, one.end)
            found.append(Sentence(place, min(place + len(piece), one.end), piece))
    return found


def _bags(sentences: Sequence[Sentence]) -> list[frozenset[str]]:
    """The words of each sentence."""
    return [frozenset(_words(one.text)) for one in sentences]


def _are_boilerplate(sentences: Sequence[Sentence]) -> list[bool]:
    return [_BOILERPLATE.search(one.text) is not None for one in sentences]


def _scores(
    sentences: Sequence[Sentence],
    bags: Sequence[frozenset[str]],
    boilerplate: Sequence[bool],
    headline: str,
    names: Iterable[str],
) -> list[float]:
    num_with = Counter(word for bag in bags for word in bag)
    asked = frozenset(_words(headline))
    lower_names = [name.casefold() for name in names if name.strip()]
    scores: list[float] = []
    for place, (one, bag) in enumerate(zip(sentences, bags, strict=True)):
        lower = one.text.casefold()
        shared = bag & asked
        score = (
            _OF_HEADLINE
            * sum(1.0 / (1.0 + num_with[word] / 4.0) for word in sorted(shared))
            / max(len(asked), 1) ** 0.5
        )
        score += _OF_NAME * any(name in lower for name in lower_names)
        score += _OF_WEIGHTY * min(sum(1 for _ in _WEIGHTY.finditer(one.text)), 3)
        score += _OF_FIGURE * min(len(_FIGURE.findall(one.text)), _MAX_FIGURES)
        score += _OF_LEAD * 0.5 ** (place / _LEAD_SENTENCES)
        score *= _BOILERPLATE_SHARE if boilerplate[place] else 1.0
        scores.append(score if len(one.text) >= _MIN_CHARS else 0.0)
    return scores


def _chosen(sentences: Sequence[Sentence], scores: Sequence[float], budget_chars: int) -> set[int]:
    """The best by score, each weighed once more by how much of it the ones before have said."""
    order = sorted(range(len(sentences)), key=lambda place: (-scores[place], place))
    said: set[str] = set()
    chosen: set[int] = set()
    left = budget_chars
    later: list[int] = []
    for place in order:
        length = len(sentences[place].text) + 1
        if left < length or scores[place] <= 0.0:
            continue
        words = set(_words(sentences[place].text))
        share_new = len(words - said) / len(words) if words else 1.0
        if share_new < _REPEATED_SHARE:
            later.append(place)
            continue
        chosen.add(place)
        said |= words
        left -= length
    for place in later:
        length = len(sentences[place].text) + 1
        if length <= left and not _is_repeated(sentences, chosen, place):
            chosen.add(place)
            left -= length
    return chosen


def _is_repeated(sentences: Sequence[Sentence], chosen: set[int], place: int) -> bool:
    text = sentences[place].text.casefold()
    return any(sentences[other].text.casefold() == text for other in chosen)


def _words(text: str) -> list[str]:
    if text.isascii():
        return _WORD.findall(text.lower())
    return [word.casefold() for word in _WORD.findall(text)]
