"""A model folder's chat template, rendered in Jinja's immutable sandbox; what users wrote stays text.

A template writes control tokens as text. So that a user cannot, a mark of this rendering is put into every control
token that a message spells, and taken out once the rendered text was cut at its control tokens.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from htfi.domain.errors import InvalidInput


class ChatTemplate:
    """One template. `control_tokens` are those of the vocabulary; `constants` such as bos_token it may read.

    Raises: InvalidInput for a template that is not one.
    """

    def __init__(
        self, source: str, control_tokens: Sequence[str], constants: Mapping[str, str], where: str
    ) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        self._control_tokens = sorted((one for one in control_tokens if one), key=len, reverse=True)
        self._constants = dict(constants)
        self._where = where
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise InvalidInput(f"{where}: the chat template cannot be read: {_line(error)}") from error

    def pieces(self, messages: Sequence[tuple[str, str]]) -> list[tuple[str, bool]]:
        """Roles and contents as text up to where the answer begins: pieces, each with whether it is a control token.

        Raises: InvalidInput, where the template refuses the messages.
        """
        mark = f"\ue000{secrets.token_hex(8)}\ue001"
        turns = [{"role": role, "content": self._marked(content, mark)} for role, content in messages]
        try:
            rendered = self._template.render(
                messages=turns, add_generation_prompt=True, raise_exception=_refuse, **self._constants
            )
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise InvalidInput(
                f"{self._where}: the chat template refuses these messages: {_line(error)}"
            ) from error
        return [(piece.replace(mark, ""), is_control) for piece, is_control in self._divided(rendered)]

    def _marked(self, content: str, mark: str) -> str:
        for token in self._control_tokens:
            content = content.replace(token, token[0] + mark + token[1:])
        # At its ends a content may hold a part of a token, of which the template or the next message has the rest;
        # many templates trim contents.
        body = content.strip()
        before, _, after = content.partition(body) if body else (content, "", "")
        return self._with_ends_marked(before + self._with_ends_marked(body, mark) + after, mark)

    def _with_ends_marked(self, text: str, mark: str) -> str:
        if not text:
            return text
        is_within = any(text in token[1:-1] for token in self._control_tokens)
        if is_within or any(
            text.endswith(token[:num]) for token in self._control_tokens for num in range(1, len(token))
        ):
            text += mark
        if is_within or any(
            text.startswith(token[-num:]) for token in self._control_tokens for num in range(1, len(token))
        ):
            text = mark + text
        return text

    def _divided(self, text: str) -> list[tuple[str, bool]]:
        pieces: list[tuple[str, bool]] = []
        begin = at = 0
        firsts = {token[0] for token in self._control_tokens}
        while at < len(text):
            token = None
            if text[at] in firsts:
                token = next((one for one in self._control_tokens if text.startswith(one, at)), None)
            if token is None:
                at += 1
                continue
            if at > begin:
                pieces.append((text[begin:at], False))
            pieces.append((token, True))
            begin = at = at + len(token)
        if begin < len(text):
            pieces.append((text[begin:], False))
        return pieces


def _refuse(message: str) -> str:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
