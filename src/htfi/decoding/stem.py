"""One answer on its way: what was asked, in token ids, and what is settled. The author writes, strategies read."""

from dataclasses import dataclass, field

import numpy as np

from htfi.decoding.form import CompiledForm
from htfi.decoding.noise import Keys, keys
from htfi.decoding.sampling import Place, Sampling
from htfi.domain.writing import Request

ANSWER_STREAM = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in token ids: `head` is what the form forces at its beginning, read together with the prompt."""

    request: Request
    form: CompiledForm
    prompt: list[int]
    num_shared: int
    head: list[int]
    state: int  # of the form, after the head
    sampling: Sampling

    @property
    def limit(self) -> int:
        """Tokens of prompt and answer at most."""
        return len(self.prompt) + self.form.longest


@dataclass(slots=True, eq=False)
class Stem:
    """An answer as far as it is settled: `tokens` with those that the form forces, and the form's state after them."""

    asked: Asked
    tokens: list[int]
    state: int
    _noise: Keys | None = field(default=None, init=False, repr=False)

    @property
    def noise(self) -> Keys:
        """The keys of all places that the answer may have, worked out once."""
        if self._noise is None:
            places = np.arange(self.asked.form.longest, dtype=np.int64)
            self._noise = keys(self.asked.request.seed, np.full_like(places, ANSWER_STREAM), places)
        return self._noise

    @property
    def is_done(self) -> bool:
        return self.state == self.asked.form.done

    @property
    def num_left(self) -> int:
        """Tokens that may still come, at most."""
        return self.asked.form.longest - len(self.tokens)

    def place(self, state: int, num_tokens: int) -> Place:
        """Where token number `num_tokens` of the answer is chosen, in a state that leaves it open."""
        asked = self.asked
        return Place(asked.form.steps[state].admitted, asked.sampling, int(self.noise[num_tokens]))

    def add(self, token: int) -> list[int]:
        """Settle a chosen token and those that it forces; returns them all."""
        form = self.asked.form
        forced, self.state = form.forced(form.advance(self.state, token))
        settled = [token, *forced]
        self.tokens += settled
        return settled
