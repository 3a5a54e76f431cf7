"""Drafting a whole chain in one call of a network that can: what it is given and gives back. `Chain` asks for it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from htfi.decoding.form import CompiledForm
from htfi.decoding.noise import Keys, counters
from htfi.decoding.ports import Floats, Ids


class FlatForm(NamedTuple):
    """A form's automaton as arrays. State s admits tokens[begins[s]] to tokens[begins[s + 1]], rising, each with the
    state that it leads to.

    A state that admits one token forces it; the last state admits none.
    """

    begins: Ids
    tokens: Ids
    nexts: Ids
    counters: Keys  # of the tokens, in the noise


class Chained(NamedTuple):
    """Drafted tokens, the form's state after each, and how many tokens the row has read: unread ones, then drafted."""

    tokens: list[int]
    states: list[int]
    num_read: int


@runtime_checkable
class Chaining(Protocol):
    """A network that reads, chooses and reads on by itself. A draft's step is then not paid for in Python."""

    def chain(
        self,
        keys: Floats,
        values: Floats,
        slot: int,
        length: int,
        unread: Sequence[int],
        form: FlatForm,
        state: int,
        num_chosen: int,
        temperature: float,
        noise: Keys,
    ) -> Chained:
        """Draft on for one sequence: read what it lacks, choose, read on; forced tokens come along.

        keys and values are an arena's [L, B, G, S, D], in which `slot` holds `length` tokens: what is read is written
        behind them, and there must be room for `unread` and as many tokens as there are keys of `noise`, one for each
        place to come. At most `num_chosen` tokens are chosen; the last is not read, nor what it forces.
        """
        ...


def flat_form(form: CompiledForm) -> FlatForm:
    leads = [form.leads(state) for state in range(len(form.steps))]
    begins = np.cumsum([0, *(len(ids) for ids, _ in leads), 0])  # the last state admits nothing
    tokens = np.concatenate([ids for ids, _ in leads])
    return FlatForm(begins, tokens, np.concatenate([nexts for _, nexts in leads]), counters(tokens))
