"""The models of a service: their names, and the process that runs them."""

from collections.abc import Mapping, Sequence

from htfi.apps.service.openai_api.engine import EngineProcess
from htfi.apps.service.openai_errors import ModelNotFound
from htfi.wiring.service.language_models import (
    ENCODER,
    LanguageModelPair,
    created_s,
    embedding_size,
    writer_name,
)


class ServedModels:
    """The writer and the encoder, while the service is up. Every tenant asks the same, in turns."""

    def __init__(self, pair: LanguageModelPair, weights: Mapping[str, float] | None = None) -> None:
        self.engine = EngineProcess(pair, weights)
        self.writer, self.encoder = writer_name(pair.target), ENCODER
        self.embedding_size = embedding_size()
        self._created_s = created_s(pair.target)

    @property
    def names(self) -> tuple[str, str]:
        return self.writer, self.encoder

    def check(self, name: str, names: Sequence[str]) -> None:
        """Raises: ModelNotFound."""
        if name not in names:
            raise ModelNotFound(name)

    def body(self, name: str) -> dict[str, str | int]:
        return {"id": name, "object": "model", "created": self._created_s, "owned_by": "htfi"}

    async def close(self) -> None:
        await self.engine.close()
