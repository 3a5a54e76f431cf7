"""The grammar of an answer about news, its meaning as a view, and the answer that states a known truth.

A reader asks with `view_grammar` and reads the answer with `parse_answer` and `to_view`; training teaches
`ideal_answer`. A field's number is the place of the chosen option in its scale, so every answer in the grammar is a
view.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FixedField,
    FreeTextField,
    OutputGrammar,
    PlainText,
    Prompt,
    PromptDialect,
    PromptSegment,
)
from htfi.domain.news_view import NewsView
from htfi.narrative.question import AGE_EDGES, MAX_ITEMS, Question, shown_items

CAUSES = ("none", "central_bank", "earnings", "guidance", "legal", "supply", "geopolitics", "rumour")
CONSISTENCIES = (
    "unmoved",
    "with",
    "against",
)  # recent prices have not moved, moved with the news, against it
DIRECTIONS = (-1.0, 0.0, 1.0)
SIZES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0)  # standard deviations of one bar
VOLATILITIES = (0.8, 1.0, 1.25, 1.5, 2.0, 3.0)  # multipliers
CONFIDENCES = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95)
MAX_CITED = 2
SLOTS = ("symbol", "direction", "size", "volatility", "confidence")
MINI_WORDS, PLAIN_WORDS = 32, 48  # tokens at most

_DIRECTION_WORDS = ("down", "flat", "up")

# Every mark of the mini model's vocabulary, in the order of their ids.
MARKS = (
    "news", "/news", "wide", "on", "says", "asset", "ages", "prices", "view", "/view", "end", "path",
    *(f"h{place}" for place in range(1, MAX_ITEMS + 1)),
    *(f"a{age}" for age in range(len(AGE_EDGES) + 1)),
    *(f"c_{cause}" for cause in CAUSES),
    *CONSISTENCIES,
    *_DIRECTION_WORDS,
    *(f"s{place}" for place in range(len(SIZES))),
    *(f"v{place}" for place in range(len(VOLATILITIES))),
    *(f"p_{place}" for place in range(len(CONFIDENCES))),
    *SLOTS,
    "uncited",
)  # fmt: skip


class ConfidenceCalibration(msgspec.Struct, frozen=True):
    """How often a model was right, for each step of the confidence that it states: where it expects no move, and where
    it expects one.

    A model states a confidence; how often it is right has to be measured (`htfi models calibrate`).
    """

    flat: tuple[float, ...] = CONFIDENCES
    moving: tuple[float, ...] = CONFIDENCES

    def __post_init__(self) -> None:
        for shares in (self.flat, self.moving):
            if len(shares) != len(CONFIDENCES) or not all(0.0 < share < 1.0 for share in shares):
                raise InvalidInput(
                    f"trust: {len(CONFIDENCES)} shares between 0 and 1 are needed, not {shares}"
                )


UNCALIBRATED = ConfidenceCalibration()


class ParsedAnswer(msgspec.Struct, frozen=True):
    """An answer as values: what a completion states, or what is true. `cited` counts items from 0."""

    direction: float
    size_sigmas: float
    volatility_multiplier: float
    confidence: float
    consistency: str
    cause: str
    cited: tuple[int, ...]
    words: str


@lru_cache(maxsize=2 * (MAX_ITEMS + 1))
def view_grammar(dialect: PromptDialect, num_items: int) -> OutputGrammar:
    """The grammar of an answer about `num_items` items: citations, cause, consistency, words, then the numbers."""
    return _mini_grammar(num_items) if dialect.is_mini else _plain_grammar(num_items)


def parse_answer(fields: dict[str, str], trust: ConfidenceCalibration = UNCALIBRATED) -> ParsedAnswer:
    """The values of a completion in the grammar of `view_grammar`, its confidence calibrated."""
    place = {name: int(text) for name, text in fields.items() if name != "words"}
    cited = tuple(dict.fromkeys(place[f"cite{turn}"] - 1 for turn in range(MAX_CITED)))
    direction = DIRECTIONS[place["direction"]]
    return ParsedAnswer(
        direction=direction,
        size_sigmas=SIZES[place["size"]],
        volatility_multiplier=VOLATILITIES[place["volatility"]],
        confidence=(trust.moving if direction else trust.flat)[place["confidence"]],
        consistency=CONSISTENCIES[place["consistency"]],
        cause=CAUSES[place["cause"]],
        cited=tuple(item for item in cited if item >= 0),
        words=" ".join(fields["words"].split()),
    )


def to_view(answer: ParsedAnswer, question: Question, half_life_ns: int, reader: str) -> NewsView:
    """The view that a parsed answer gives; a flat direction has no size."""
    items = shown_items(question)
    return NewsView(
        direction=answer.direction,
        size_sigmas=answer.size_sigmas if answer.direction else 0.0,
        volatility_multiplier=answer.volatility_multiplier,
        confidence=answer.confidence,
        cited=tuple(items[place].id for place in answer.cited if place < len(items)),
        as_of_ns=question.as_of_ns,
        half_life_ns=half_life_ns,
        cause=answer.cause,
        consistency=answer.consistency,
        words=answer.words,
        reader=reader,
    )


def ideal_answer(truth: ParsedAnswer) -> Prompt:
    """The mini model's answer that states `truth`, each value as the nearest of its scale."""
    cites = [ControlToken(f"h{place + 1}") for place in truth.cited[:MAX_CITED]]
    cites += [ControlToken("uncited")] * (MAX_CITED - len(cites))
    return (
        ControlToken("view"),
        *cites,
        ControlToken(f"c_{truth.cause}"),
        ControlToken(truth.consistency),
        *_word_segments(truth.words),
        ControlToken("end"),
        ControlToken(_DIRECTION_WORDS[_nearest_step(DIRECTIONS, truth.direction)]),
        ControlToken(f"s{_nearest_step(SIZES, truth.size_sigmas if truth.direction else 0.0)}"),
        ControlToken(f"v{_nearest_step(VOLATILITIES, truth.volatility_multiplier)}"),
        ControlToken(f"p_{_nearest_step(CONFIDENCES, truth.confidence)}"),
        ControlToken("/view"),
    )


