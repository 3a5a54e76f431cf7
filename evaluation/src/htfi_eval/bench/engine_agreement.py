"""How often a rounded network's first choice is the exact one's. `htfi bench engine` asks for the shipped pair."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.ports import Floats, Network
from htfi.decoding.vocabulary import Vocabulary
from htfi.simulation.corpus import training_passages
from htfi.wiring.models.loading import load_network, open_model

NUM_TEXTS = 100
SEED = 1_700_000_000  # of stories that no model was trained on


def story_texts(folder: Path, num_texts: int = NUM_TEXTS, seed: int = SEED) -> list[list[int]]:
    """Unseen stories as token ids: news, question, view and path, what the shipped models read and write."""
    vocabulary = Vocabulary(open_model(folder, "int8").tokenizer)
    return [
        [token for part in parts for token in vocabulary.segment(part.segment)]
        for parts in islice(training_passages(seed), num_texts)
    ]


def top1_agreement(
    folder: Path, precision: str, texts: Sequence[Sequence[int]], cache: Path | None = None
) -> float:
    """The share of positions in `texts` where the likeliest next token in `precision` is the one in float32."""
    opened = ModelFolder.open(folder)
    exact, rounded = load_network(opened, "fp32", cache), load_network(opened, precision, cache)
    same = [_first_choices(exact, text) == _first_choices(rounded, text) for text in texts]
    return float(np.concatenate(same).mean())


def _first_choices(network: Network, text: Sequence[int]) -> Floats:
    return forward_text(network, np.array([text], np.int64)).logits[0].argmax(axis=-1)
