"""Temperature, clock, throttling, load, power and battery of this machine, read from sysfs and procfs.

Any file may be missing at any time. What a machine does not show is None: containers and virtual machines often show
nothing but load. Heartbeats and placement use these figures. Paths are those of
the kernel's ABI documents (sysfs-class-thermal, sysfs-devices-system-cpu, cgroup-v1 and -v2, powercap).
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_MAX_FILE_BYTES = 4096
_MAX_FILES = 64


class SystemFiles:
    """Paths are relative to the root. What cannot be read is None or nothing, never an error."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def text(self, path: str) -> str | None:
        try:
            with (self._root / path).open("rb") as file:
                return file.read(_MAX_FILE_BYTES).decode("ascii", "replace")
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> float | None:
        text = self.text(path)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            return None
        return value if abs(value) < float("inf") else None

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(entry.name for entry in (self._root / folder).iterdir())[:_MAX_FILES]
        except OSError:
            return []

    def named(self, folder: str, prefix: str) -> list[str]:
        """Paths of what is in a folder and begins so."""
        return [f"{folder}/{name}" for name in self.names(folder) if name.startswith(prefix)]


WATTS_PER_CORE = 5.0  # busy, where nothing measures it
_MAX_AGE_S = 1.0
_RESCAN_S = 60.0  # for sensors that came or went
_MAX_SENSORS = 16
_MAX_CORES = 8  # whose clock is read: the others behave the same
_CPU_SENSOR_TYPES = ("x86_pkg_temp", "cpu", "soc", "coretemp", "k10temp", "zenpower", "tctl")
_MIN_C, _MAX_C = -50.0, 150.0  # sensors that are not there report beyond these


@dataclass(frozen=True, slots=True)
class DeviceMetrics:
    """None: unavailable on this machine. Shares run 0–1.

    `throttle_share` is what the clock or the scheduler's quota takes away at the moment. `load` counts runnable tasks
    for each core. `power_w` is estimated from load where no counter measures it.
    """

    temperature_c: float | None
    throttle_share: float | None
    load: float | None
    power_w: float | None


@dataclass(frozen=True, slots=True)
class _DeviceCounters:
    at_s: float
    num_throttled: float | None  # by heat, events
    quota_s: float | None  # lost to the cgroup's quota
    energy_j: float | None
    energy_range_j: float | None


