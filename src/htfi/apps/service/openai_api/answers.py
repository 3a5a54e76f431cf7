"""Answers of OpenAI's form: whole ones, and the pieces of a stream."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from htfi.apps.service.openai_api.messages import Counts, Part, WrittenToken


@dataclass(slots=True)
class Usage:
    """What one request took, over its texts; the last counts of each."""

    by_text: dict[tuple[int, int], Counts] = field(default_factory=dict[tuple[int, int], Counts])
    num_embedded: int = 0
    embedding_cpu_s: float = 0.0

    def add(self, part: Part) -> None:
        self.by_text[part.id, part.choice] = part.counts

    @property
    def num_prompt(self) -> int:
        """Tokens of the prompts, each once."""
        return sum({number: counts.num_prompt for (number, _), counts in self.by_text.items()}.values())

    @property
    def num_written(self) -> int:
        return sum(one.num_written for one in self.by_text.values())

    @property
    def num_tokens(self) -> int:
        return self.num_prompt + self.num_written + self.num_embedded

    @property
    def cpu_s(self) -> float:
        """Processor time of the engine."""
        return self.embedding_cpu_s + sum(one.cpu_s for one in self.by_text.values())

    def body(self) -> dict[str, Any]:
        """As OpenAI states it, and beside it what speculation did."""
        counts = list(self.by_text.values())
        cached = {number: one.num_reused for (number, _), one in self.by_text.items()}
        return {
            "prompt_tokens": self.num_prompt,
            "completion_tokens": self.num_written,
            "total_tokens": self.num_prompt + self.num_written,
            "prompt_tokens_details": {"cached_tokens": sum(cached.values())},
            "speculation": {
                "draft_tokens": sum(one.num_drafted for one in counts),
                "accepted_tokens": sum(one.num_accepted for one in counts),
                "rounds": sum(one.num_rounds for one in counts),
            },
        }


@dataclass(slots=True)
class WholeText:
    """One text, put together from its parts."""

    text: str = ""
    tokens: list[WrittenToken] = field(default_factory=list[WrittenToken])
    finish: str = ""

    def add(self, part: Part) -> None:
        self.text += part.text
        self.tokens += part.tokens
        self.finish = part.finish


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer under way: its name, and how its pieces and the whole are written."""

    name: str
    model: str
    fingerprint: str
    is_chat: bool
    with_logprobs: bool
    created_s: int = field(default_factory=lambda: int(time.time()))

    def whole(self, texts: Sequence[WholeText], usage: Usage) -> dict[str, Any]:
        choices: list[dict[str, Any]] = []
        for index, one in enumerate(texts):
            said = (
                {"message": {"role": "assistant", "content": one.text, "refusal": None}}
                if self.is_chat
                else {"text": one.text}
            )
            choices.append(
                {
                    "index": index,
                    **said,
                    "logprobs": self._logprobs(one.tokens, 0),
                    "finish_reason": one.finish,
                }
            )
        return {**self._head(is_piece=False), "choices": choices, "usage": usage.body()}

    def first(self, index: int) -> dict[str, Any] | None:
        """The piece that opens a choice of a chat; a text has none."""
        if not self.is_chat:
            return None
        return self._piece(index, {"delta": {"role": "assistant", "content": ""}}, None, None)

    def pieces(self, index: int, part: Part, offset: int) -> list[dict[str, Any]]:
        """A part as pieces; `offset` characters of the choice's tokens came before."""
        found: list[dict[str, Any]] = []
        logprobs = self._logprobs(part.tokens, offset) if part.tokens else None
        if part.text or logprobs:
            said = {"delta": {"content": part.text}} if self.is_chat else {"text": part.text}
            found.append(self._piece(index, said, logprobs, None))
        if part.finish:
            found.append(
                self._piece(index, {"delta": {}} if self.is_chat else {"text": ""}, None, part.finish)
            )
        return found

    def last(self, usage: Usage) -> dict[str, Any]:
        """The piece that states the usage."""
        return {**self._head(is_piece=True), "choices": [], "usage": usage.body()}

    def _piece(
        self, index: int, said: dict[str, Any], logprobs: dict[str, Any] | None, finish: str | None
    ) -> dict[str, Any]:
        choice = {"index": index, **said, "logprobs": logprobs, "finish_reason": finish}
        return {**self._head(is_piece=True), "choices": [choice]}

    def _head(self, *, is_piece: bool) -> dict[str, Any]:
        kind = "text_completion"
        if self.is_chat:
            kind = "chat.completion.chunk" if is_piece else "chat.completion"
        return {
            "id": self.name,
            "object": kind,
            "created": self.created_s,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }

    def _logprobs(self, tokens: Sequence[WrittenToken], offset: int) -> dict[str, Any] | None:
        if not self.with_logprobs:
            return None
        if self.is_chat:
            content = [
                {
                    **_token(one.text, one.logprob),
                    "top_logprobs": [_token(text, logprob) for text, logprob in one.top],
                }
                for one in tokens
            ]
            return {"content": content, "refusal": None}
        offsets: list[int] = []
        for one in tokens:
            offsets.append(offset)
            offset += len(one.text)
        return {
            "tokens": [one.text for one in tokens],
            "token_logprobs": [one.logprob for one in tokens],
            "top_logprobs": [dict(reversed(one.top)) for one in tokens],  # of equal texts the likeliest
            "text_offset": offsets,
        }


def _token(text: str, logprob: float) -> dict[str, Any]:
    is_part = "\ufffd" in text  # of a character: its bytes are not known alone
    return {"token": text, "logprob": logprob, "bytes": None if is_part else list(text.encode())}
