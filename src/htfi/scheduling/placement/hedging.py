"""When a request is also sent to a second cloud: a pure rule that the edge asks once a request is placed."""

from htfi.scheduling.placement.figures import Decision, Way


def hedge_after_ms(decision: Decision, deadline_ms: float) -> float | None:
    """ms after its opening from which on a request without an answer goes to `decision.second` as well; None: never.

    That is the high quantile of the choice's time, so few requests are sent twice; or sooner, while the second can
    still meet the deadline, but never before the choice's expected time. A second that is too slow is not asked.
    """
    choice, second = decision.choice, decision.second
    if second is None or choice.way is Way.EDGE_ONLY or not second.can_be:
        return None
    latest_ms = deadline_ms - second.expected_ms
    if not latest_ms >= choice.expected_ms:
        return None
    return min(choice.late_ms, latest_ms)
