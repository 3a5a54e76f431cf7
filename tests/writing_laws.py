"""The law of whole writings of a small form, read from the target alone, one token after the other."""

from htfi.decoding.author import LocalAuthor
from htfi.decoding.ports import Floats
from htfi.decoding.rules.rejection import laws
from htfi.domain.writing import Refusal, Request


def law_of_writings(reader: LocalAuthor, request: Request) -> dict[tuple[int, ...], float]:
    """Every writing of the request's form with its probability."""
    asked = reader.ask(request)
    assert not isinstance(asked, Refusal)
    form, sessions = asked.form, reader.sessions
    opened = sessions.open([*asked.prompt, *asked.head], asked.limit)
    row, law = opened.row, dict[tuple[int, ...], float]()

    def go_on(tokens: list[int], state: int, logits: Floats, chance: float) -> None:
        if state == form.done:
            law[tuple(tokens)] = chance
            return
        admitted = form.steps[state].admitted
        (here,) = laws(logits[None], admitted, asked.sampling)
        for token, share in zip(admitted.ids.tolist(), here.tolist(), strict=True):
            forced, after = form.forced(form.advance(state, token))
            length = row.length
            (read,) = sessions.extend([row], [[token, *forced]])
            go_on([*tokens, token, *forced], after, read[-1], chance * share)
            sessions.rewind(row, length)

    go_on(asked.head, asked.state, opened.logits, 1.0)
    sessions.close(row)
    return law
