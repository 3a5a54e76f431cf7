"""Numbers among a command's options."""

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range that NaN and infinity are not in: comparisons alone would let NaN pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
