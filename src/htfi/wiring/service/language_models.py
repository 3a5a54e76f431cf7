"""What the service's language models are: the pair that writes, its chat form, and the encoder of sentences."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from htfi import models
from htfi.decoding.checkpoint.folder import parse_architecture
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.rules.coupled import CoupledRule
from htfi.decoding.texts.batch import TextBatch
from htfi.decoding.texts.json_grammar import TokenTexts
from htfi.decoding.texts.logprobs import LogprobRule
from htfi.domain.errors import InvalidInput
from htfi.narrative.config import EncodingConfig
from htfi.wiring.encoder import shipped_encoder
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.loading import LoadableModel, open_model
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.models.speculation import speculative_generator
from htfi.wiring.sentence_encoder import SentenceEncoder

WRITER, ENCODER = "htfi-mini", "htfi-encoder"
_SETTINGS, _TEMPLATE = "tokenizer_config.json", "chat_template.jinja"
_ENDS = ("</s>", "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>")
_MAX_BYTES = 16 << 20


class LanguageModelPair(NamedTuple):
    """Folders of a target and its draft; without a target the shipped pair."""

    target: str = ""
    draft: str = ""


SHIPPED_PAIR = LanguageModelPair()


def writer_name(target: str) -> str:
    """The name by which clients ask for the pair."""
    return Path(target).resolve().name if target else WRITER


def check_language_models(pair: LanguageModelPair) -> None:
    """Raises: InvalidInput for folders that cannot serve; the shipped pair is checked when it is first asked."""
    if pair.target:
        LanguageModels(pair)


class LanguageModels:
    """The models of a service. Folders are checked when it is made, and loaded when they are first needed.

    A target that is named without a draft writes alone. Raises: InvalidInput, IntegrityError.
    """

    def __init__(self, pair: LanguageModelPair = SHIPPED_PAIR) -> None:
        target, draft = pair
        config = ModelsConfig(target, draft)
        self.draft: LoadableModel | None = None
        if target and not draft:
            self.target = open_model(Path(target), config.precision)
        else:
            self.target, self.draft = open_model_pair(config)
        self.name = writer_name(target)
        self._settings = _read_settings(self.target.folder.path)

    @cached_property
    def rule(self) -> LogprobRule:
        return LogprobRule(CoupledRule())

    @cached_property
    def engine(self) -> LocalGenerator:
        """The target with its draft. Raises: InvalidInput, DependencyUnavailable."""
        config = DecodingConfig(draft_length="measured")  # any text may be asked for; no ledger replays it
        if self.draft is None:
            return self.target.generator(self.target.network, config, rule=self.rule)
        return speculative_generator(self.target, self.draft, config, self.rule)

    @cached_property
    def batch(self) -> TextBatch:
        return TextBatch(self.engine, self.rule)

    @cached_property
    def token_texts(self) -> TokenTexts:
        return TokenTexts(self.engine.vocabulary)

    @cached_property
    def encoder(self) -> SentenceEncoder:
        return shipped_encoder(EncodingConfig())

    @property
    def fingerprint(self) -> str:
        """Names what decides the tokens of a seed: the target's weights and precision."""
        return f"fp_{self.engine.digest[:12]}"

    @property
    def max_tokens(self) -> int:
        """The most tokens of a prompt and its answer."""
        return self.engine.sessions.network.shape.max_positions

    @cached_property
    def end(self) -> int | None:
        """The token that ends a text."""
        stated = _content(self._settings.get("eos_token"))
        names = (stated,) if stated else _ENDS
        found = (self.target.tokenizer.special(name) for name in names)
        return next((token for token in found if token is not None), None)

    def text_prompt(self, text: str) -> list[int]:
        """The ids of a text to go on from, after the folder's first token."""
        return [*self.target.tokenizer.opening, *self.target.tokenizer.encode(text)]

    def ids_prompt(self, ids: Sequence[int]) -> list[int]:
        """A prompt in ids of plain tokens. Raises: InvalidInput for a control token or one that is none."""
        for token in ids:
            if self.target.tokenizer.piece(token) is None:
                raise InvalidInput(f"prompt: {token} must be a plain token of this vocabulary")
        return [*self.target.tokenizer.opening, *ids]

    def chat_prompt(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """The ids of messages (role, content), up to where the answer begins. Raises: InvalidInput."""
        template = self._template
        if template is None:
            return self.text_prompt(
                "".join(f"{role}: {content}\n" for role, content in messages) + "assistant:"
            )
        ids: list[int] = []
        for piece, is_control in template.pieces(messages):
            token = self.target.tokenizer.special(piece) if is_control else None
            ids += self.target.tokenizer.encode(piece) if token is None else [token]
        return ids

    @cached_property
    def _template(self) -> "Any | None":
        folder = self.target.folder.path
        file = folder / _TEMPLATE
        source: Any = self._settings.get("chat_template")
        if file.is_file():
            source = _read_text(file)
        if isinstance(source, list):  # several by name
            named = cast("list[dict[str, Any]]", source)
            source = next((one.get("template") for one in named if one.get("name") == "default"), None)
        if not isinstance(source, str):
            return None
        from htfi.adapters.chat_template.jinja import ChatTemplate  # only where a folder has one

        constants = {
            name: text
            for name in ("bos_token", "eos_token", "pad_token", "unk_token")
            if (text := _content(self._settings.get(name)))
        }
        return ChatTemplate(source, self.target.tokenizer.special_tokens, constants, str(folder))


def embedding_size() -> int:
    """The numbers of an embedding."""
    file = models.FACTS / "config.json"
    return parse_architecture(file.read_bytes(), str(file)).hidden_size


def created_s(target: str) -> int:
    """When the folder's files were written, in seconds of Unix time."""
    folder = Path(target) if target else models.TARGET
    return int((folder / "config.json").stat().st_mtime)


def _content(token: object) -> str:
    if isinstance(token, dict):
        token = cast("dict[str, Any]", token).get("content")
    return token if isinstance(token, str) else ""


def _read_settings(folder: Path) -> dict[str, Any]:
    file = folder / _SETTINGS
    if not file.is_file():
        return {}
    try:
        found = json.loads(_read_text(file))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} is not readable as JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{file}: no object at the top")
    return cast("dict[str, Any]", found)


def _read_text(file: Path) -> str:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidInput(f"{file}: larger than {_MAX_BYTES >> 20} MiB")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
