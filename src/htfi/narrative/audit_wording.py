"""Tells where a draft and its target differed, from recorded rounds and tokens. `audit` puts it into its account."""

from collections.abc import Callable, Sequence

from htfi.domain.decision import Decision, View, Wording
from htfi.domain.writing import DraftRound
from htfi.narrative.rationale import MAX_READER_CHARS
from htfi.narrative.text import clean, quote

Spell = Callable[[int], str]  # a token in words
MAX_TOLD = 12  # places where they differed, told one by one
_AROUND = 4  # tokens told of either side where two answers part
_MAX_PIECE_CHARS = 24


def told_wording(wording: Wording, spell: Spell | None) -> list[str]:
    """Who wrote, how much of it was drafted and stood, and each place where the target said otherwise."""
    target, draft = _model(wording.target), _model(wording.draft)
    if wording.paths:
        num = len(wording.paths)
        same = sum(path == wording.tokens for path in wording.paths)
        return [
            f"{target} answered {num} times, drawn by chance; the answer that is told came {same} of them."
        ]
    if wording.num_settled >= 0:
        rest = len(wording.tokens) - wording.num_settled
        lines = [
            f"{target} settled {wording.num_settled} of {len(wording.tokens)} tokens, {draft or 'the draft'} wrote the "
            f"other {rest}."
        ]
    else:
        lines = [f"{target} settled all {len(wording.tokens)} tokens."]
    num_drafted = sum(len(one.drafted) for one in wording.rounds)
    if not num_drafted:
        return [*lines, "Nothing was drafted."]
    num_stood = sum(len(one.accepted) for one in wording.rounds)
    lines.append(f"{num_drafted} tokens were drafted by {draft or wording.strategy}, {num_stood} stood.")
    return lines + _disputes(wording.rounds, spell)


def _disputes(rounds: Sequence[DraftRound], spell: Spell | None) -> list[str]:
    found = [
        (turn, guesses, one.token)
        for turn, one in enumerate(rounds, 1)
        if one.token >= 0 and (guesses := _refused(one))
    ]
    if not found:
        return ["Nowhere did the target say otherwise."]
    lines = [
        f"Round {turn}: drafted {' or '.join(_piece(guess, spell) for guess in guesses)}, the target said "
        f"{_piece(token, spell)}."
        for turn, guesses, token in found[:MAX_TOLD]
    ]
    if len(found) > MAX_TOLD:
        lines.append(f"And {len(found) - MAX_TOLD} places more.")
    return lines


def _refused(one: DraftRound) -> list[int]:
    """The guesses for the first place at which none stood; empty where all that was read stood."""
    if not one.parents:
        return list(one.drafted[len(one.accepted) : len(one.accepted) + 1])
    last = one.accepted[-1] if one.accepted else -1
    return [one.drafted[node] for node, parent in enumerate(one.parents) if parent == last]


def overturned(first: Decision, amended: Decision, spell: Spell | None) -> list[str]:
    """How an amendment's view differs from the provisional one that it takes the place of."""
    before, after = first.view, amended.view
    if before is None or after is None:
        return []
    lines = [f"It amends {quote(clean(first.id, 96))}: {_gist(before)} before, {_gist(after)} now."]
    if before.wording is not None and after.wording is not None and not after.wording.paths:
        lines.append(_parting(before.wording, after.wording, spell))
    return lines


def _parting(before: Wording, after: Wording, spell: Spell | None) -> str:
    old, new = before.tokens, after.tokens
    if old == new:
        return "The same tokens: the target confirms what was drafted."
    at = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(old), len(new)) if at is None else at
    return (
        f"They part at token {at + 1}: {_pieces(old[at : at + _AROUND], spell)} before, "
        f"{_pieces(new[at : at + _AROUND], spell)} now."
    )


def _gist(view: View) -> str:
    way = "up" if view.direction > 0.0 else "down" if view.direction < 0.0 else "no direction"
    size = f" by {view.size_sigmas:g} sigma" if view.direction else ""
    return f"{way}{size}, volatility {view.volatility_multiplier:g}x, confidence {view.confidence:.0%}"


def _model(version: str) -> str:
    return clean(version.partition("@")[0], MAX_READER_CHARS)


def _pieces(tokens: Sequence[int], spell: Spell | None) -> str:
    return " ".join(_piece(token, spell) for token in tokens) or "nothing"


def _piece(token: int, spell: Spell | None) -> str:
    told = clean(spell(token), _MAX_PIECE_CHARS) if spell is not None else ""
    return quote(told.strip("␣") or told) if told else f"#{token}"
