"""Slow counts as ill before dead does: signs, their words, and no flapping between ill and well."""

from collections.abc import Callable

from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.degradation import Degradation, assess
from htfi.scheduling.health.messages import NodeHealthMetrics

CONFIG = HealthConfig()
BEAT_S = 0.075


class Patient:
    def __init__(self) -> None:
        self.illness = Degradation()
        self.now_s = 0.0
        self.turns: list[tuple[float, bool]] = []

    def live(
        self, seconds: float, vitals: Callable[[float], NodeHealthMetrics], rtt_ms: float | None = 20.0
    ) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += BEAT_S
            was_ill = self.illness.is_degraded
            self.illness = assess(self.illness, vitals(self.now_s), rtt_ms, self.now_s, CONFIG)
            if self.illness.is_degraded != was_ill:
                self.turns.append((self.now_s, self.illness.is_degraded))


def _working(
    step_ms: float = 4.0, num_rows: int = 4, **others: object
) -> Callable[[float], NodeHealthMetrics]:
    return lambda now_s: NodeHealthMetrics(
        num_rows=num_rows,
        step_p50_ms=step_ms,
        step_p95_ms=step_ms * 1.5,
        progress=int(now_s * 1e3),
        **others,  # type: ignore[arg-type]
    )


def _still(queue: int = 0) -> Callable[[float], NodeHealthMetrics]:
    vitals = NodeHealthMetrics(queue=queue, progress=77)
    return lambda _: vitals


def test_a_node_whose_steps_take_three_times_as_long_as_usual_is_ill_and_says_why() -> None:
    patient = Patient()
    patient.live(20.0, _working(4.0))
    patient.live(2.0, _working(11.0))
    assert not patient.illness.is_degraded
    patient.live(20.0, _working(4.0))
    patient.live(1.0, _working(16.0))
    assert patient.illness.symptoms.startswith("a step takes 16.0 ms, usually 4.")
    patient.live(1.0, _working(4.0))
    assert patient.illness.is_degraded  # not yet trusted again
    patient.live(2.0, _working(4.0))
    assert not patient.illness.is_degraded
    assert len(patient.turns) == 2


def test_larger_passes_are_not_taken_for_slow_ones() -> None:
    patient = Patient()
    for _ in range(6):
        patient.live(5.0, _working(1.0, num_rows=1))
        patient.live(5.0, _working(9.0, num_rows=16))
    assert patient.turns == []


def test_a_node_that_was_slow_from_the_first_is_not_ill_and_a_change_that_stays_becomes_usual() -> None:
    patient = Patient()
    patient.live(60.0, _working(40.0))
    assert patient.turns == []
    patient.live(150.0, _working(160.0))
    assert patient.illness.is_degraded  # illness does not soon pass for health
    patient.live(1_800.0, _working(160.0))
    assert not patient.illness.is_degraded


def test_standing_still_with_work_waiting_is_illness_and_idling_is_not() -> None:
    patient = Patient()
    patient.live(10.0, _working())
    patient.live(30.0, _still())
    assert patient.turns == []
    patient.live(1.2, _still(queue=1))
    patient.live(0.5, _still(queue=1))
    assert "no progress" in patient.illness.symptoms
    # Its passes are long: it may stand still for longer.
    other = Patient()
    other.live(4.5, lambda now_s: NodeHealthMetrics(num_rows=9, step_p95_ms=500.0, progress=int(now_s / 4.0)))
    assert other.turns == []


def test_heat_throttle_queue_and_distance_make_ill_and_unknown_figures_do_not() -> None:
    for vitals, rtt_ms, words in (
        (_working(temperature_c=95.0), 20.0, "95 °C"),
        (_working(throttle_share=0.5), 20.0, "throttled 50% of the time"),
        (_working(queue=500), 20.0, "500 requests wait"),
        (_working(), 900.0, "the round trip takes 900 ms"),
    ):
        patient = Patient()
        patient.live(10.0, _working(temperature_c=60.0))
        patient.live(1.0, vitals, rtt_ms)
        assert patient.illness.symptoms == words
    patient = Patient()
    patient.live(30.0, _working(temperature_c=float("nan")), None)
    patient.live(30.0, _still(), 120.0)
    assert patient.turns == []


def test_a_figure_that_swings_about_its_limit_does_not_flap() -> None:
    patient = Patient()
    patient.live(20.0, _working(4.0))
    for index in range(400):
        patient.live(BEAT_S, _working(temperature_c=93.0 if index % 2 else 91.0))
    assert patient.turns == []  # never long enough in one go
    for index in range(40):
        patient.live(1.0, _working(temperature_c=93.0 if index % 2 else 89.0))
    assert len(patient.turns) == 1  # ill, and not well again in between
