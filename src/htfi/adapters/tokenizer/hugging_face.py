"""A `tokenizer.json` behind the decoding port: plain text in, plain tokens out. Wiring opens it.

The file is changed in memory before it is read, so that every model's text is treated alike: no template, padding or
truncation; no space put before a text; and every added token is a control token that text cannot write.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from htfi.domain.errors import InvalidInput

try:
    from htfi.adapters.tokenizer import word_pieces_core
except ImportError:  # the package was built without a C compiler
    word_pieces_core = None

_FILE = "tokenizer.json"
_CONTINUED, _MAX_WORD_CHARS = "##", 100  # of a BERT vocabulary
_MAX_BYTES = 256 * 2**20
_MAX_DEPTH = 100
_MAX_ID = 2**24  # a file may name any id; nothing known has a vocabulary a tenth of this


class HuggingFaceTokenizer:
    """The decoding port's `Tokenizer` over one `tokenizer.json`.

    `path` is the file or the folder that holds it. Raises InvalidInput when it is missing, torn or of no known form.
    """

    def __init__(self, path: Path) -> None:
        file = path / _FILE if path.is_dir() else path
        config = _read(file)
        unknown = _unknown_token(config)
        self._tokenizer = _build(_plain_text_config(config), file)
        added = self._tokenizer.get_added_tokens_decoder()
        vocab = _stated_vocab(config)
        if vocab is None:
            vocab = self._tokenizer.get_vocab(with_added_tokens=True)
        else:
            vocab |= {token.content: index for index, token in added.items()}
        if not vocab:
            raise InvalidInput(f"{file}: the vocabulary is empty")
        self._specials = {token.content: index for index, token in added.items() if token.special}
        self._special_ids = frozenset(self._specials.values())
        # What cannot be said otherwise is the unknown token: it stands in for text and controls nothing.
        self._controls = self._special_ids - {vocab.get(unknown or "", -1)}
        self._vocab = vocab
        self._size = max(vocab.values()) + 1
        if self._size > _MAX_ID:
            raise InvalidInput(f"{file}: token id {self._size - 1} is beyond {_MAX_ID}")
        self._pieces = _word_pieces(config, vocab, self._special_ids)
        names = _names_before(config.get("post_processor"))
        self.opening = tuple(vocab[name] for name in names if name in vocab)
        """Ids that the file's template puts before every text, such as '<s>': the model was taught to begin so."""

    @property
    def digest(self) -> str:
        return self._hash

    @cached_property
    def _hash(self) -> str:
        """Found when it is asked for: of 30,000 words it takes as long as reading the file."""
        return _digest(self._vocab, self._special_ids)

    @property
    def vocab_size(self) -> int:
        """One more than the largest id; a network may have more rows than this."""
        return self._size

    def encode(self, text: str) -> list[int]:
        if self._pieces is not None and (found := self._pieces.encode(text)) is not None:
            return found[0]
        return self._checked(
            self._tokenizer.encode(_without_surrogates(text), add_special_tokens=False), text
        )

    def encode_with_spans(self, text: str) -> tuple[list[int], NDArray[np.int64]]:
        """The ids, and where each stands in the text, in characters, [T, 2]; (0, 0) where that is not known."""
        if self._pieces is not None and (found := self._pieces.encode(text)) is not None:
            ids, spans = found
            return ids, np.frombuffer(spans, np.int64).reshape(len(ids), 2)
        encoding = self._tokenizer.encode(_without_surrogates(text), add_special_tokens=False)
        ids = self._checked(encoding, text)
        is_whole = self._controls.isdisjoint(encoding.ids)
        offsets = encoding.offsets if is_whole else [(0, 0)] * len(ids)
        return ids, np.array(offsets, np.int64).reshape(len(ids), 2)

    def decode(self, ids: Sequence[int]) -> str:
        plain = [index for index in ids if index not in self._special_ids and 0 <= index < self._size]
        return self._tokenizer.decode(plain, skip_special_tokens=False)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """All special tokens, as their vocabulary writes them."""
        return tuple(self._specials)

    def special(self, token: str) -> int | None:
        return self._specials.get(token)

    def piece(self, token_id: int) -> str | None:
        return self._token_texts[token_id] if 0 <= token_id < self._size else None

    @cached_property
    def _token_texts(self) -> list[str | None]:
        """What each token adds to the text before it: learnt once, by decoding it after a plain letter."""
        plain = sorted(index for index in self._vocab.values() if index not in self._special_ids)
        alone = self._tokenizer.decode_batch([[index] for index in plain], skip_special_tokens=False)
        anchors = (index for index, text in zip(plain, alone, strict=True) if text == "a")
        anchor = next(anchors, None)
        pieces: list[str | None] = [None] * self._size
        if anchor is None:
            after = alone
        else:
            pairs = [[anchor, index] for index in plain]
            after = self._tokenizer.decode_batch(pairs, skip_special_tokens=False)
        for index, by_itself, text in zip(plain, alone, after, strict=True):
            pieces[index] = text[1:] if anchor is not None and text.startswith("a") else by_itself
        return pieces

    def _checked(self, encoding: Encoding, text: str) -> list[int]:
        """The ids; where a vocabulary's own word spells a control token, those of the text cut in two there."""
        ids = encoding.ids
        if self._controls.isdisjoint(ids):
            return ids
        found = [span for index, span in zip(ids, encoding.offsets, strict=True) if index in self._controls]
        start, end = found[len(found) // 2]  # the middle one, so that a text full of them is not cut too deep
        if end - start >= 2:
            middle = (start + end) // 2
            return self.encode(text[:middle]) + self.encode(text[middle:])
        if end > start:  # a single character cannot be cut: left out
            return self.encode(text[:start]) + self.encode(text[end:])
        return [index for index in ids if index not in self._controls]


def _names_before(processor: Any) -> list[str]:
    """The special tokens that a template puts before a single text."""
    if not isinstance(processor, dict):
        return []
    template = cast("dict[str, Any]", processor)
    if template.get("type") == "Sequence":
        steps = cast("list[Any]", template.get("processors") or [])
        return [name for step in steps for name in _names_before(step)]
    names: list[str] = []
    for piece in cast("list[dict[str, Any]]", template.get("single") or []):
        if "SpecialToken" not in piece:
            break
        names.append(str(piece["SpecialToken"].get("id")))
    return names


def _word_pieces(config: dict[str, Any], vocab: Mapping[str, int], special_ids: Set[int]) -> Any:
    """What divides plain texts by a BERT vocabulary in small letters; None for another, or where none was compiled."""
    parts = {name: config.get(name) for name in ("model", "normalizer", "pre_tokenizer")}
    if word_pieces_core is None or not all(isinstance(part, dict) for part in parts.values()):
        return None
    model, normalizer, pre_tokenizer = cast("list[dict[str, Any]]", list(parts.values()))
    is_plain = (
        model.get("type") == "WordPiece"
        and model.get("continuing_subword_prefix") == _CONTINUED
        and model.get("max_input_chars_per_word") == _MAX_WORD_CHARS
        and normalizer.get("type") == "BertNormalizer"
        and normalizer.get("lowercase") is True
        and normalizer.get("clean_text") is True
        and pre_tokenizer.get("type") == "BertPreTokenizer"
    )
    if not is_plain:
        return None
    first: dict[str, int] = {}
    continued: dict[str, int] = {}
    for word, index in vocab.items():
        if index in special_ids:
            continue
        if word.startswith(_CONTINUED):
            continued[word[len(_CONTINUED) :]] = index
        else:
            first[word] = index
    return word_pieces_core.WordPieces(first, continued)


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidInput(f"{file}: larger than {_MAX_BYTES >> 20} MiB; is it a tokenizer?")
        config = msgspec.json.decode(file.read_bytes())
    except OSError as error:
        raise InvalidInput(
            f"{file}: {error.strerror}; give a Hugging Face folder that holds {_FILE}"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{file}: not readable as JSON ({error}); is the download complete?") from error
    if not isinstance(config, dict):
        raise InvalidInput(f"{file}: not a tokenizer: no object at the top")
    return cast("dict[str, Any]", config)


def _build(config: dict[str, Any], file: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(msgspec.json.encode(config).decode())
    except Exception as error:  # the library raises plain Exception for whatever it cannot read
        raise InvalidInput(f"{file}: not a tokenizer that can be read ({_error_line(error)})") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # the library's name for: text does not become special tokens
    return tokenizer


def _plain_text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The same tokenizer for plain text: every added token but blanks is special, and nothing is put before."""
    added, model = config.get("added_tokens"), config.get("model")
    tokens = cast("list[Any]", added) if isinstance(added, list) else []
    if isinstance(model, dict) and "dropout" in model:  # for training: the same text must give the same ids
        model = {**cast("dict[str, Any]", model), "dropout": None}
    return {
        **{
            key: _without_prefix(value, 0)
            for key, value in config.items()
            if key not in ("model", "added_tokens")
        },
        "model": model,
        "added_tokens": [_marked_as_special(token) for token in tokens],
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }


def _marked_as_special(token: Any) -> Any:
    """An added token that only code writes: '<think>' too, which its model calls ordinary. Blanks stay text."""
    if not isinstance(token, dict):
        return token
    fields = cast("dict[str, Any]", token)
    content = fields.get("content")
    blanks = isinstance(content, str) and content.isspace() and not fields.get("special")
    return {**fields, "special": not blanks}


def _without_prefix(part: Any, depth: int) -> Any:
    """Segments are encoded one by one: a space put before each would be read as the writer's own."""
    if depth > _MAX_DEPTH:
        raise InvalidInput("tokenizer.json: nested too deep")
    if isinstance(part, list):
        return [_without_prefix(item, depth + 1) for item in cast("list[Any]", part) if not _is_prefix(item)]
    if not isinstance(part, dict):
        return part
    if _is_prefix(part):
        return None
    kept = {key: _without_prefix(value, depth + 1) for key, value in cast("dict[str, Any]", part).items()}
    if kept.get("type") == "Metaspace":
        kept.pop("add_prefix_space", None)
        kept["prepend_scheme"] = "never"
    elif kept.get("type") == "ByteLevel":
        kept["add_prefix_space"] = False
    return kept


def _is_prefix(part: Any) -> bool:
    """A normalizer that puts a space before every text, or the decoder that takes it away again."""
    if not isinstance(part, dict):
        return False
    kind = cast("dict[str, Any]", part)
    return kind.get("type") == "Prepend" or (kind.get("type") == "Strip" and "content" in kind)


def _unknown_token(config: dict[str, Any]) -> str | None:
    model = config.get("model")
    if not isinstance(model, dict):
        return None
    fields = cast("dict[str, Any]", model)
    token = fields.get("unk_token")
    if isinstance(token, str):
        return token
    index, vocab = fields.get("unk_id"), fields.get("vocab")  # Unigram names it by its place
    if isinstance(index, int) and isinstance(vocab, list) and 0 <= index < len(cast("list[Any]", vocab)):
        entry = cast("list[list[Any]]", vocab)[index]
        return str(entry[0])
    return None


def _stated_vocab(config: dict[str, Any]) -> dict[str, int] | None:
    """The words of a model that could be read, where the file lists them with their ids: sooner than asked for."""
    model = config.get("model")
    vocab = cast("dict[str, Any]", model).get("vocab") if isinstance(model, dict) else None
    return dict(cast("dict[str, int]", vocab)) if isinstance(vocab, dict) else None


def _digest(vocab: dict[str, int], special: Iterable[int]) -> str:
    chosen = set(special)
    rows = sorted((index, token, index in chosen) for token, index in vocab.items())
    return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()


def _without_surrogates(text: str) -> str:
    """Lone surrogates have no bytes to encode: a question mark each."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _error_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
