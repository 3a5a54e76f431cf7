"""Finds instructions to the machine that reads, in many languages, by their parts: address, obligation, act, answer.

News states who must do what; an instruction is addressed to the reader, and asks for an answer in our own vocabulary,
or to drop earlier instructions. Words alone do not make one: carmakers have models, banks must respond. What a report
of attacks quotes is mentioned, not used; any other quotation counts as it stands.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from htfi.narrative.patterns import Patterns
from htfi.narrative.sanitising.phrase_lexicon import (
    LexiconMark,
    MarkedSentence,
    fold_text,
    kinds_in,
    marked_sentences,
)

_QUOTED = re.compile(
    '"[^"\n]{2,240}"|“[^“”"]{2,240}[”"]|„[^“”"]{2,240}[“”"]|«[^»]{2,240}»|»[^«]{2,240}«|‹[^›]{2,240}›|'
    r"「[^」]{2,240}」|『[^』]{2,240}』|[‘‚](?:[^‘’]|’(?=\w)){2,240}[‘’](?!\w)|(?<!\w)'(?:[^'\n]|'(?=\w)){2,240}'(?!\w)"
)
_SENTENCE_END = re.compile(r"[.!?。！？…؟।\n](?=\s|$|[^\x00-\x7f])")
_SPEAKS_TO = frozenset((",", ":", "!", "，", "：", "、", "،", "！", "—", "–"))
_CLAUSE = frozenset(
    (*_SPEAKS_TO, '"', "“", "”", "„", "«", "»", "「", "『", "'", "‘", "‚", "(", "[", "*", ">", "{")
)
_COLON = frozenset(":：")
_SOON, _FAR = 3, 10  # words
_MACHINE_KINDS = {"reader", "name", "machine", "drop"}  # kinds in a report of attacks on machines
_ANSWER_KINDS = {"strong", "value", "field", "rules", "role"}
_DATA = Patterns("htfi.narrative.sanitising", "patterns.toml", "prompt_injection")
_KEYS = _DATA.compiled("keys", re.I)
_BRACED = re.compile(r"\{[^{}]{2,200}\}")
INJECTION_CERTAIN, INJECTION_MENTIONED = 0.85, 0.5


class InjectionFinding(NamedTuple):
    """`strength` 0–1 of an instruction to a reader, 0 for none; `plain` is the text without what it only reports."""

    strength: float
    plain: str


def find_injection(text: str, kinds: Collection[frozenset[str]]) -> InjectionFinding:
    """The instruction in a text to the machine that reads it; `kinds` are those of its words, by language."""
    strength, plain = 0.0, text
    if any("report" in language and not language.isdisjoint(_MACHINE_KINDS) for language in kinds):
        plain, quoted = _without_reports(text)
        if any(
            _order_strength(sentence, True) >= 2
            for one in quoted
            for sentence in marked_sentences(fold_text(one))
        ):
            strength = INJECTION_MENTIONED
    if any(map(_may_order, kinds)) and holds_order(plain):
        return InjectionFinding(INJECTION_CERTAIN, plain)
    if "{" in text and any(not language.isdisjoint(("act", "only", "command")) for language in kinds):
        strength = INJECTION_CERTAIN if any(map(_KEYS.search, _BRACED.findall(text))) else strength
    return InjectionFinding(strength, plain)


def holds_order(text: str) -> bool:
    """Whether a sentence of a text is an instruction to its reader, not a report of one."""
    return any(_order_strength(sentence, False) for sentence in marked_sentences(fold_text(text)))


def _may_order(kinds: frozenset[str]) -> bool:
    """Whether everything that one of the rules needs is among the kinds of words."""
    if "drop" in kinds and "rules" in kinds and ("prior" in kinds or "you" in kinds):
        return True
    if not ("value" in kinds or "strong" in kinds or "field" in kinds or "role" in kinds):
        return False
    if "role" in kinds or "answer" in kinds or "system" in kinds or "reader" in kinds or "name" in kinds:
        return True
    acts = "act" in kinds or "command" in kinds
    if acts and ("here" in kinds or "only" in kinds):
        return True
    if not ("machine" in kinds or "you" in kinds):
        return False
    return "header" in kinds or (acts and ("must" in kinds or "command" in kinds))


def _without_reports(text: str) -> tuple[str, list[str]]:
    """The text without reports of attacks and what they quote; and what they quote."""
    spans = [(found.start(), found.end()) for found in _QUOTED.finditer(text)]
    masked = list(text)
    for start, end in spans:
        masked[start:end] = " " * (end - start)
    outside = "".join(masked)
    kept: list[str] = []
    quoted: list[str] = []
    begin = 0
    for end in [*(found.end() for found in _SENTENCE_END.finditer(outside)), len(text)]:
        sentence = fold_text(outside[begin:end])
        reports = [kinds for kinds in kinds_in(sentence) if "report" in kinds]
        if not reports:
            kept.append(text[begin:end])
        else:
            quoted += [text[a:b] for a, b in spans if begin <= a and b <= end]
            of_machines = any(
                "you" not in kinds
                and {"drop", "rules"} <= kinds
                and not kinds.isdisjoint(("reader", "name", "machine"))
                for kinds in reports
            )
            if not of_machines or any(
                _order_strength(sentence, False) for sentence in marked_sentences(sentence)
            ):
                kept.append(outside[begin:end])
        begin = end
    return " ".join("".join(kept).split()), quoted


def _order_strength(sentence: MarkedSentence, is_quoted: bool) -> int:
    """How surely a sentence is an instruction to its reader: 0 not, 1 likely, 2 in our own vocabulary."""
    kinds = {mark.kind for mark in sentence.marks}
    if kinds.isdisjoint(_ANSWER_KINDS):
        return 0
    reported = "report" in kinds and not is_quoted
    if "role" in kinds and not any(
        _opens_clause(sentence, one.start, ("you",)) for one in sentence.of_kinds("role")
    ):
        kinds.remove("role")  # 'could act as a deterrent'
    to = _address_strength(sentence, kinds)
    orders = _orders(sentence)
    acts = sentence.of_kinds("act", "drop", "command")
    is_bound = "must" in kinds or bool(orders) or "command" in kinds or "role" in kinds
    answer = _answer_strength(sentence, kinds)
    if to >= 2 and answer >= 1 and (acts or is_bound) and (not reported or answer >= 2):
        return 2 if answer >= 2 else 1
    if to >= 2 and answer >= 2:
        return 2
    if _drops_instructions(sentence, orders, reported):
        return 1
    if reported:
        return 0
    if to == 1 and acts and is_bound and _in_order(sentence, answer):
        return 2 if answer >= 2 else 1
    if answer >= 2 and orders and ("reader" in kinds or ("you" in kinds and "strong" in kinds)):
        return 2
    is_here = "here" in kinds or any(
        0 <= value.start - only.end <= _SOON
        for only in sentence.of_kinds("only")
        for value in sentence.of_kinds("value", "strong")
    )
    return int(is_here and answer >= 1 and any(mark.kind in ("act", "command") for mark in orders))


def _address_strength(sentence: MarkedSentence, kinds: set[str]) -> int:
    """2 where the reader is addressed by name, 1 where a machine or a person is among the words, else 0."""
    if not kinds.isdisjoint(("answer", "role")):
        return 2
    machines = sentence.of_kinds("reader", "name", "machine")
    if any(
        _is_followed_by(sentence, mark, _COLON) and _opens_clause(sentence, mark.start)
        for mark in sentence.of_kinds("system")
    ):
        return 2
    near = 12 if sentence.is_wide else 5
    for header in sentence.of_kinds("header"):
        for mark in machines:
            gap = mark.start - header.end
            if -1 <= gap <= near or (sentence.is_wide and 0 <= header.start - mark.end <= near):
                return 2
    for mark in machines:
        if (
            _is_followed_by(sentence, mark, _SPEAKS_TO)
            and _opens_clause(sentence, mark.start)
            and (mark.kind != "machine" or mark.start)
        ):
            return 2
        if mark.kind == "reader" and (
            "here" in kinds or (mark.start <= near and _is_followed_by(sentence, mark, _COLON))
        ):
            return 2
    if any(mark.kind != "name" for mark in machines) or "you" in kinds:
        return 1
    return int(any(_is_named(sentence, mark) for mark in machines))


def _is_named(sentence: MarkedSentence, mark: LexiconMark) -> bool:
    """A bare name stands for a machine where it must do something, not before the name of another thing."""
    near = _FAR if sentence.of_kinds("strong") else 1
    return any(0 <= one.start - mark.end <= near for one in sentence.of_kinds("must", "you"))


def _is_followed_by(sentence: MarkedSentence, mark: LexiconMark, signs: frozenset[str]) -> bool:
    return mark.end < len(sentence.words) and sentence.words[mark.end] in signs


def _opens_clause(sentence: MarkedSentence, at: int, joined: tuple[str, ...] = ("joining", "only")) -> bool:
    """Whether an instruction can begin at a place: it opens a clause, or continues another instruction."""
    if at == 0:
        return True
    before = sentence.words[at - 1]
    if before in _CLAUSE or (sentence.is_wide and before in " 　请請"):
        return True
    return any(mark.end == at for mark in sentence.of_kinds(*joined))


def _orders(sentence: MarkedSentence) -> list[LexiconMark]:
    """Acts that stand where instructions stand, and those that can be nothing else."""
    return [
        mark
        for mark in sentence.of_kinds("act", "drop", "command")
        if mark.kind == "command" or _opens_clause(sentence, mark.start)
    ]


def _answer_strength(sentence: MarkedSentence, kinds: set[str]) -> int:
    """How far the answer asked for is in our vocabulary: 2 in words that no reporter uses, 1 in others, 0 not."""
    if "strong" in kinds:
        return 2
    fields, values = sentence.of_kinds("field"), sentence.of_kinds("value")
    if fields and (values or any(_has_figure(sentence, mark) for mark in fields)):
        return 2
    if values and "only" in kinds:
        return 2
    if len({mark.start for mark in values}) >= 2:
        return 2
    if "role" in kinds and (values or not kinds.isdisjoint(("rules", "act"))):
        return 2
    return int(bool(values))


def _has_figure(sentence: MarkedSentence, field: LexiconMark) -> bool:
    """A figure soon after a field, as in 'confidence is to be set to 1'."""
    near = 14 if sentence.is_wide else 7
    return any(char[0].isdigit() for char in sentence.words[field.end : field.end + near] if char)


def _drops_instructions(sentence: MarkedSentence, orders: list[LexiconMark], reported: bool) -> bool:
    """Whether the text orders the reader to drop its instructions."""
    near = 24 if sentence.is_wide else 9
    prior = sentence.of_kinds("prior", "you")
    for mark in sentence.of_kinds("drop"):
        is_ordered = (
            mark in orders
            or "you" in {one.kind for one in prior}
            or any(0 <= mark.start - one.end <= near for one in orders)
        )
        if not is_ordered and not _is_bound_reader(sentence, mark):
            continue
        if not sentence.is_wide and reported and mark.start and sentence.words[mark.start - 1] not in _CLAUSE:
            continue
        if sentence.is_wide and reported:
            continue
        close = [one for one in sentence.of_kinds("rules") if abs(one.start - mark.start) <= near]
        if close and any(abs(one.start - mark.start) <= near for one in prior):
            return True
    return False


def _is_bound_reader(sentence: MarkedSentence, act: LexiconMark) -> bool:
    """'You must ignore', 'the assistant shall forget': an act that a reader must do. Scripts without spaces state it at
    the end.
    """
    if sentence.is_wide:
        return bool(sentence.of_kinds("reader", "name", "machine", "you", "must")) or any(
            mark.start <= act.start <= mark.end
            for mark in sentence.of_kinds("drop")
            if len(sentence.words) < 60
        )
    for must in sentence.of_kinds("must"):
        if 0 <= act.start - must.end <= 2 and any(
            0 <= must.start - one.end <= 3 for one in sentence.of_kinds("reader", "machine", "name", "you")
        ):
            return True
    return False


def _in_order(sentence: MarkedSentence, answer: int) -> bool:
    """Whether a machine or 'you' is what must act, and how closely the words follow each other."""
    if sentence.is_wide:
        return answer >= 2 or bool(
            sentence.of_kinds("must") and sentence.of_kinds("value") and sentence.of_kinds("act")
        )
    subjects = sentence.of_kinds("reader", "machine", "name", "you")
    musts, acts = sentence.of_kinds("must"), sentence.of_kinds("act", "drop", "command")
    for one in subjects:
        for must in musts:
            gap = must.start - one.end
            far = _FAR if answer >= 2 and one.kind in ("reader", "name") else 4
            if not (-1 <= gap <= far or -1 <= one.start - must.end <= 3):
                continue
            for act in acts:
                away = act.start - max(must.end, one.end)
                if answer >= 2 and -1 <= away <= 12:
                    return True
                if answer == 1 and 0 <= away <= 2 and _answers_soon(sentence, act):
                    return True
    return (
        answer >= 2
        and any(mark.kind == "command" for mark in acts)
        and bool(sentence.of_kinds("you", "reader"))
    )


def _answers_soon(sentence: MarkedSentence, act: LexiconMark) -> bool:
    return any(-1 <= value.start - act.end <= 4 for value in sentence.of_kinds("value"))
