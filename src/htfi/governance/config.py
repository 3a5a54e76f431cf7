"""Settings of policy: the limits that its rules judge by. Wiring composes them; `judge` reads them."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput

ANY_SYMBOL = "*"


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """Limits; each is part of the settings' digest, so a decision names the limits it was judged by.

    `allowed_symbols` lists what may be forecast: '*' allows all, nothing allows none. `restricted_symbols`
    are kept back whatever the first list says. Ages are in seconds, except that a bar may be late by
    `max_bar_age_lengths` times its own length. Band width and return are natural-log returns.
    """

    allowed_symbols: tuple[str, ...] = (ANY_SYMBOL,)
    restricted_symbols: tuple[str, ...] = ()
    max_quote_age_s: float = 60.0
    max_bar_age_lengths: float = 1.0
    min_bar_age_s: float = 5.0
    max_bar_lead_s: float = 1.0
    max_band_width: float = 0.50
    max_jump_sigmas: float = 25.0
    max_jump_return: float = 0.20
    max_quarantine_share: float = 0.05

    def __post_init__(self) -> None:
        for name in (
            "max_quote_age_s",
            "max_bar_age_lengths",
            "min_bar_age_s",
            "max_bar_lead_s",
            "max_band_width",
            "max_jump_sigmas",
            "max_jump_return",
        ):
            if not getattr(self, name) > 0.0:
                raise InvalidInput(f"policy.{name} must be above 0, not {getattr(self, name)}")
        if not 0.0 <= self.max_quarantine_share <= 1.0:
            raise InvalidInput(
                f"policy.max_quarantine_share must lie in 0..1, not {self.max_quarantine_share}"
            )