class DeviceMonitor:
    """Reads this machine's metrics at most once a second. For one thread at a time.

    `clock`: seconds, monotonic. `root` stands for `/`.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        root: Path = Path("/"),
        load: Callable[[], tuple[float, float, float]] | None = None,
        num_cores: int | None = None,
    ) -> None:
        self._clock = clock
        self._files = SystemFiles(root)
        self._read_load = load or getattr(os, "getloadavg", None)
        self._num_cores = num_cores or os.cpu_count() or 1
        self._metrics: DeviceMetrics | None = None
        self._before: _DeviceCounters | None = None
        self._read_s = self._scanned_s = float("-inf")
        self._sensors: tuple[str, ...] = ()

    def metrics(self) -> DeviceMetrics:
        now_s = self._clock()
        if self._metrics is None or not 0.0 <= now_s - self._read_s < _MAX_AGE_S:
            self._metrics = self._read(now_s)
            self._read_s = now_s
        return self._metrics

    def _read(self, now_s: float) -> DeviceMetrics:
        if not 0.0 <= now_s - self._scanned_s < _RESCAN_S:
            self._sensors = self._find_sensors()
            self._scanned_s = now_s
        now, before = self._counters(now_s), self._before
        self._before = now
        load, power_w = self._load(), _power_w(now, before)
        if power_w is None and load is not None:
            power_w = self._num_cores * WATTS_PER_CORE * min(load, 1.0)
        throttle_share = _throttle_share(now, before, self._clock_share())
        return DeviceMetrics(self._temperature_c(), throttle_share, load, power_w)

    def _find_sensors(self) -> tuple[str, ...]:
        """Paths of temperatures in m°C, the processor's alone where it has some."""
        zones = [
            (f"{zone}/temp", self._files.text(f"{zone}/type"))
            for zone in self._files.named("sys/class/thermal", "thermal_zone")
        ]
        chips = [
            (f"{chip}/{name}", self._files.text(f"{chip}/name"))
            for chip in self._files.named("sys/class/hwmon", "hwmon")
            for name in self._files.names(chip)
            if name.startswith("temp") and name.endswith("_input")
        ]
        found = [(path, (what or "").lower()) for path, what in (*zones, *chips)]
        own = [path for path, what in found if any(hot in what for hot in _CPU_SENSOR_TYPES)]
        return tuple(own or (path for path, _ in found))[:_MAX_SENSORS]

    def _temperature_c(self) -> float | None:
        read = [self._files.number(path) for path in self._sensors]
        in_c = [milli / 1e3 for milli in read if milli is not None]
        return max((c for c in in_c if _MIN_C < c < _MAX_C), default=None)

    def _clock_share(self) -> float | None:
        shares: list[float] = []
        for core in range(min(self._num_cores, _MAX_CORES)):
            folder = f"sys/devices/system/cpu/cpu{core}/cpufreq"
            now, most = (
                self._files.number(f"{folder}/scaling_cur_freq"),
                self._files.number(f"{folder}/cpuinfo_max_freq"),
            )
            if now is None and most is None:
                break
            if now is not None and most:
                shares.append(min(max(now / most, 0.0), 1.0))
        return sum(shares) / len(shares) if shares else None

    def _load(self) -> float | None:
        if self._read_load is None:
            return None
        try:
            return max(self._read_load()[0], 0.0) / self._num_cores
        except OSError:  # unavailable
            return None

    def _counters(self, now_s: float) -> _DeviceCounters:
        heat = [
            self._files.number(f"sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count")
            for core in range(min(self._num_cores, _MAX_CORES))
        ]
        energy = [
            (self._files.number(f"{zone}/energy_uj"), self._files.number(f"{zone}/max_energy_range_uj"))
            for zone in self._files.named("sys/class/powercap", "intel-rapl:")
            if zone.count(":") == 1  # packages; their parts are within
        ]
        read = [(now, most or 0.0) for now, most in energy if now is not None]
        return _DeviceCounters(
            at_s=now_s,
            num_throttled=sum(n or 0.0 for n in heat) if any(n is not None for n in heat) else None,
            quota_s=self._quota_s(),
            energy_j=sum(now for now, _ in read) / 1e6 if read else None,
            energy_range_j=sum(most for _, most in read) / 1e6 if len(read) == 1 else None,
        )

    def _quota_s(self) -> float | None:
        for path, key, unit_s in (
            ("sys/fs/cgroup/cpu.stat", "throttled_usec", 1e-6),  # version 2
            ("sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e-9),  # version 1
        ):
            for line in (self._files.text(path) or "").splitlines():
                name, _, value = line.partition(" ")
                if name == key:
                    lost = _number(value)
                    return None if lost is None else lost * unit_s
        return None


def _throttle_share(
    now: _DeviceCounters, before: _DeviceCounters | None, clock_share: float | None
) -> float | None:
    """How much is taken away since the last look; `clock_share` is the clock's share of its highest frequency.

    A clock below its highest is not throttling by itself, as idle cores slow down; where heat was counted meanwhile, it
    is. What the quota takes is time lost over time passed.
    """
    if now.num_throttled is None and now.quota_s is None:
        return None
    if before is None or now.at_s <= before.at_s:
        return 0.0
    passed_s = now.at_s - before.at_s
    by_heat = by_quota = 0.0
    if (
        now.num_throttled is not None
        and before.num_throttled is not None
        and now.num_throttled > before.num_throttled
    ):
        by_heat = 1.0 - (clock_share if clock_share is not None else 0.5)
    if now.quota_s is not None and before.quota_s is not None:
        by_quota = min(max(now.quota_s - before.quota_s, 0.0) / passed_s, 1.0)
    return max(by_heat, by_quota)


def _power_w(now: _DeviceCounters, before: _DeviceCounters | None) -> float | None:
    if before is None or now.energy_j is None or before.energy_j is None or now.at_s <= before.at_s:
        return None
    spent_j = now.energy_j - before.energy_j
    if spent_j < 0.0:  # the counter wrapped around
        if not now.energy_range_j:
            return None
        spent_j += now.energy_range_j
    return spent_j / (now.at_s - before.at_s) if spent_j >= 0.0 else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
