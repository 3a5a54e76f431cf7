"""What is told of a request's answer: where it was written, by whom, and in which rounds. The linked author asks."""

from msgspec.structs import replace

from htfi.decoding.link.frames import Lead
from htfi.decoding.link.pursuit import Pursuit
from htfi.domain.writing import Writing

ALONE = "edge alone"  # how the place of what the draft finished begins
_TOLD = {
    Lead.PLAIN: ("plain", "plain"),
    Lead.CLOUD: ("cloud", "with its own draft"),
    Lead.LOCKSTEP: ("lockstep", "in lock-step"),
    Lead.FLIGHT: ("flight", "in flight"),
}


def whole(pursuit: Pursuit, draft: str) -> Writing:
    """The target's answer, told to be written where most of it was settled first."""
    asked, tokens, way = pursuit.asked, pursuit.stem.tokens, pursuit.writer
    strategy, place = "", ""  # of a form that leaves nothing open
    if way is not None:
        strategy, told = _TOLD[way.placed.lead]
        place = f"{way.cloud}, {told}"
    return Writing(
        fields=asked.form.fields(tokens),
        tokens=tuple(tokens),
        num_prompt_tokens=len(asked.prompt),
        prompt=tuple(asked.prompt),
        strategy=strategy,
        draft=draft if pursuit.num_drafted else "",
        rounds=tuple(pursuit.rounds),
        place=place,
    )


def provisional(pursuit: Pursuit, written: Writing, draft: str, words: str) -> Writing:
    """What the draft wrote from the last settled token on; its rounds are those of the settled ones."""
    return replace(
        written,
        strategy="alone",
        draft=draft,
        rounds=tuple(pursuit.rounds),
        place=f"{ALONE}, {words}",
        num_settled=len(pursuit.stem.tokens),
    )
