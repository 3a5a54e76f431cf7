"""What is worth it is read by a frontier model after the release, over real HTTP, until the money is spent."""

from pathlib import Path

from chat_server import ChatServer, chat_server

from htfi.domain.decision import Decision, Rung
from htfi.domain.events import Bar, FeedItem, News
from htfi.domain.news import Route
from htfi.narrative.ports import Closable
from htfi.narrative.readers import TemplateReader
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.models.readers import open_readers
from htfi.wiring.settings import Settings, load_settings, override, settings_digest
from late_network import ListFeed, ListOutlet, days

HEADLINES = (
    "Acme raises its full-year outlook after record orders",
    "Fire shuts Acme's largest plant for at least a month",
    "Central bank cuts rates by half a point in a surprise move",
    "Acme to buy rival Bolt for eight billion dollars in cash",
)


def items() -> list[FeedItem]:
    """Daily bars of two symbols; a headline on one of them every tenth day."""
    bars = [item for item in days(44, ("A", "B")) if isinstance(item, Bar)]
    news = [
        News(bars[80 + 2 * k].available_at_ns - 1, 0, "wire", k, f"n{k}", headline, ("A",))
        for k, headline in enumerate(HEADLINES)
    ]
    return sorted([*bars, *news], key=lambda item: item.available_at_ns)


def settings_for(server: ChatServer, budget_cents: float) -> Settings:
    settings = override(
        override(load_settings(environment={}), "encoding", model="heads"),
        "models",
        frontier_url=server.url,
        frontier_model="big",
        frontier_key="",
    )
    settings = override(settings, "pipeline", deadline_ms=1e5, group_ms=3.6e6)
    settings = override(settings, "scheduling", high_divergence=1.0)
    nothing = dict.fromkeys(
        ("min_relevance", "min_novelty", "min_draft_worth", "min_target_worth", "min_frontier_worth"), 0.0
    )
    return override(settings, "routing", **nothing, frontier_budget_cents=budget_cents)


def decide(settings: Settings, folder: Path) -> list[Decision]:
    ledger = open_ledger(folder, origin="test.run", durable=False)
    readers = open_readers(settings.models, settings.narrative, settings.decoding)
    readers = {rung: readers[rung] for rung in (Rung.TEMPLATE, Rung.SPECULATIVE, Rung.DEEP)}
    assert isinstance(readers[Rung.TEMPLATE], TemplateReader)
    loop = build_loop(settings, ListFeed(items()), ledger, ListOutlet(()), readers=readers)
    loop.run(lambda: None)
    for reader in readers.values():
        if isinstance(reader, Closable):
            reader.close()
    entries = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    amendments = AmendmentAuditor(entries.__getitem__)
    for entry in entries:
        found = check_entry(entry, settings_digest(settings), settings.policy, amendments, settings.routing)
        assert found == []
    return [decode_entry(entry) for entry in entries]


def test_what_is_worth_it_is_read_by_the_frontier_model_once_it_is_released(tmp_path: Path) -> None:
    with chat_server(lambda call: call.answer(call.filled())) as server:
        decisions = decide(settings_for(server, budget_cents=100.0), tmp_path / "run")
    asked = [one for one in decisions if one.plan.rung_after_release is Rung.DEEP]
    amended = [one for one in decisions if one.amends]
    assert asked
    assert [one.amends for one in amended] == [one.id for one in asked]
    assert len(server.calls) == len(asked)
    for one in asked:
        assert one.news_context is not None
        assert one.news_context.considered[0].route is Route.FRONTIER
        assert "important enough for the best model" in one.rationale.text
    assert all(one.view is not None and one.view.reader.startswith("big@") for one in amended)


def test_no_more_is_asked_than_there_is_money_for(tmp_path: Path) -> None:
    with chat_server(lambda call: call.answer(call.filled())) as server:
        decisions = decide(settings_for(server, budget_cents=2.0), tmp_path / "run")
    assert len(server.calls) == 2
    assert sum(one.plan.rung_after_release is Rung.DEEP for one in decisions) == 2
    routes = {heard.route for one in decisions if one.news_context for heard in one.news_context.considered}
    assert routes == {Route.FRONTIER, Route.TARGET}


def test_a_frontier_model_that_does_not_answer_leaves_the_decision_as_it_was(tmp_path: Path) -> None:
    with chat_server(lambda call: call.send(500, b"")) as server:
        decisions = decide(settings_for(server, budget_cents=1.0), tmp_path / "run")
    assert sum(one.plan.rung_after_release is Rung.DEEP for one in decisions) == 1
    assert not any(one.amends for one in decisions)


def test_the_days_before_any_news_ask_for_nothing(tmp_path: Path) -> None:
    with chat_server(lambda call: call.answer(call.filled())) as server:
        decisions = decide(settings_for(server, budget_cents=100.0), tmp_path / "run")
    first_ns = min(item.available_at_ns for item in items() if isinstance(item, News))
    quiet = [one for one in decisions if one.as_of_ns < first_ns]
    assert quiet
    assert all(one.news_context is None and one.plan.rung_after_release is None for one in quiet)
