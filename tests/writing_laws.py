"""The law of whole writings of a small form, read from the target alone, one token after the other."""

from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Floats
from htfi.decoding.rules.rejection import token_probabilities
from htfi.domain.generation import GenerationRequest, RequestRefused


def law_of_writings(reader: LocalGenerator, request: GenerationRequest) -> dict[tuple[int, ...], float]:
    """Every writing of the request's form with its probability."""
    asked = reader.tokenize(request)
    assert not isinstance(asked, RequestRefused)
    form, sessions = asked.grammar, reader.sessions
    opened = sessions.open([*asked.prompt, *asked.forced_prefix], asked.max_length)
    row, law = opened.row, dict[tuple[int, ...], float]()

    def go_on(tokens: list[int], state: int, logits: Floats, chance: float) -> None:
        if state == form.done:
            law[tuple(tokens)] = chance
            return
        admitted = form.steps[state].allowed
        (here,) = token_probabilities(logits[None], admitted, asked.sampling)
        for token, share in zip(admitted.ids.tolist(), here.tolist(), strict=True):
            forced, after = form.forced(form.advance(state, token))
            length = row.length
            (read,) = sessions.extend([row], [[token, *forced]])
            go_on([*tokens, token, *forced], after, read[-1], chance * share)
            sessions.rewind(row, length)

    go_on(asked.forced_prefix, asked.start_state, opened.logits, 1.0)
    sessions.close(row)
    return law
