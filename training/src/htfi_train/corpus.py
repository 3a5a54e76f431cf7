"""Simulated stories as token ids: what the trainer feeds on. Its worker processes find `encoded_stories` by name."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import PlainText
from htfi.narrative.answer import MARKS
from htfi_train.simulation.corpus import training_passages
from htfi_train.tokenizer import train_tokenizer

SOURCE = "htfi_train.corpus:encoded_stories"
NUM_TEXT_TOKENS = 2_048
_NUM_TOKENIZER_STORIES = 30_000
_TOKENIZER_SEED = 900_000_000  # its companies are met nowhere else

EncodedStory = tuple[list[int], list[float], list[int]]


def encoded_stories(seed: int, start: int, tokenizer_file: str) -> Iterator[EncodedStory]:
    """Stories of `seed` from number `start` on, endless: ids, the weight of predicting each, what it belongs to."""
    vocabulary = Vocabulary(HuggingFaceTokenizer(Path(tokenizer_file)))
    for parts in training_passages(seed, start):
        ids: list[int] = []
        weights: list[float] = []
        kinds: list[int] = []
        for segment, kind, weight in parts:
            found = vocabulary.segment(segment)
            ids += found
            weights += [weight] * len(found)
            kinds += [int(kind)] * len(found)
        yield ids, weights, kinds


def write_tokenizer(out: Path, num_stories: int = _NUM_TOKENIZER_STORIES) -> None:
    """Train the vocabulary of text, marks and prices on simulated headlines and rationales."""
    train_tokenizer(_story_texts(num_stories), out, NUM_TEXT_TOKENS, [f"<{mark}>" for mark in MARKS])


def _story_texts(num_stories: int) -> Iterator[str]:
    for parts in islice(training_passages(_TOKENIZER_SEED), num_stories):
        for part in parts:
            if isinstance(part.segment, PlainText):
                yield part.segment.text
