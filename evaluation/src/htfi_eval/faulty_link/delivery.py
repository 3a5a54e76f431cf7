"""When each byte of one direction arrives, and as what: pure of sockets and clocks. The proxy asks for every read."""

import math
from typing import NamedTuple

import numpy as np

from htfi_eval.faulty_link.conditions import CLEAR, Direction, Jitter, LinkConditions

MS = 1e-3
PIECE_S = 0.004  # of a limited bandwidth that travels as one piece


class TimedBytes(NamedTuple):
    due_s: float
    data: bytes


class BandwidthLimit:
    """The bandwidth of one direction, which all connections share: a token bucket kept as one instant."""

    __slots__ = ("_free_s",)

    def __init__(self) -> None:
        self._free_s = -math.inf

    def departure_s(self, now_s: float, num_bytes: int, conditions: LinkConditions) -> float:
        """When so many bytes have left, in their turn."""
        if math.isinf(conditions.bytes_per_s):
            return now_s
        self._free_s = max(self._free_s, now_s) + num_bytes / conditions.bytes_per_s
        return max(now_s, self._free_s - conditions.burst_bytes / conditions.bytes_per_s)


class DeliverySchedule:
    """One direction of one connection. The same seed spoils the same bytes, however they are cut into reads."""

    __slots__ = (
        "_bandwidth",
        "_direction",
        "_flips",
        "_last_s",
        "_next_flip",
        "_num_bytes",
        "_rng",
        "_skew",
        "conditions",
        "notes",
    )

    def __init__(
        self, way: Direction, lane: BandwidthLimit, seed: tuple[int, ...], conditions: LinkConditions = CLEAR
    ) -> None:
        self._direction, self._bandwidth = way, lane
        # rng of their own: how many the reads take must not move the places of flips
        self._rng, self._flips = (
            np.random.Generator(np.random.PCG64(one)) for one in np.random.SeedSequence(seed).spawn(2)
        )
        self._skew = self._rng.random()
        self._last_s = -math.inf
        self.notes: list[str] = []  # what was done since the reader took them
        self.set_conditions(conditions)

    def set_conditions(self, conditions: LinkConditions) -> None:
        """Another conditions, for bytes that come from now on."""
        self.conditions = conditions
        self._num_bytes = 0
        self._next_flip = self._gap()

    def pieces(self, now_s: float, data: bytes) -> list[TimedBytes]:
        """What arrives of these bytes, in order, none before what came earlier."""
        conditions = self.conditions
        num_read = len(data)
        if conditions.affects(self._direction):
            data = self._corrupted(data)
        self._num_bytes += num_read
        size = len(data)
        if not math.isinf(conditions.bytes_per_s):
            size = max(512, int(conditions.bytes_per_s * PIECE_S))
        delay_s = self._delay_s()
        made: list[TimedBytes] = []
        for at in range(0, len(data), max(size, 1)):
            part = data[at : at + size]
            due_s = self._bandwidth.departure_s(now_s, len(part), conditions) + delay_s
            self._last_s = max(self._last_s, due_s)
            made.append(TimedBytes(self._last_s, part))
        return made

    def end_s(self, now_s: float) -> float:
        """When an ending that happens now arrives."""
        self._last_s = max(self._last_s, now_s + self._delay_s())
        return self._last_s

    def _delay_s(self) -> float:
        conditions = self.conditions
        half_ms = conditions.rtt_ms / 2
        delay_ms = half_ms + conditions.skew_ms * self._skew
        if conditions.jitter_ms > 0:
            if conditions.jitter is Jitter.EXPONENTIAL:
                delay_ms += conditions.jitter_ms * self._rng.standard_exponential()
            else:
                extra_ms = -math.inf
                while extra_ms < -half_ms:  # at worst every second draw
                    extra_ms = conditions.jitter_ms * self._rng.standard_normal()
                delay_ms += extra_ms
        return delay_ms * MS

    def _corrupted(self, data: bytes) -> bytes:
        conditions = self.conditions
        end = self._num_bytes + len(data)
        flips: list[tuple[int, int]] = []
        if self._num_bytes <= conditions.corrupts_at_byte < end:
            flips.append((conditions.corrupts_at_byte, int(self._rng.integers(8))))
        while self._next_flip < end:
            flips.append((int(self._next_flip), int(self._flips.integers(8))))
            self._next_flip += 1 + self._gap()
        if flips:
            changed = bytearray(data)
            for place, bit in flips:
                changed[place - self._num_bytes] ^= 1 << bit
                self.notes.append(f"flipped bit {bit} of byte {place} {self._direction.value}")
            data = bytes(changed)
        if conditions.duplicate_rate > 0 and self._rng.random() < conditions.duplicate_rate:
            self.notes.append(f"sent {len(data)} bytes twice {self._direction.value}")
            data += data
        return data

    def _gap(self) -> float:
        """Bytes to the next that is corrupted."""
        rate = self.conditions.corrupt_rate
        return self._flips.geometric(rate) - 1 if rate > 0 else math.inf
