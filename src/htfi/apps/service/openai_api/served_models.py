"""The models of a service: their names, the process that runs them, and what tenants have had from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from htfi.apps.service.openai_api.answers import Usage
from htfi.apps.service.openai_api.engine import EngineProcess
from htfi.apps.service.openai_errors import ModelNotFound
from htfi.wiring.service.language_models import ENCODER, created_s, embedding_size, writer_name


@dataclass(slots=True)
class UsageTotal:
    """What a tenant has had so far."""

    num_requests: int = 0
    num_tokens: int = 0
    cpu_s: float = 0.0


class ServedModels:
    """The writer and the encoder, while the service is up. Empty names stand for the shipped pair."""

    def __init__(self, target: str = "", draft: str = "") -> None:
        self.engine = EngineProcess(target, draft)
        self.writer, self.encoder = writer_name(target), ENCODER
        self.embedding_size = embedding_size()
        self.usage: dict[str, UsageTotal] = {}
        self._created_s = created_s(target)

    @property
    def names(self) -> tuple[str, str]:
        return self.writer, self.encoder

    def check(self, name: str, names: Sequence[str]) -> None:
        """Raises: ModelNotFound."""
        if name not in names:
            raise ModelNotFound(name)

    def body(self, name: str) -> dict[str, str | int]:
        return {"id": name, "object": "model", "created": self._created_s, "owned_by": "htfi"}

    def count(self, tenant: str, usage: Usage) -> None:
        total = self.usage.setdefault(tenant, UsageTotal())
        total.num_requests += 1
        total.num_tokens += usage.num_tokens
        total.cpu_s += usage.cpu_s

    async def close(self) -> None:
        await self.engine.close()
