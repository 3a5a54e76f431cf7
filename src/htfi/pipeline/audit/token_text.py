"""A model's tokens as people read them, in records and messages, and where two sequences of them differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from htfi.decoding.vocabulary import Vocabulary
from htfi.narrative.answer import MARKS


@dataclass(frozen=True, slots=True)
class TokenText:
    """Tokens as people read them: marks by name, returns in standard deviations, a space as ␣."""

    names: dict[int, str]
    vocabulary: Vocabulary

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "TokenText":
        marks = {name: vocabulary.tokenizer.special(f"<{name}>") for name in MARKS}
        names = {token: f"<{name}>" for name, token in marks.items() if token is not None}
        if vocabulary.bins is not None:
            centres = zip(vocabulary.price_ids.tolist(), vocabulary.bins.centres.tolist(), strict=True)
            names |= {token: f"{centre:+.2f}σ" for token, centre in centres}
        return cls(names, vocabulary)

    def __call__(self, token: int) -> str:
        piece = self.names.get(token) or self.vocabulary.tokenizer.piece(token) or f"#{token}"
        return piece.replace(" ", "␣")


def first_difference(
    recorded: Sequence[int], expected: Sequence[int], spell: Callable[[int], str], begin: int = 0
) -> str:
    """The first place where tokens differ, in words; empty where they are the same. Places count from `begin`."""
    for place, (one, other) in enumerate(zip(recorded, expected, strict=False), begin):
        if one != other:
            return f"token {place}: recorded {_token_text(one, spell)}, expected {_token_text(other, spell)}"
    if len(recorded) == len(expected):
        return ""
    place = begin + min(len(recorded), len(expected))
    if len(recorded) > len(expected):
        return f"token {place}: recorded {_token_text(recorded[place - begin], spell)}, expected the end"
    return f"token {place}: recorded the end, expected {_token_text(expected[place - begin], spell)}"


def _token_text(token: int, spell: Callable[[int], str]) -> str:
    return f"'{spell(token)}' ({token})"
