"""A network whose passes last in the simulated network as long as the processor computes them."""

import time
from collections.abc import Callable

from htfi.decoding.ports import Floats, ForwardOutput, Ids, Network, NetworkShape

ConsumeTime = Callable[[float], None]


class MeasuredNetwork:
    """Implements `Network`. Other processes on the machine do not count: it is the time of this process alone."""

    def __init__(self, network: Network, consume_time: ConsumeTime) -> None:
        self._network, self._consume_time = network, consume_time

    @property
    def shape(self) -> NetworkShape:
        return self._network.shape

    @property
    def digest(self) -> str:
        return self._network.digest

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        """As the network's own."""
        began_s = time.process_time()
        output = self._network.forward(ids, positions, mask, keys, values)
        self._consume_time(time.process_time() - began_s)
        return output
