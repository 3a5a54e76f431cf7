"""A model's tokens as people read them, in records and messages."""

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
