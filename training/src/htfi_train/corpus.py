"""Simulated stories as token ids: what the trainer feeds on. Its worker processes find `encoded_stories` by name."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import PlainText, PromptDialect
from htfi.narrative.answer import MARKS
from htfi.narrative.config import EncodingConfig
from htfi.wiring.facts import open_fact_reader
from htfi_train.facts.line_events import LineEvents
from htfi_train.facts.lines import read_lines
from htfi_train.facts.story_facts import StoryFacts
from htfi_train.simulation.corpus import training_passages
from htfi_train.tokenizer import train_tokenizer

SOURCE = "htfi_train.corpus:encoded_stories"
NUM_TEXT_TOKENS = 2_048
_NUM_TOKENIZER_STORIES = 30_000
_TOKENIZER_SEED = 900_000_000  # its companies are met nowhere else

EncodedStory = tuple[list[int], list[float], list[int]]


def encoded_stories(
    seed: int, start: int, tokenizer_file: str, lines_folder: str = ""
) -> Iterator[EncodedStory]:
    """Stories of `seed` from number `start` on, endless: ids, the weight of predicting each, what it belongs to.

    A vocabulary with marks of facts gets stories with facts, of which some are worded as the lines of `lines_folder`.
    """
    vocabulary = Vocabulary(HuggingFaceTokenizer(Path(tokenizer_file)))
    facts, events = None, None
    if vocabulary.dialect is PromptDialect.MINI_FACTS:
        lines = read_lines(Path(lines_folder)) if lines_folder else []
        held_back = [line for line in lines if line.is_held_back]
        facts = StoryFacts(open_fact_reader(EncodingConfig(threads=1)), held_back)
        events = LineEvents([line for line in lines if not line.is_held_back]) if lines else None
    for parts in training_passages(seed, start, facts, events):
        ids: list[int] = []
        weights: list[float] = []
        kinds: list[int] = []
        for segment, kind, weight in parts:
            found = vocabulary.segment(segment)
            ids += found
            weights += [weight] * len(found)
            kinds += [int(kind)] * len(found)
        yield ids, weights, kinds


def open_story_facts(dialect: PromptDialect) -> StoryFacts | None:
    """What gives stories their facts, as a model of this dialect is shown them; None where it knows none. Raises:
    IntegrityError, InvalidInput.
    """
    if dialect is PromptDialect.MINI:
        return None
    return StoryFacts(open_fact_reader(EncodingConfig(threads=1)))


def write_tokenizer(out: Path, num_stories: int = _NUM_TOKENIZER_STORIES) -> None:
    """Train the vocabulary of text, marks and prices on simulated headlines and rationales."""
    train_tokenizer(_story_texts(num_stories), out, NUM_TEXT_TOKENS, [f"<{mark}>" for mark in MARKS])


def _story_texts(num_stories: int) -> Iterator[str]:
    for parts in islice(training_passages(_TOKENIZER_SEED), num_stories):
        for part in parts:
            if isinstance(part.segment, PlainText):
                yield part.segment.text
