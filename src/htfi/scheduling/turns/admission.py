"""Whether a new request is admitted, or told at once that it would be late: pure functions. `FairTurns` calls them."""

from collections.abc import Mapping

from htfi.scheduling.turns.config import TurnsConfig


def finish_ms(own_ms: float, alone_ms: float, tenant: str, backlog_ms: Mapping[str, float]) -> float:
    """When a request would be whole, from now, with tenants sharing the engine evenly.

    `own_ms` of the engine's time it needs, and `alone_ms` pass until it is whole even if it never waits, because
    one pass follows the other. `backlog_ms` is what each tenant has left, this request not counted. A tenant whose
    backlog is smaller than ours is done before us; a larger one takes as much as we do meanwhile.
    """
    ours = backlog_ms.get(tenant, 0.0) + own_ms
    shared = sum(min(theirs, ours) for other, theirs in backlog_ms.items() if other != tenant)
    return max(ours + shared, alone_ms)


def retry_ms(
    own_ms: float,
    alone_ms: float,
    tenant: str,
    deadline_ms: float,
    backlog_ms: Mapping[str, float],
    num_waiting: Mapping[str, int],
    config: TurnsConfig,
) -> float | None:
    """None to admit it; else when to ask again: the queue is full, or the answer would come after its deadline."""
    backlog = sum(backlog_ms.values())
    if num_waiting.get(tenant, 0) >= config.max_waiting_each:
        return _bounded(backlog_ms.get(tenant, 0.0) / 2.0, config)
    if sum(num_waiting.values()) >= config.max_waiting:
        return _bounded(backlog / 2.0, config)
    late_ms = finish_ms(own_ms, alone_ms, tenant, backlog_ms) * config.safety - deadline_ms
    return None if late_ms <= 0.0 else _bounded(late_ms, config)


def _bounded(ms: float, config: TurnsConfig) -> float:
    return min(max(ms, config.least_retry_ms), config.most_retry_ms)
