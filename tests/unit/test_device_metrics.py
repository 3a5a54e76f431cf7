"""This machine's metrics: read from fake trees of the kernel's files, and from the machine that runs the test."""

from pathlib import Path

import pytest

from htfi.adapters.device.metrics import DeviceMetrics, DeviceMonitor


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def device(root: Path, clock: Clock, load: float = 1.0, num_cores: int = 2) -> DeviceMonitor:
    return DeviceMonitor(clock, root, lambda: (load, 0.0, 0.0), num_cores)


def test_a_machine_that_shows_nothing_gives_none_and_no_error(tmp_path: Path) -> None:
    def silent() -> tuple[float, float, float]:
        raise OSError("no load")

    metrics = DeviceMonitor(Clock(), tmp_path / "nowhere", silent, 4).metrics()
    assert metrics == DeviceMetrics(None, None, None, None)


def test_the_hottest_of_the_processors_own_sensors_counts(tmp_path: Path) -> None:
    write(tmp_path, "sys/class/thermal/thermal_zone0/type", "acpitz\n")
    write(tmp_path, "sys/class/thermal/thermal_zone0/temp", "99000\n")
    write(tmp_path, "sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    write(tmp_path, "sys/class/thermal/thermal_zone1/temp", "61000\n")
    write(tmp_path, "sys/class/hwmon/hwmon0/name", "coretemp\n")
    write(tmp_path, "sys/class/hwmon/hwmon0/temp1_input", "64500\n")
    write(tmp_path, "sys/class/hwmon/hwmon0/temp2_input", "-274000\n")
    write(tmp_path, "sys/class/hwmon/hwmon0/temp3_input", "nonsense\n")
    assert device(tmp_path, Clock()).metrics().temperature_c == pytest.approx(64.5)


def test_a_sensor_of_no_known_name_is_better_than_none(tmp_path: Path) -> None:
    write(tmp_path, "sys/class/thermal/thermal_zone0/type", "acpitz\n")
    write(tmp_path, "sys/class/thermal/thermal_zone0/temp", "45000\n")
    assert device(tmp_path, Clock()).metrics().temperature_c == pytest.approx(45.0)


def test_a_slow_clock_is_throttling_only_where_heat_was_counted(tmp_path: Path) -> None:
    clock = Clock()
    for core, mhz in ((0, 1200), (1, 1800)):
        folder = f"sys/devices/system/cpu/cpu{core}"
        write(tmp_path, f"{folder}/cpufreq/scaling_cur_freq", f"{mhz}000\n")
        write(tmp_path, f"{folder}/cpufreq/cpuinfo_max_freq", "3000000\n")
        write(tmp_path, f"{folder}/thermal_throttle/core_throttle_count", "7\n")
    watched = device(tmp_path, clock)
    assert watched.metrics().throttle_share == 0.0
    clock.now_s += 2.0
    assert watched.metrics().throttle_share == 0.0
    write(tmp_path, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "9\n")
    clock.now_s += 2.0
    assert watched.metrics().throttle_share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (
            "sys/fs/cgroup/cpu.stat",
            "usage_usec 5\nthrottled_usec 1000000\n",
            "usage_usec 9\nthrottled_usec 1500000\n",
        ),
        (
            "sys/fs/cgroup/cpu/cpu.stat",
            "nr_periods 0\nthrottled_time 0\n",
            "nr_periods 9\nthrottled_time 500000000\n",
        ),
    ],
)
def test_time_lost_to_a_quota_is_throttling(tmp_path: Path, path: str, before: str, after: str) -> None:
    clock = Clock()
    watched = device(tmp_path, clock)
    write(tmp_path, path, before)
    watched.metrics()
    write(tmp_path, path, after)
    clock.now_s += 2.0
    assert watched.metrics().throttle_share == pytest.approx(0.25)


def test_power_is_measured_where_a_counter_is_even_when_it_goes_round_and_estimated_elsewhere(
    tmp_path: Path,
) -> None:
    clock = Clock()
    zone = "sys/class/powercap/intel-rapl:0"
    write(tmp_path, f"{zone}/energy_uj", "90000000\n")
    write(tmp_path, f"{zone}/max_energy_range_uj", "100000000\n")
    write(tmp_path, "sys/class/powercap/intel-rapl:0:0/energy_uj", "1\n")
    watched = device(tmp_path, clock, load=1.0)
    assert watched.metrics().power_w == pytest.approx(5.0)  # 2 cores × 5 W × ½
    write(tmp_path, f"{zone}/energy_uj", "10000000\n")
    clock.now_s += 2.0
    assert watched.metrics().power_w == pytest.approx(10.0)


def test_metrics_are_read_again_after_a_second_and_not_before(tmp_path: Path) -> None:
    clock = Clock()
    write(tmp_path, "sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n")
    write(tmp_path, "sys/class/thermal/thermal_zone0/temp", "41000\n")
    watched = device(tmp_path, clock)
    assert watched.metrics().temperature_c == pytest.approx(41.0)
    write(tmp_path, "sys/class/thermal/thermal_zone0/temp", "72000\n")
    clock.now_s += 0.9
    assert watched.metrics().temperature_c == pytest.approx(41.0)
    clock.now_s += 0.2
    assert watched.metrics().temperature_c == pytest.approx(72.0)


def test_this_machine_answers_without_error() -> None:
    metrics = DeviceMonitor().metrics()
    assert metrics.load is None or metrics.load >= 0.0
