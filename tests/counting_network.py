"""A network that counts the tokens it reads after a prefix, padding included."""

from typing import Any

from htfi.decoding.ports import Ids, Network


class CountingNetwork:
    def __init__(self, network: Network, num_prefix: int) -> None:
        self._network = network
        self._num_prefix = num_prefix
        self.num_tokens = 0

    def forward(self, ids: Ids, positions: Ids, *rest: Any) -> Any:
        if positions.max() >= self._num_prefix:
            self.num_tokens += ids.size
        return self._network.forward(ids, positions, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)