def _word_segments(words: str) -> list[PromptSegment]:
    segments: list[PromptSegment] = []
    for part in words.replace("{", "\0{").replace("}", "}\0").split("\0"):
        if part.startswith("{") and part[1:-1] in SLOTS:
            segments.append(ControlToken(part[1:-1]))
        elif part:
            segments.append(PlainText(part if segments else " " + part))
    return segments


def _nearest_step(scale: Sequence[float], value: float) -> int:
    return min(range(len(scale)), key=lambda place: abs(scale[place] - value))


def _marks(names: Sequence[str]) -> tuple[Prompt, ...]:
    return tuple((ControlToken(name),) for name in names)


def _mini_grammar(num_items: int) -> OutputGrammar:
    cites = _marks(["uncited", *(f"h{place}" for place in range(1, num_items + 1))])
    return (
        FixedField((ControlToken("view"),)),
        *(ChoiceField(f"cite{turn}", cites) for turn in range(MAX_CITED)),
        ChoiceField("cause", _marks([f"c_{cause}" for cause in CAUSES])),
        ChoiceField("consistency", _marks(CONSISTENCIES)),
        FreeTextField("words", MINI_WORDS, ControlToken("end"), tuple(ControlToken(slot) for slot in SLOTS)),
        ChoiceField("direction", _marks(_DIRECTION_WORDS)),
        ChoiceField("size", _marks([f"s{place}" for place in range(len(SIZES))])),
        ChoiceField("volatility", _marks([f"v{place}" for place in range(len(VOLATILITIES))])),
        ChoiceField("confidence", _marks([f"p_{place}" for place in range(len(CONFIDENCES))])),
        FixedField((ControlToken("/view"),)),
    )


def _texts(options: Sequence[str]) -> tuple[Prompt, ...]:
    return tuple((PlainText(f" {option}\n"),) for option in options)


def _plain_grammar(num_items: int) -> OutputGrammar:
    cites = _texts(["none", *(f"[{place}]" for place in range(1, num_items + 1))])
    choices = (
        ChoiceField("cause", _texts([cause.replace("_", " ") for cause in CAUSES])),
        ChoiceField("consistency", _texts(CONSISTENCIES)),
        FreeTextField("words", PLAIN_WORDS, PlainText("\n")),
        ChoiceField("direction", _texts(_DIRECTION_WORDS)),
        ChoiceField("size", _texts([f"{size:g}" for size in SIZES])),
        ChoiceField("volatility", _texts([f"{multiplier:g}" for multiplier in VOLATILITIES])),
        ChoiceField("confidence", _texts([f"{100 * confidence:g}%" for confidence in CONFIDENCES])),
    )
    asked = (
        "Kind of event:",
        "Recent prices against the news:",
        "Reason in one sentence without figures:",
        "Direction:",
        "Size in standard deviations:",
        "Volatility multiplier:",
        "Confidence:",
    )
    parts: list[FixedField | ChoiceField | FreeTextField] = []
    for turn in range(MAX_CITED):
        label = "Item that matters most:" if turn == 0 else "Second item, if any:"
        parts += [FixedField((PlainText(label),)), ChoiceField(f"cite{turn}", cites)]
    for label, part in zip(asked, choices, strict=True):
        parts += [FixedField((PlainText(label),)), part]
    return tuple(parts)
