"""A form's automaton as arrays, for a draft that is written in C; the drafting strategies make one per form."""

from typing import NamedTuple

import numpy as np

from htfi.decoding.form import CompiledForm
from htfi.decoding.noise import Keys, counters
from htfi.decoding.ports import Ids


class FlatForm(NamedTuple):
    """State s admits tokens[begins[s]] to tokens[begins[s + 1]], rising, each with the state that it leads to.

    A state that admits one token forces it; the last state admits none.
    """

    begins: Ids
    tokens: Ids
    nexts: Ids
    counters: Keys  # of the tokens, in the noise


def flat_form(form: CompiledForm) -> FlatForm:
    begins, tokens, nexts = [0], list[int](), list[int]()
    for state, step in enumerate(form.steps):
        admitted = [step.forced] if step.forced >= 0 else step.admitted.ids.tolist()
        tokens += admitted
        nexts += [form.advance(state, token) for token in admitted]
        begins.append(len(tokens))
    begins.append(len(tokens))  # of the last state
    ids = np.array(tokens, np.int64)
    return FlatForm(np.array(begins, np.int64), ids, np.array(nexts, np.int64), counters(ids))
