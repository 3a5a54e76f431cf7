"""Settings of the sanitiser: how long things are remembered, what counts as much, what a verdict takes."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class SanitiserConfig:
    """Limits of the sanitiser. Strengths and trust run 0–1.

    An item whose combined strength reaches `quarantine_at` is held back, one that reaches `discount_at` counts less.
    """

    discount_at: float = 0.3
    quarantine_at: float = 0.75
    max_headline_chars: int = 500
    max_body_chars: int = 8_000
    max_items: int = 16_384

    def __post_init__(self) -> None:
        if not 0.0 < self.discount_at < self.quarantine_at <= 1.0:
            raise InvalidInput("sanitiser: need 0 < discount_at < quarantine_at <= 1")
        for name in ("max_headline_chars", "max_body_chars", "max_items"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"sanitiser.{name} must be at least 1, not {getattr(self, name)}")
