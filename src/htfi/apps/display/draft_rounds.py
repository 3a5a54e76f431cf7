"""Rounds of speculation as people read them: what was drafted, what was accepted, what the target chose instead.

`htfi ledger replay` and `htfi bench decode --explain` print them with rich.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import DraftRound
from htfi.pipeline.audit.token_text import TokenText

_ACCEPTED, _REJECTED, _UNCHECKED, _TARGET = "green", "red strike", "bright_black", "bold cyan"
_INDENT = 5  # cells before the tokens of a round
Line = Text | Tree


def print_rounds(to: Console, lines: Iterable[Line]) -> None:
    """Each line beneath its round's number, where it is longer than the terminal is wide."""
    for line in lines:
        if isinstance(line, Tree) or line.cell_len <= to.width:
            to.print(line)
            continue
        for place, part in enumerate(line[_INDENT:].wrap(to, max(to.width - _INDENT, _INDENT))):
            to.print(Text.assemble(line[:_INDENT] if place == 0 else " " * _INDENT, part))


def legend() -> list[Text]:
    """Two lines, each of which fits in 80 columns."""
    return [
        Text.assemble(
            ("✓ drafted and accepted", _ACCEPTED), "   ",
            ("✗ drafted and rejected", _REJECTED), "   ",
            ("· after a rejected token", _UNCHECKED),
        ),
        Text.assemble(("→ the target's token instead", _TARGET), "   ", ("» the target's next token", _TARGET)),
    ]  # fmt: skip


def round_lines(
    tokens: Sequence[int], rounds: Sequence[DraftRound], vocabulary: Vocabulary
) -> Iterator[Line]:
    """What the prompt's own pass and the form gave, then a line or a tree for each round."""
    words = TokenText.of(vocabulary)
    lead = " ".join(map(words, tokens[: _num_tokens_before(tokens, rounds)]))
    yield Text.assemble(
        ("  0  ", "bright_black"), lead, ("  from the prompt's pass and the grammar", "bright_black")
    )
    for number, one in enumerate(rounds, 1):
        yield _draft_tree(number, one, words) if one.parents else _chain_line(number, one, words)


def _num_tokens_before(tokens: Sequence[int], rounds: Sequence[DraftRound]) -> int:
    """How many tokens stood before the first round: those of the rounds are found from the end, between forced ones."""
    at = len(tokens)
    for one in reversed(rounds):
        accepted = [*(one.drafted[node] for node in one.accepted), *([one.token] if one.token >= 0 else [])]
        for token in reversed(accepted):
            at -= 1
            while at > 0 and tokens[at] != token:
                at -= 1
    return max(at, 0)


def _was_rejected(one: DraftRound) -> bool:
    """Whether a guess was there where the target said something else."""
    if not one.parents:
        return len(one.accepted) < len(one.drafted)
    return (one.accepted[-1] if one.accepted else -1) in one.parents


def _num_accepted(one: DraftRound) -> int:
    return len(one.accepted) + (one.token >= 0)


def _chain_line(number: int, one: DraftRound, words: TokenText) -> Text:
    line = Text.assemble((f"{number:>3}  ", "bright_black"))
    for place, token in enumerate(one.drafted):
        line.append_text(_node(token, place in one.accepted, place == len(one.accepted), words)).append(" ")
    return line.append_text(_outcome(one, words))


def _draft_tree(number: int, one: DraftRound, words: TokenText) -> Tree:
    """A tree of what was drafted; a run without branches is one line."""
    root = Tree(
        Text.assemble((f"{number:>3}  ", "bright_black"), _outcome(one, words)), guide_style="bright_black"
    )
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(one.parents):
        children.setdefault(parent, []).append(node)
    read = {-1, *one.accepted}  # the target chose after these
    waiting = [(root, node) for node in children.get(-1, [])]
    while waiting:
        tree, node = waiting.pop(0)
        line = Text()
        while True:
            parent = one.parents[node]
            line.append_text(_node(one.drafted[node], node in one.accepted, parent in read, words)).append(
                " "
            )
            after = children.get(node, [])
            if len(after) != 1:
                break
            node = after[0]
        branch = tree.add(line)
        waiting += [(branch, child) for child in after]
    return root


def _node(token: int, stood: bool, was_read: bool, words: TokenText) -> Text:
    mark, style = ("✓", _ACCEPTED) if stood else ("✗", _REJECTED) if was_read else ("·", _UNCHECKED)
    return Text(mark + words(token), style)


def _outcome(one: DraftRound, words: TokenText) -> Text:
    num, num_tokens = len(one.accepted), _num_accepted(one)
    line = Text()
    if one.token >= 0:
        line.append(f"{'→' if _was_rejected(one) else '»'} {words(one.token)}", _TARGET)
    drafted = f"  {num} of {len(one.drafted)} accepted" if one.drafted else "  nothing drafted"
    return line.append(f"{drafted}, {num_tokens} token{'s' * (num_tokens != 1)} in one pass", "bright_black")
