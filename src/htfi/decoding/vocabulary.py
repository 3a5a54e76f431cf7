"""A tokenizer as prompts and grammars use it: the one place where segments become ids."""

import math
import unicodedata
from functools import cached_property

import numpy as np

from htfi.decoding.ports import Ids, Tokenizer
from htfi.decoding.prices import PriceBins
from htfi.decoding.sampling import AllowedTokens
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import ControlToken, PlainText, Prompt, PromptDialect, PromptSegment, ScaledMoves

_MIN_BINS = 3
_FACT_TOKENS = ("<e_earnings>", "<rise0>")  # of the first version of the marks of facts


class Vocabulary:
    """Ids of control tokens, text and returns. Text never gives a control token: the tokenizer's `encode` knows none.

    Raises InvalidInput for price tokens that the bins do not fit.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.price_ids = _price_ids(tokenizer)
        self.prices = AllowedTokens.of(np.sort(self.price_ids))
        self._text_or: dict[int | None, AllowedTokens] = {}
        self.bins = PriceBins(len(self.price_ids)) if len(self.price_ids) else None

    @property
    def dialect(self) -> PromptDialect:
        """MINI if the vocabulary has the control tokens of news and views and price tokens, MINI_FACTS with those of
        facts, else PLAIN.
        """
        if self.bins is None or not self._has("<news>", "<view>"):
            return PromptDialect.PLAIN
        return PromptDialect.MINI_FACTS if self._has(*_FACT_TOKENS) else PromptDialect.MINI

    def _has(self, *tokens: str) -> bool:
        return all(self.tokenizer.special(token) is not None for token in tokens)

    def encode(self, prompt: Prompt) -> list[int]:
        """Ids of a prompt. Raises InvalidInput naming a control token that the vocabulary does not have."""
        return [token for segment in prompt for token in self.segment(segment)]

    def segment(self, segment: PromptSegment) -> list[int]:
        match segment:
            case ControlToken(name):
                return [self.mark(name)]
            case PlainText(text):
                return self.tokenizer.encode(text)
            case ScaledMoves(values):
                return self._sigmas(values)

    def mark(self, name: str) -> int:
        token = self.tokenizer.special(f"<{name}>")
        if token is None:
            raise InvalidInput(
                f"the vocabulary has no control token '<{name}>': use the plain dialect for this model"
            )
        return token

    @cached_property
    def text_ids(self) -> Ids:
        """All plain tokens, rising; those that hold part of a character too."""
        return np.array(
            [token for token in range(self.tokenizer.vocab_size) if self.tokenizer.piece(token)], np.int64
        )

    def text_or(self, end: int | None) -> AllowedTokens:
        """All plain tokens and one more, such as the token that ends a text."""
        if end not in self._text_or:
            more = [] if end is None else [end]
            self._text_or[end] = AllowedTokens.of(np.union1d(self.text_ids, more).astype(np.int64))
        return self._text_or[end]

    @cached_property
    def word_ids(self) -> Ids:
        """Plain tokens allowed in free text, rising: no digit of any script, no control character, no brace.

        A token that holds part of a character is excluded: several together could grammar a digit.
        """
        pieces = ((token, self.tokenizer.piece(token)) for token in range(self.tokenizer.vocab_size))
        return np.array([token for token, piece in pieces if piece and _is_wordlike(piece)], np.int64)

    def _sigmas(self, values: tuple[float, ...]) -> list[int]:
        if not all(map(math.isfinite, values)):
            raise InvalidInput("a return in a prompt is not finite; leave out gaps first")
        if self.bins is not None:
            return [int(token) for token in self.price_ids[self.bins.to_bins(values)]]
        return self.tokenizer.encode("".join(f" {round(value, 1) + 0.0:+.1f}" for value in values))


def _price_ids(tokenizer: Tokenizer) -> Ids:
    ids: list[int] = []
    while (token := tokenizer.special(f"<p{len(ids)}>")) is not None:
        ids.append(token)
    return np.array(ids if len(ids) >= _MIN_BINS else [], np.int64)


def _is_wordlike(piece: str) -> bool:
    return all(
        character not in "{}\ufffd"
        and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        and not unicodedata.category(character).startswith("N")
        and unicodedata.numeric(character, None) is None
        for character in piece
    )
