"""Real rounds of a real request, to read: what was drafted, what stood, what was corrected. `--explain` prints them."""

from collections.abc import Iterator

from rich.text import Text

from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import Completion
from htfi.wiring.draft_rounds import Line, legend, round_lines
from htfi_eval.bench.decode.methods import EXPLAINED, METHODS, PLAIN, DecodingMethod, ModelPair
from htfi_eval.bench.decode.prompts import PromptKind, prompt_kinds, request, unseen_story

_SEARCHED = 40  # stories, for one whose answer shows a draft that stands and one that is corrected


def explain(pair: ModelPair) -> Iterator[Line]:
    """A view, then a price path, each by a chain and by a tree; every round of it, in lines for a console."""
    vocabulary = Vocabulary(pair.target.tokenizer)
    plain = METHODS[PLAIN](pair)
    ways = {name: build(pair) for name, build in EXPLAINED.items()}
    yield legend()
    for kind in (kind for kind in prompt_kinds() if kind.name in ("view, T 1", "path, T 1")):
        number = _instructive_request(kind, next(iter(ways.values())), vocabulary)
        asked = request(kind, number, vocabulary)
        yield Text()
        yield from _question(kind, number)
        told = plain.write(asked)
        for name, way in ways.items():
            yield from _answer(name, way.write(asked), told, vocabulary)


def _instructive_request(kind: PromptKind, way: DecodingMethod, vocabulary: Vocabulary) -> int:
    """The first story, of those that no measured run asks, whose answer has rounds of both sorts."""
    for number in range(2_000_000, 2_000_000 + _SEARCHED):
        rounds = way.write(request(kind, number, vocabulary)).rounds
        if len({len(one.accepted) == len(one.drafted) for one in rounds if one.drafted}) > 1:
            return number
    return 2_000_000


def _question(kind: PromptKind, number: int) -> Iterator[Text]:
    told = unseen_story(number)
    yield Text(
        f"{kind.description}: {told.name or told.symbol} ({told.symbol}), temperature {kind.temperature:g}",
        "bold",
    )
    for place, item in enumerate(told.items, 1):
        yield Text.assemble((f"  h{place} ", "bright_black"), item.headline)
    moves = " ".join(f"{value:+.1f}" for value in told.context[-8:])
    yield Text.assemble(("  last moves, in σ ", "bright_black"), moves)


def _answer(name: str, answer: Completion, plain: Completion, vocabulary: Vocabulary) -> Iterator[Line]:
    yield Text()
    num_passes, num_plain = len(answer.rounds), len(plain.rounds)
    same = "the same tokens" if answer.tokens == plain.tokens else "OTHER TOKENS"
    yield Text.assemble(
        (name, "bold"),
        f": {len(answer.tokens)} tokens in {num_passes} passes of the target; plain decoding: {same} in {num_plain}",
    )
    yield from round_lines(answer.tokens, answer.rounds, vocabulary)
