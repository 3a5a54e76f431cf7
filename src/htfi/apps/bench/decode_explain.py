"""Real rounds of a real request, to read: what was drafted, what stood, what was corrected. `--explain` prints them."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text
from rich.tree import Tree

from htfi.apps.bench.decode_prompts import Kind, kinds, request, story
from htfi.apps.bench.decode_ways import EXPLAINED, PLAIN, WAYS, Pair, Way
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.writing import DraftRound, Refusal, Request, Writing
from htfi.narrative.answer import MARKS

_SEARCHED = 40  # stories, for one whose answer shows a draft that stands and one that is corrected
_STOOD, _FELL, _UNREAD, _OWN = "green", "red strike", "bright_black", "bold cyan"
Line = Text | Tree


@dataclass(frozen=True, slots=True)
class Words:
    """Tokens as people read them: marks by name, returns in standard deviations, a space as ␣."""

    names: dict[int, str]
    vocabulary: Vocabulary

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "Words":
        names = {vocabulary.mark(name): f"<{name}>" for name in MARKS}
        if vocabulary.bins is not None:
            told = zip(vocabulary.price_ids.tolist(), vocabulary.bins.centres.tolist(), strict=True)
            names |= {token: f"{centre:+.2f}σ" for token, centre in told}
        return cls(names, vocabulary)

    def __call__(self, token: int) -> str:
        piece = self.names.get(token) or self.vocabulary.tokenizer.piece(token) or f"#{token}"
        return piece.replace(" ", "␣")


def explain(pair: Pair) -> Iterator[Line]:
    """A view, then a price path, each by a chain and by a tree; every round of it, in lines for a console."""
    vocabulary = Vocabulary(pair.tokenizer)
    words = Words.of(vocabulary)
    plain = WAYS[PLAIN](pair)
    ways = {name: build(pair) for name, build in EXPLAINED.items()}
    yield _legend()
    for kind in (kind for kind in kinds() if kind.name in ("view, T 1", "path, T 1")):
        number = _telling(kind, next(iter(ways.values())), vocabulary)
        asked = request(kind, number, vocabulary)
        yield Text()
        yield from _question(kind, number)
        told = _written(plain, asked)
        for name, way in ways.items():
            yield from _answer(name, _written(way, asked), told, words)


def _telling(kind: Kind, way: Way, vocabulary: Vocabulary) -> int:
    """The first story, of those that no measured run asks, whose answer has rounds of both sorts."""
    for number in range(2_000_000, 2_000_000 + _SEARCHED):
        rounds = _written(way, request(kind, number, vocabulary)).rounds
        if len({len(one.accepted) == len(one.drafted) for one in rounds if one.drafted}) > 1:
            return number
    return 2_000_000


def _written(way: Way, asked: Request) -> Writing:
    (answer,) = way.author.write([asked])
    if isinstance(answer, Refusal):
        raise DependencyUnavailable(f"{way.watched.name} refused: {answer.reason}")
    return answer


def _legend() -> Text:
    return Text.assemble(
        ("✓ drafted, and the target says the same", _STOOD), "   ",
        ("✗ drafted, and the target says otherwise", _FELL), "   ",
        ("· behind one that fell", _UNREAD), "   ",
        ("→ said instead, + said next", _OWN),
    )  # fmt: skip


def _question(kind: Kind, number: int) -> Iterator[Text]:
    told = story(number)
    yield Text(
        f"{kind.what}: {told.name or told.symbol} ({told.symbol}), temperature {kind.temperature:g}", "bold"
    )
    for place, item in enumerate(told.items, 1):
        yield Text.assemble((f"  h{place} ", "bright_black"), item.headline)
    moves = " ".join(f"{value:+.1f}" for value in told.context[-8:])
    yield Text.assemble(("  last moves, in σ ", "bright_black"), moves)


def _answer(name: str, answer: Writing, plain: Writing, words: Words) -> Iterator[Line]:
    yield Text()
    num_passes, num_plain = len(answer.rounds), len(plain.rounds)
    same = "the same tokens" if answer.tokens == plain.tokens else "OTHER TOKENS"
    yield Text.assemble(
        (name, "bold"),
        f": {len(answer.tokens)} tokens in {num_passes} passes of the target; plain decoding: {same} in {num_plain}",
    )
    num_told = len(answer.tokens) - sum(_num_settled(one) for one in answer.rounds)
    lead = " ".join(map(words, answer.tokens[:num_told]))
    yield Text.assemble(
        ("  0  ", "bright_black"), lead, ("  from the prompt's own pass and the form", "bright_black")
    )
    for number, one in enumerate(answer.rounds, 1):
        yield _branches(number, one, words) if one.parents else _chain(number, one, words)


def _fell(one: DraftRound) -> bool:
    """Whether a guess was there where the target said something else."""
    if not one.parents:
        return len(one.accepted) < len(one.drafted)
    return (one.accepted[-1] if one.accepted else -1) in one.parents


def _num_settled(one: DraftRound) -> int:
    return len(one.accepted) + (one.token >= 0)


def _chain(number: int, one: DraftRound, words: Words) -> Text:
    line = Text.assemble((f"{number:>3}  ", "bright_black"))
    for place, token in enumerate(one.drafted):
        line.append_text(_node(token, place in one.accepted, place == len(one.accepted), words)).append(" ")
    return line.append_text(_verdict(one, words))


def _branches(number: int, one: DraftRound, words: Words) -> Tree:
    """A tree of what was drafted; a run without branches is one line."""
    root = Tree(
        Text.assemble((f"{number:>3}  ", "bright_black"), _verdict(one, words)), guide_style="bright_black"
    )
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(one.parents):
        children.setdefault(parent, []).append(node)
    last = one.accepted[-1] if one.accepted else -1
    waiting = [(root, node) for node in children.get(-1, [])]
    while waiting:
        tree, node = waiting.pop(0)
        line = Text()
        while True:
            parent = one.parents[node]
            line.append_text(_node(one.drafted[node], node in one.accepted, parent == last, words)).append(
                " "
            )
            after = children.get(node, [])
            if len(after) != 1:
                break
            node = after[0]
        branch = tree.add(line)
        waiting += [(branch, child) for child in after]
    return root


def _node(token: int, stood: bool, was_read: bool, words: Words) -> Text:
    mark, style = ("✓", _STOOD) if stood else ("✗", _FELL) if was_read else ("·", _UNREAD)
    return Text(mark + words(token), style)


def _verdict(one: DraftRound, words: Words) -> Text:
    num, settled = len(one.accepted), _num_settled(one)
    line = Text()
    if one.token >= 0:
        line.append(f"{'→' if _fell(one) else '+'} {words(one.token)}", _OWN)
    told = f"  {num} of {len(one.drafted)} stood" if one.drafted else "  nothing drafted"
    return line.append(f"{told}, {settled} token{'s' * (settled != 1)} by one pass", "bright_black")
