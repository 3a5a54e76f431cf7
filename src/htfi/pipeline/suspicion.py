"""What suspicion does to a moment's views, and which views are suspicious themselves. `decide` and the loop ask.

Under suspicion a view weighs no more than `secure.most_weight`, whatever its narrator has earned. A view that diverges
as few ever did, and rests on items of little trust, is trouble: it counts towards suspicion of what comes after it.
"""

from collections.abc import Sequence

from htfi.domain.decision import Decision, View
from htfi.forecasting.forecaster import ForecastBatch
from htfi.narrative.merging import part_weight
from htfi.narrative.secure import divergence_trouble
from htfi.narrative.secure_config import SecureConfig
from htfi.pipeline.reading import Asked
from htfi.pipeline.rooms import Rooms


def most_weight(asked: Asked, config: SecureConfig) -> float:
    """How much a view may weigh at most, 0–1."""
    return config.most_weight if asked.gathered.suspicion else 1.0


def note_divergence(
    places: Sequence[int],
    asked: Sequence[Asked],
    views: Sequence[View | None],
    batch: ForecastBatch,
    rooms: Rooms,
) -> None:
    """Tell the secure mode of views whose divergence is extreme and hangs on items of little trust."""
    secure = rooms.desk.secure
    for place, one, view in zip(places, asked, views, strict=True):
        tilt = batch.tilts.get(place)
        if tilt is None or view is None or tilt.divergence_rank < secure.config.extreme_divergence:
            continue
        symbol, now_ns = one.question.symbol, one.question.as_of_ns
        told_by = _told_by(view, now_ns, rooms)
        trouble = divergence_trouble(symbol, now_ns, tilt.divergence_rank, told_by, secure.config)
        if trouble is not None:
            secure.observe_once(trouble, view.cited, now_ns)


def _told_by(view: View, now_ns: int, rooms: Rooms) -> list[tuple[str, float, float]]:
    """Source, trust and weight of what a view rests on."""
    if not view.parts:
        return [(_source(view.cited, rooms), rooms.desk.trust(view.cited), view.confidence)]
    return [(_source(part.cited, rooms), part.trust, part_weight(part, now_ns)) for part in view.parts]


def _source(cited: Sequence[str], rooms: Rooms) -> str:
    """Where the least trusted of these items came from."""
    items = rooms.desk.items(cited)
    least = min(items, key=lambda item: rooms.desk.trust((item.id,)), default=None)
    return least.source if least is not None else ""


def problems(decision: Decision, config: SecureConfig) -> list[str]:
    """What of a recorded decision goes further than suspicion lets it."""
    tilt, hearing = decision.forecast.tilt, decision.hearing
    if tilt is None or hearing is None or not hearing.suspicion:
        return []
    if max(tilt.weight) > config.most_weight:
        return ["under suspicion its view weighs more than it may"]
    return []
