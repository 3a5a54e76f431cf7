"""Trains the mini models on simulated stories. The command line asks for it; torch is imported here at the latest."""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.domain.errors import InvalidInput, require_extra
from htfi.narrative.fact_marks import FACT_MARKS
from htfi_train.corpus import SOURCE, write_tokenizer
from htfi_train.tokenizer import extend_tokenizer
from htfi_train.torch.batches import StorySource
from htfi_train.torch.config import TrainingConfig

TOKENIZER = "tokenizer.json"
_DESCRIPTION = "simulated markets, events and headlines of htfi's own generator; no outside data"
_LINES = "labelled lines of corpora/facts"


def parse_training_config(**options: object) -> TrainingConfig:
    """What a person said of a training run, the rest as it is by default. Raises: InvalidInput."""
    try:
        return msgspec.convert(
            {name: value for name, value in options.items() if value is not None}, TrainingConfig
        )
    except msgspec.ValidationError as error:
        raise InvalidInput(f"training: {error}") from error


def train_models(
    config: TrainingConfig,
    out: Path,
    report: Callable[[str], None] | None = None,
    *,
    tokenizer_file: Path | None = None,
    source: str = SOURCE,
    start_from: Path | None = None,
    corpora: Path | None = None,
) -> bool:
    """Train target and draft into `out`/mini-target and `out`/mini-draft; whether the budget was used up.

    The tokenizer is that of `tokenizer_file`, else of `out`/tokenizer.json, which is trained first where it is
    missing. `start_from` is a folder with a pair to begin with: its vocabulary is extended by the marks of facts.
    `corpora` is a folder whose folder 'facts' holds labelled lines that word some of the stories. The same call
    continues what an interrupted one left. Progress goes line by line to `report`, or to standard error.
    Raises: MissingExtra, InvalidInput, DependencyUnavailable.
    """
    require_extra("training", "train", "torch")
    from htfi_train.torch.checkpoints import DRAFT_FOLDER, TARGET_FOLDER, open_output
    from htfi_train.torch.training import train

    say = report or _write_line
    open_output(out)
    file = tokenizer_file or out / TOKENIZER
    pair: tuple[ModelFolder, ModelFolder] | None = None
    if start_from is not None:
        target = start_from / TARGET_FOLDER
        pair = ModelFolder.open(target), ModelFolder.open(start_from / DRAFT_FOLDER)
        if not file.is_file():
            extend_tokenizer(target / TOKENIZER, file, [f"<{mark}>" for mark in FACT_MARKS])
    if tokenizer_file is None and not file.is_file():
        say("training the tokenizer")
        write_tokenizer(file)
    vocab_size = HuggingFaceTokenizer(file).vocab_size
    stories = StorySource(source, str(file), "" if corpora is None else str(corpora / "facts"))
    description = _DESCRIPTION if corpora is None else f"{_DESCRIPTION}; {_LINES}"
    return train(config, out, stories, vocab_size, say, description, pair).finished


def _write_line(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
