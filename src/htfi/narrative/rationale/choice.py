"""Chooses the sentences that a rationale begins with: on the band beside the one before, on what is known of the next
bar, on drivers, on the experts.

Compiled where a compiler is at hand (choice.pxd): the same values either way.
"""

from typing import Any

MIN_WIDER_RATIO, MAX_NARROWER_RATIO = 1.10, 1.0 / 1.10  # the band against the one before it
MIN_JUMP_SIGMAS = 4.0
MAX_EQUAL_SPREAD = 0.01  # weights closer together than this name no leader

MIN_LEADING_FACTOR = 1.5  # of a band's width, from which on what is known of the next bar is said first

# Chosen by `choose_opening`, the last one by `with_known`.
OPENINGS = ("first", "steady", "widening", "narrowing", "after_jump", "shock", "event")
_EVENT, _KNOWN = KNOWN_PARTS = ("event", "known")  # an opening, and the sentence that follows another
NUM_CHOICES = 2 * len(OPENINGS)  # each opening, and each with that sentence
_FIRST, _STEADY, _WIDENING, _NARROWING, _AFTER_JUMP, _SHOCK = range(6)  # choice.pxd hides them from Python
_DRIVERS = ("no_drivers", "one_driver", "two_drivers", "three_drivers")
_MIN_WIDER_RATIO, _MAX_NARROWER_RATIO, _MIN_JUMP_SIGMAS = MIN_WIDER_RATIO, MAX_NARROWER_RATIO, MIN_JUMP_SIGMAS

Numbers = Any  # contiguous numbers of one type: an array, or a numpy array of one axis


def choose_opening(
    width: float, previous_width: float, last_return: float, last_sigmas: float, is_shock: bool
) -> int:
    """The opening, by its place in `OPENINGS`. NaN is what is not known. Units as in `writer.state_rationale`."""
    if previous_width != previous_width or last_return != last_return:
        return _FIRST
    if is_shock:
        return _SHOCK
    if last_sigmas >= _MIN_JUMP_SIGMAS or last_sigmas <= -_MIN_JUMP_SIGMAS:
        return _AFTER_JUMP
    if width >= _MIN_WIDER_RATIO * previous_width:
        return _WIDENING
    return _NARROWING if width <= _MAX_NARROWER_RATIO * previous_width else _STEADY


def choose_openings(
    widths: Numbers,
    previous_widths: Numbers,
    last_returns: Numbers,
    last_sigmas: Numbers,
    are_shocks: Numbers,
    openings: Numbers,
) -> None:
    """The same of n series, into `openings`. Shapes: all [n]."""
    width, previous, moves = memoryview(widths), memoryview(previous_widths), memoryview(last_returns)
    sigmas, shocks, found = memoryview(last_sigmas), memoryview(are_shocks), memoryview(openings)
    for row in range(len(width)):
        found[row] = choose_opening(width[row], previous[row], moves[row], sigmas[row], shocks[row] != 0)


def with_known(opening: int, factor: float) -> int:
    """The choice of an opening and the sentence on what is known of the next bar, which makes its band `factor` times
    as wide: that sentence first where it says the most."""
    is_leading = not 1.0 / MIN_LEADING_FACTOR < factor < MIN_LEADING_FACTOR
    if is_leading and OPENINGS[opening] in ("steady", "widening", "narrowing"):
        return OPENINGS.index(_EVENT)
    return len(OPENINGS) + opening


def first_sentences(choice: int, num_drivers: int, is_led: bool | None) -> str:
    """The name of the template so far. `choice`: the place of an opening in `OPENINGS`, or what `with_known` made of
    it; `num_drivers` is −1 where nothing is usual yet; `is_led`: one expert leads, None without experts.
    """
    parts = [OPENINGS[choice % len(OPENINGS)]]
    if choice >= len(OPENINGS):
        parts.append(_KNOWN)
    if num_drivers >= 0:
        parts.append(_DRIVERS[num_drivers])
    if is_led is not None:
        parts.append("leader" if is_led else "equal_experts")
    return "+".join(parts)
