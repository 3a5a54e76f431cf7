"""When the news of a series is read again, by whom, and that a view outlives a restart."""

import json
from typing import Any

import pytest

from htfi.domain.decision import FidelityPlan, Rung
from htfi.domain.events import Bar, News
from htfi.domain.news_view import NewsView
from htfi.narrative.question import Question
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.point import PointColumns, read_columns
from htfi.pipeline.view_cache import ReadRequest, ViewCache

DAY_NS = 86_400 * 10**9


class Recording:
    """A reader that notes what it was asked."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.asked: list[list[str]] = []

    def read(self, questions: list[Question], deadline_ms: float) -> list[NewsView]:
        self.asked.append([question.symbol for question in questions])
        return [
            NewsView(1.0, 0.5, 1.0, 0.7, tuple(item.id for item in question.items), question.as_of_ns, DAY_NS,
                 reader=self.version)
            for question in questions
        ]  # fmt: skip


def asked(symbol: str, rung: Rung, *ids: str) -> ReadRequest:
    items = tuple(News(0, 0, "wire", 1, name, "headline") for name in ids)
    return ReadRequest(f"{symbol}/1d", Question(symbol, DAY_NS, DAY_NS, items), FidelityPlan(rung, "", 50.0))


def readings(max_series: int = 8) -> tuple[ViewCache, dict[Rung, Recording]]:
    readers = {rung: Recording(f"{rung.value}/1") for rung in (Rung.TEMPLATE, Rung.EDGE, Rung.SPECULATIVE)}
    return ViewCache(readers, max_series), readers


def test_a_moment_is_read_in_one_batch_for_each_rung() -> None:
    found, readers = readings()
    views = found.read(
        [asked("A", Rung.EDGE, "n1"), asked("B", Rung.SPECULATIVE, "n1"), asked("C", Rung.EDGE, "n2")]
    )
    assert readers[Rung.EDGE].asked == [["A", "C"]]
    assert readers[Rung.SPECULATIVE].asked == [["B"]]
    assert [view.reader for view in views if view] == ["edge/1", "speculative/1", "edge/1"]


def test_without_news_nobody_is_asked() -> None:
    found, readers = readings()
    assert found.read([asked("A", Rung.EDGE)]) == [None]
    assert readers[Rung.EDGE].asked == []


def test_the_same_news_are_read_once_and_other_news_again() -> None:
    found, readers = readings()
    for ids in (("n1",), ("n1",), ("n2", "n1"), ("n2",)):
        found.read([asked("A", Rung.EDGE, *ids)])
    assert len(readers[Rung.EDGE].asked) == 3


def test_a_shock_keeps_what_a_model_read_before_and_a_higher_rung_reads_anew() -> None:
    found, readers = readings()
    for rung in (Rung.TEMPLATE, Rung.EDGE, Rung.TEMPLATE, Rung.EDGE, Rung.SPECULATIVE, Rung.EDGE):
        found.read([asked("A", rung, "n1")])
    assert [len(readers[rung].asked) for rung in readers] == [1, 1, 1]


def test_views_survive_a_restart_as_json() -> None:
    found, _ = readings()
    before = found.read([asked("A", Rung.EDGE, "n1")])
    again, readers = readings()
    again.restore(json.loads(json.dumps(found.state())))
    assert again.read([asked("A", Rung.EDGE, "n1")]) == before
    assert readers[Rung.EDGE].asked == []


def test_the_number_of_views_kept_is_bounded_and_the_oldest_goes() -> None:
    found, readers = readings(max_series=2)
    for symbol in ("A", "B", "A", "C", "A", "B"):
        found.read([asked(symbol, Rung.EDGE, "n1")])
    assert readers[Rung.EDGE].asked == [["A"], ["B"], ["C"], ["B"]]


def columns_of(bars: list[Bar], as_of_ns: int, rooms: Components, terms: RunContext) -> PointColumns:
    """The columns of series, whether or not they have a forecast yet."""
    rooms.market.close_bars(bars)
    rooms.forecaster.observe(bars)
    forecasts = rooms.forecaster.forecast_bars(bars)
    return read_columns(bars, as_of_ns, rooms.market.read(bars, as_of_ns), forecasts, rooms, terms)


def test_series_share_the_moments_deadline_and_those_left_over_are_read_later() -> None:
    from htfi.pipeline.reading_plans import plan_readings
    from htfi.wiring.loop import build_components
    from htfi.wiring.settings import load_settings, override

    settings = override(load_settings(environment={}), "pipeline", deadline_ms=200.0)
    settings = override(settings, "scheduling", edge_ms=20.0, speculative_ms=80.0)
    _, readers = readings()
    rooms = build_components(settings, readers)
    terms = RunContext(settings.pipeline, settings.scheduling, "", {})
    bars = [
        Bar(2 * DAY_NS, 0, "p", 1, f"S{k}", "1d", DAY_NS, 2 * DAY_NS, 9.0, 9.0, 9.0, 9.0) for k in range(6)
    ]

    def moment() -> list[Rung]:
        series = plan_readings(columns_of(bars, 2 * DAY_NS, rooms, terms), rooms, terms)
        found = [one.request for one in series]
        rooms.views.read(found)
        return [asked.plan.rung for asked in found]

    assert moment() == []  # no news: nothing to read
    rooms.news.receive(News(DAY_NS, DAY_NS, "wire", 1, "n1", "Fed cuts"))
    assert moment() == [Rung.EDGE] * 5 + [Rung.SPECULATIVE]
    while (rungs := moment()) != [Rung.SPECULATIVE] * 6:
        assert set(rungs) <= {Rung.EDGE, Rung.SPECULATIVE}
    assert sorted(name for asked in readers[Rung.SPECULATIVE].asked for name in asked) == [
        f"S{k}" for k in range(6)
    ]
    assert [len(asked) for asked in readers[Rung.EDGE].asked] == [5]


def test_among_many_series_each_is_read_in_its_turn() -> None:
    from htfi.pipeline.reading_plans import plan_readings
    from htfi.wiring.loop import build_components
    from htfi.wiring.settings import load_settings, override

    settings = override(load_settings(environment={}), "pipeline", deadline_ms=100.0)
    settings = override(settings, "scheduling", edge_ms=20.0, speculative_ms=80.0)
    _, readers = readings(max_series=64)
    rooms = build_components(settings, readers)
    terms = RunContext(settings.pipeline, settings.scheduling, "", {})
    headlines = (
        "Fed cuts rates by half a point",
        "Oil jumps after refinery fire",
        "Senate rejects the budget",
        "Payrolls rise far more than expected",
        "Dollar slides to a record low",
    )
    for day in range(2, 7):  # news on all of them every day, time for five
        at = day * DAY_NS
        bars = [Bar(at, 0, "p", 1, f"S{k:02d}", "1d", at - DAY_NS, at, 9.0, 9.0, 9.0, 9.0) for k in range(25)]
        rooms.news.receive(News(at - 1, at - 1, "wire", day, f"n{day}", headlines[day - 2]))
        series = plan_readings(columns_of(bars, at, rooms, terms), rooms, terms)
        rooms.views.read([one.request for one in series])
    names = [name for asked in readers[Rung.EDGE].asked for name in asked]
    assert len(names) == 25
    assert len(set(names)) == 25


def test_readings_of_a_source_in_doubt_queue_behind_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from htfi.pipeline.reading_plans import plan_readings
    from htfi.wiring.loop import build_components
    from htfi.wiring.settings import load_settings

    settings = load_settings(environment={})
    rooms = build_components(settings, readings()[1])
    terms = RunContext(settings.pipeline, settings.scheduling, "", {})
    bars = [
        Bar(2 * DAY_NS, 0, "p", 1, f"S{k}", "1d", DAY_NS, 2 * DAY_NS, 9.0, 9.0, 9.0, 9.0) for k in range(4)
    ]
    told = (
        ("rumours", "Bankruptcy of the group is near, bankers fear", ("S0", "S1")),
        ("wire", "Fed cuts rates by half a point", ("S2", "S3")),
    )
    for source, headline, symbols in told:
        rooms.news.receive(News(DAY_NS, DAY_NS, source, 1, source, headline, symbols))
    order, asked = rooms.views.reading_order, list[dict[int, float]]()

    def asked_of(questions: Any, suspicion: dict[int, float], left_out: Any) -> Any:
        asked.append(suspicion)
        return order(questions, suspicion, left_out)

    credibility = {"rumours": 0.1, "wire": 1.0}
    monkeypatch.setattr(rooms.news.sanitiser, "current_credibility", credibility.__getitem__)
    monkeypatch.setattr(rooms.views, "reading_order", asked_of)
    plan_readings(columns_of(bars, 2 * DAY_NS, rooms, terms), rooms, terms)
    (found,) = asked
    assert found[0] == found[1] > 0.5
    assert found[2] == found[3] == 0.0
