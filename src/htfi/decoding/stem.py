"""One answer on its way: what was asked, in token ids, and what is settled. The author writes, strategies read."""

from dataclasses import dataclass

from htfi.decoding.form import CompiledForm
from htfi.decoding.noise import key
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
        noise = key(asked.request.seed, ANSWER_STREAM, num_tokens)
        return Place(asked.form.steps[state].admitted, asked.sampling, noise)

    def add(self, token: int) -> list[int]:
        """Settle a chosen token and those that it forces; returns them all."""
        form = self.asked.form
        forced, self.state = form.forced(form.advance(self.state, token))
        settled = [token, *forced]
        self.tokens += settled
        return settled
