"""Names the words of a headline that counted for what it was read to say: names, figures, words that tell a side.

By code alone, from the text and the kind of event that was recorded: no network is asked, so that a page that shows a
record can have them for each item. Where a model's weights of words were recorded, the heaviest are named too.
"""

import re
from collections.abc import Sequence

from htfi.domain.news import KeyPhrase, PhraseKind
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.axis_words import side_phrases
from htfi.narrative.facts.event_words import set_phrases
from htfi.narrative.facts.figures import FigureRole, figures_in_context
from htfi.narrative.facts.naming import find_name
from htfi.narrative.facts.record import EventGroup, EventKind

MAX_CHARS = 600  # of a text; what stands behind has no part in its facts
MAX_PHRASES = 24
_MAX_WORDS = 4  # of a model, the heaviest
_MIN_NATS = 0.05  # by which a word changes the log likelihood of an answer
_WORD = re.compile(r"\S+")
_KINDS = frozenset(EventKind)
_AXES = {
    EventGroup.COMPANY: ("good for its company", "bad for its company"),
    EventGroup.MACRO: ("more of what is measured", "less of what is measured"),
    EventGroup.CENTRAL_BANK: ("tighter policy", "easier policy"),
    EventGroup.COMMODITY: ("more of what is measured", "less of what is measured"),
    EventGroup.POLITICS: ("easing", "strain"),
}
_UP, _DOWN = "up", "down"
_COMPARED = {1: "above what was expected", 0: "as expected", -1: "below what was expected"}
_ROLES = {
    FigureRole.ACTUAL: "figure: reported",
    FigureRole.EXPECTED: "figure: expected",
    FigureRole.PRIOR: "figure: the one before",
    FigureRole.DIFFERENCE: "figure: the difference from what was expected",
    FigureRole.CHANGE: "figure: the change",
    FigureRole.NONE: "figure",
}


def key_phrases(
    text: str, linker: EntityLinker, event: str = "", symbol: str = "", nats: Sequence[float] = ()
) -> list[KeyPhrase]:
    """The phrases that counted, in the order of the text, none within another; at most `MAX_PHRASES`.

    `event` is the recorded kind of event, '' where none was; `symbol` the asset that was asked about. `nats` [W] is
    what each word adds to the log likelihood of a model's answer; empty where none was weighed.
    """
    text = text[:MAX_CHARS]
    found = [*_names(text, linker, symbol), *_figures(text), *_sides(text, event), *_words(text, nats)]
    kept: list[KeyPhrase] = []
    for one in found:  # those that stand first in `found` hold
        if all(one.end <= other.start or one.start >= other.end for other in kept):
            kept.append(one)
    return sorted(kept[:MAX_PHRASES], key=lambda one: one.start)


def _names(text: str, linker: EntityLinker, symbol: str) -> list[KeyPhrase]:
    found = [
        KeyPhrase(one.start, one.end, PhraseKind.NAME, f"names {one.symbol}") for one in linker.mentions(text)
    ]
    asked = find_name(text, symbol, "") if symbol else None
    return found if asked is None else [KeyPhrase(*asked, PhraseKind.NAME, f"names {symbol}"), *found]


def _figures(text: str) -> list[KeyPhrase]:
    context = figures_in_context(text)
    figures = [
        KeyPhrase(one.figure.start, one.figure.end, PhraseKind.FIGURE, _ROLES[one.figure.role])
        for one in context.placed
    ]
    compared = [
        KeyPhrase(
            one.start,
            one.end,
            PhraseKind.SIDE,
            _COMPARED.get(one.direction, "compared with what was expected"),
        )
        for one in context.comparisons
        if one.direction is not None
    ]
    return [*figures, *compared]


def _sides(text: str, event: str) -> list[KeyPhrase]:
    found = [KeyPhrase(one.start, one.end, PhraseKind.SIDE, one.says) for one in set_phrases(text)]
    lowered = text.lower()
    if event not in _KINDS or len(lowered) != len(
        text
    ):  # a letter whose small form is two would move the others
        return found
    kind = EventKind(event)
    up, down = _AXES.get(kind.group, (_UP, _DOWN))
    told = side_phrases(kind, lowered)
    return [
        *(KeyPhrase(one.start, one.end, PhraseKind.SIDE, up if one.side > 0 else down) for one in told),
        *found,
    ]


def _words(text: str, nats: Sequence[float]) -> list[KeyPhrase]:
    places = [match.span() for match in _WORD.finditer(text)]
    weighed = sorted(zip(nats, places, strict=False), key=lambda one: (-abs(one[0]), one[1]))
    return [
        KeyPhrase(
            *place,
            PhraseKind.WORD,
            f"the model’s answer is {'likelier' if weight > 0 else 'less likely'} with it, by {abs(weight):.2f} nats",
        )
        for weight, place in weighed[:_MAX_WORDS]
        if abs(weight) >= _MIN_NATS
    ]
