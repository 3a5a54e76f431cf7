"""What a far target made of the edge's guesses, as a record tells it. A pursuit asks at each frame that settles.

A record must tell every pass of the target in an order in which it can be verified again. What the edge did not see,
such as guesses of a draft beside the target, is told by what stood of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from htfi.decoding.form import CompiledForm
from htfi.domain.writing import DraftRound


class Read(NamedTuple):
    """A round, None where only the prompt was read; chosen tokens of the edge's own drafted for it, and that stood."""

    told: DraftRound | None
    num_drafted: int
    num_stood: int


def read_round(
    form: CompiledForm, state: int, settled: Sequence[int], guesses: Sequence[int], is_first: bool
) -> Read:
    """The round that settled these tokens, from a state of the form in which it leaves the next one open.

    `guesses` are the edge's own for the same places, empty where the target read none. With `is_first` the first
    chosen token comes of the prompt, with those that it forces.
    """
    is_open, end = _open_places(form, state, settled)
    begin = 0
    if is_first:
        begin = next((at for at, is_chosen in enumerate(is_open) if is_chosen and at), len(settled))
    fits = list(guesses[:begin]) == list(settled[:begin])
    rest, own, is_open = settled[begin:], guesses[begin:] if fits else guesses[:0], is_open[begin:]
    if True not in is_open:
        return Read(None, 0, 0)
    last = (
        len(is_open) - 1 - is_open[::-1].index(True)
    )  # chosen last: the target's own, what follows is forced
    num_same = num_common(own, rest)
    if num_same == len(rest) and end == form.done:
        return _read(own[:num_same], num_same, -1, is_open)
    if num_same > last:
        return _read(own[:last], last, rest[last], is_open)
    if num_same == last:
        _, before = _open_places(form, state, settled[: begin + last])
        is_open = [*is_open[:last], *_open_places(form, before, own[last:])[0]]
        return _read(own, last, rest[last], is_open)
    told = DraftRound(tuple(rest[:last]), (), tuple(range(last)), rest[last])
    return Read(told, 0, 0)


def num_common(these: Sequence[int], those: Sequence[int]) -> int:
    """How many tokens both begin with alike."""
    num = 0
    for one, other in zip(these, those, strict=False):
        if one != other:
            break
        num += 1
    return num


def _read(drafted: Sequence[int], num_stood: int, token: int, is_open: Sequence[bool]) -> Read:
    told = DraftRound(tuple(drafted), (), tuple(range(num_stood)), token)
    return Read(told, sum(is_open[: len(drafted)]), sum(is_open[:num_stood]))


def _open_places(form: CompiledForm, state: int, tokens: Sequence[int]) -> tuple[list[bool], int]:
    """Which of these tokens the form left open, and its state after them."""
    found: list[bool] = []
    for token in tokens:
        found.append(form.steps[state].forced < 0)
        state = form.advance(state, token)
    return found, state
