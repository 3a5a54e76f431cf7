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

    def departure_s(self, now_s: float, num_bytes: int, weather: LinkConditions) -> float:
        """When so many bytes have left, in their turn."""
        if math.isinf(weather.bytes_per_s):
            return now_s
        self._free_s = max(self._free_s, now_s) + num_bytes / weather.bytes_per_s
        return max(now_s, self._free_s - weather.burst_bytes / weather.bytes_per_s)


class DeliverySchedule:
    """One direction of one connection. The same seed spoils the same bytes, however they are cut into reads."""

    __slots__ = (
        "_bandwidth",
        "_dice",
        "_direction",
        "_flips",
        "_last_s",
        "_next_flip",
        "_num_bytes",
        "_skew",
        "conditions",
        "notes",
    )

    def __init__(
        self, way: Direction, lane: BandwidthLimit, seed: tuple[int, ...], weather: LinkConditions = CLEAR
    ) -> None:
        self._direction, self._bandwidth = way, lane
        # dice of their own: how many the reads take must not move the places of flips
        self._dice, self._flips = (
            np.random.Generator(np.random.PCG64(one)) for one in np.random.SeedSequence(seed).spawn(2)
        )
        self._skew = self._dice.random()
        self._last_s = -math.inf
        self.notes: list[str] = []  # what was done since the reader took them
        self.set_conditions(weather)

    def set_conditions(self, weather: LinkConditions) -> None:
        """Another weather, for bytes that come from now on."""
        self.conditions = weather
        self._num_bytes = 0
        self._next_flip = self._gap()

    def pieces(self, now_s: float, data: bytes) -> list[TimedBytes]:
        """What arrives of these bytes, in order, none before what came earlier."""
        weather = self.conditions
        num_read = len(data)
        if weather.affects(self._direction):
            data = self._corrupted(data)
        self._num_bytes += num_read
        size = len(data)
        if not math.isinf(weather.bytes_per_s):
            size = max(512, int(weather.bytes_per_s * PIECE_S))
        delay_s = self._delay_s()
        made: list[TimedBytes] = []
        for at in range(0, len(data), max(size, 1)):
            part = data[at : at + size]
            due_s = self._bandwidth.departure_s(now_s, len(part), weather) + delay_s
            self._last_s = max(self._last_s, due_s)
            made.append(TimedBytes(self._last_s, part))
        return made

    def end_s(self, now_s: float) -> float:
        """When an ending that happens now arrives."""
        self._last_s = max(self._last_s, now_s + self._delay_s())
        return self._last_s

    def _delay_s(self) -> float:
        weather = self.conditions
        half_ms = weather.rtt_ms / 2
        delay_ms = half_ms + weather.skew_ms * self._skew
        if weather.jitter_ms > 0:
            if weather.jitter is Jitter.EXPONENTIAL:
                delay_ms += weather.jitter_ms * self._dice.standard_exponential()
            else:
                extra_ms = -math.inf
                while extra_ms < -half_ms:  # at worst every second draw
                    extra_ms = weather.jitter_ms * self._dice.standard_normal()
                delay_ms += extra_ms
        return delay_ms * MS

    def _corrupted(self, data: bytes) -> bytes:
        weather = self.conditions
        end = self._num_bytes + len(data)
        flips: list[tuple[int, int]] = []
        if self._num_bytes <= weather.corrupts_at_byte < end:
            flips.append((weather.corrupts_at_byte, int(self._dice.integers(8))))
        while self._next_flip < end:
            flips.append((int(self._next_flip), int(self._flips.integers(8))))
            self._next_flip += 1 + self._gap()
        if flips:
            changed = bytearray(data)
            for place, bit in flips:
                changed[place - self._num_bytes] ^= 1 << bit
                self.notes.append(f"flipped bit {bit} of byte {place} {self._direction.value}")
            data = bytes(changed)
        if weather.duplicate_rate > 0 and self._dice.random() < weather.duplicate_rate:
            self.notes.append(f"sent {len(data)} bytes twice {self._direction.value}")
            data += data
        return data

    def _gap(self) -> float:
        """Bytes to the next that is corrupted."""
        rate = self.conditions.corrupt_rate
        return self._flips.geometric(rate) - 1 if rate > 0 else math.inf
