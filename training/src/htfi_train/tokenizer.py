"""Trains the tokenizer of our own models: byte-level BPE for text, a token for each price bin and mark.

Training of models calls it once; the same texts give the same file, byte for byte.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as Steps
from tokenizers.trainers import BpeTrainer

from htfi.domain.errors import InvalidInput

MAX_VOCAB = 2_560
BEGIN, END, PAD = "<s>", "</s>", "<pad>"
NUM_BYTES = 256

# Words with the space before them; digits one by one, so that a figure reads the same wherever it stands.
_WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def price_token(index: int) -> str:
    """The token of one price bin."""
    return f"<p{index}>"


def train_tokenizer(
    texts: Iterator[str], out: Path, num_text_tokens: int, marks: Sequence[str], num_prices: int = 129
) -> None:
    """Write `out`: special tokens first (begin, end, padding, price bins, marks), then bytes and their merges.

    Texts are taken as they will be encoded, one segment each: none has a space put before it. `marks` are names with
    their brackets. Few texts give fewer text tokens than asked. Raises InvalidInput.
    """
    specials = [BEGIN, END, PAD, *(price_token(i) for i in range(num_prices)), *marks]
    _check(specials, num_text_tokens)
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Steps(
        [Split(Regex(_WORDS), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=len(specials) + num_text_tokens,
        min_frequency=2,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in specials],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    _write(tokenizer, out)


def _write(tokenizer: Tokenizer, out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(tokenizer.to_str(pretty=False), "utf-8")
    except OSError as error:
        raise InvalidInput(f"{out}: cannot be written: {error.strerror}") from error


def extend_tokenizer(file: Path, out: Path, marks: Sequence[str]) -> None:
    """Write the tokenizer of `file` to `out` with the marks that it lacks, behind all its tokens. Raises
    InvalidInput.
    """
    try:
        tokenizer = Tokenizer.from_str(file.read_text("utf-8"))
    except Exception as error:  # the library raises plain Exception for whatever it cannot read
        raise InvalidInput(f"{file}: not a tokenizer that can be read: {error}") from error
    missing = [mark for mark in marks if tokenizer.token_to_id(mark) is None]
    added = [AddedToken(mark, special=True, normalized=False) for mark in missing]
    tokenizer.add_special_tokens(added)  # pyright: ignore[reportUnknownMemberType]  (its stub names no type)
    if tokenizer.get_vocab_size() > MAX_VOCAB:
        raise InvalidInput(
            f"tokenizer: {tokenizer.get_vocab_size()} tokens; the vocabulary holds {MAX_VOCAB}"
        )
    _write(tokenizer, out)


def _check(specials: Sequence[str], num_text_tokens: int) -> None:
    if len(set(specials)) != len(specials):
        twice = next(token for token in specials if specials.count(token) > 1)
        raise InvalidInput(f"tokenizer: the mark {twice} is named twice")
    if bad := [token for token in specials if len(token) < 3 or token[0] != "<" or token[-1] != ">"]:
        raise InvalidInput(f"tokenizer: a mark is a name in brackets, not {bad[0]!r}")
    if num_text_tokens < NUM_BYTES:
        raise InvalidInput(f"tokenizer: {num_text_tokens} text tokens; bytes alone need {NUM_BYTES}")
    if (total := len(specials) + num_text_tokens) > MAX_VOCAB:
        raise InvalidInput(f"tokenizer: {total} tokens; the vocabulary holds {MAX_VOCAB}")
