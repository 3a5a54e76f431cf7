"""Opens a language model behind an OpenAI-compatible address. The command line asks for it; httpx is imported here."""

import os
from typing import TYPE_CHECKING, Any

import msgspec

from htfi.adapters.openai.config import FrontierConfig
from htfi.domain.errors import InvalidInput

if TYPE_CHECKING:
    from htfi.adapters.openai.author import OpenAIAuthor


def open_frontier(**said: Any) -> "OpenAIAuthor":
    """An author with the budget and limits of `FrontierConfig`; close it, or use `with`.

    Raises: InvalidInput, MissingExtra.
    """
    from htfi.adapters.openai.author import OpenAIAuthor

    try:
        config = msgspec.convert(said, FrontierConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"frontier: {error}") from error
    return OpenAIAuthor(config, os.environ)
