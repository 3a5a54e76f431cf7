"""Views prepared for releases: what is served follows from events, calendar and settings, whenever a run is killed."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision, Rung, encode_decision
from htfi.domain.events import Bar, FeedItem, MacroAnnouncement, News, TimePassed
from htfi.domain.plan import PlanReason
from htfi.domain.time import NS_PER_DAY, NS_PER_S, format_ns
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override
from late_network import START_NS, LateAuthor, ListFeed, ListOutlet

SYMBOLS = ("A", "B", "C")
NUM_DAYS = 55
EVERY = 5  # days between two releases
HOUR_NS = 3_600 * NS_PER_S
TOLD = {  # by release: what is said of it, and whether that is what was prepared for
    4: ("Fed cuts rates by 25 bp", True),
    5: ("Federal Reserve leaves interest rates unchanged; one member dissents", True),
    6: ("Fed to cut rates by half a point, some say", False),
    7: ("UPDATE 1-Fed raises benchmark rate by a quarter point, sees firmer growth", True),
    8: ("Fed slashes key rate by 50 basis points to aid banks", True),
    9: ("Oil falls as stocks build", False),
    10: ("FOMC holds rates steady and drops its bias", True),
}


def at_ns(number: int) -> int:
    return START_NS + number * EVERY * NS_PER_DAY - 2 * HOUR_NS


def calendar(folder: Path) -> str:
    file = folder / "calendar.toml"
    rows = "".join(
        f'[[release]]\nid = "fomc-{number}"\nat = {format_ns(at_ns(number))}\n'
        for number in range(4, NUM_DAYS // EVERY)
    )
    head = '[defaults]\nkind = "rate_decision"\nsubject = "fed"\nseries = "FED"\n'
    file.write_text(head + rows)
    return str(file)


def world(seed: int, *, silent: bool = True) -> list[FeedItem]:
    """Daily bars, a headline on most days, the releases; without `silent` time is told in between as well."""
    dice = random.Random(seed)
    items: list[FeedItem] = [MacroAnnouncement(START_NS - 9 * HOUR_NS, START_NS, "macro", 1, "FED", 5.25)]
    words = ("copper", "wheat", "steel", "cotton", "coal", "timber", "sugar", "zinc")
    for day in range(NUM_DAYS):
        end_ns = START_NS + day * NS_PER_DAY
        if dice.random() < 0.6:
            said_ns = end_ns - 6 * HOUR_NS
            text = f"{dice.choice(words)} mine in {dice.choice(words)} valley {dice.choice(('opens', 'shuts'))} {day}"
            items.append(News(said_ns, said_ns, "wire", 10 * day + 1, f"n{day}", text))
        number, rest = divmod(day, EVERY)
        if rest == 0 and number in TOLD:
            said_ns = at_ns(number) + dice.randrange(60) * NS_PER_S
            items.append(News(said_ns, said_ns, "wire", 10 * day + 2, f"r{number}", TOLD[number][0]))
        for place, symbol in enumerate(SYMBOLS):
            close = 100.0 + dice.gauss(0, 1)
            row = day * len(SYMBOLS) + place + 1
            items.append(
                Bar(end_ns, end_ns, "bars", row, symbol, "1d", end_ns - NS_PER_DAY, end_ns, close, close + 1,
                    close - 1, close)
            )  # fmt: skip
    if silent:
        return items
    told: list[FeedItem] = []
    for before, item in zip([items[0], *items], items, strict=False):
        gap = item.available_at_ns - before.available_at_ns
        told += (
            [TimePassed(before.available_at_ns + gap * step // 40) for step in range(1, 40)] if gap else []
        )
        told.append(item)
    return told


def loop_over(
    items: Sequence[FeedItem],
    folder: Path,
    named: str,
    entries: Sequence[bytes] = (),
    released: int = 0,
    late_share: float = 0.0,
    **buffering: float,
) -> tuple[DecisionLoop, LateAuthor, ListOutlet]:
    settings = override(load_settings(environment={}), "encoding", model="heads")
    settings = override(settings, "pipeline", deadline_ms=1e5, group_ms=3.6e6)
    settings = override(settings, "scheduling", min_influence=0.0)  # whatever a reader has earned
    settings = override(settings, "narrative", calendar=named)
    settings = override(settings, "prefetching", **{"lead_s": 3.0 * 3_600, **buffering})
    outlet = ListOutlet(entries[:released])
    ledger = open_ledger(folder, origin="test.run", durable=False)
    if entries:
        ledger.append(list(entries))
    author = LateAuthor(0, late_share)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(author, settings.narrative),
    }
    return build_loop(settings, ListFeed(items), ledger, outlet, readers=readers), author, outlet


def entries_of(loop: DecisionLoop) -> list[bytes]:
    ledger = loop.recorder.ledger
    found = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    return found


def check(entries: Sequence[bytes]) -> list[Decision]:
    found = [decode_entry(entry) for entry in entries]
    settings = load_settings(environment={})
    amendments = AmendmentAuditor(entries.__getitem__)
    for decision, entry in zip(found, entries, strict=True):
        problems = check_entry(entry, decision.settings_digest, settings.policy, amendments, settings.routing)
        assert problems == [], decision.id
    return found


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> str:
    return calendar(tmp_path_factory.mktemp("calendar"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, named: str) -> list[bytes]:
    loop, _, outlet = loop_over(world(1), tmp_path_factory.mktemp("whole"), named)
    loop.run(lambda: None)
    entries = entries_of(loop)
    assert outlet.released == entries
    return entries


def test_what_was_told_is_served_at_once_and_read_right_after(whole: list[bytes]) -> None:
    found = check(whole)
    served = [one for one in found if one.plan.rung_after_release is Rung.SPECULATIVE]
    places = {one.id: place for place, one in enumerate(found)}
    told = {number for number, (_, is_told) in TOLD.items() if is_told}
    assert {one.view.prepared.partition(",")[0] for one in served if one.view} == {
        f"fomc-{number}" for number in told
    }
    assert len(served) == len(told) * len(SYMBOLS)
    for one in served:
        assert one.view is not None
        assert one.view.provisional
        assert one.view.as_of_ns == one.as_of_ns
        assert one.plan.reasons == (PlanReason.PREPARED,)
        assert one.view.prepared in one.rationale.text
        assert all(not name.startswith("fomc-") for name in one.view.cited)
        after = found[places[f"{one.id}/amended"]]
        assert after.plan.rung is Rung.SPECULATIVE
        assert after.plan.reasons == (PlanReason.PREPARED, PlanReason.VERIFICATION)
        assert after.view is not None
        assert not after.view.provisional
        assert after.view.prepared == ""
        same = after.view.direction == one.view.direction
        assert ("points the same way" if same else "points another way") in after.rationale.text


def test_an_outcome_is_told_in_words_that_match_the_headline(whole: list[bytes]) -> None:
    said = {one.view.prepared for one in check(whole) if one.view is not None and one.view.prepared}
    assert said == {
        "fomc-4, a cut of 25 bp", "fomc-5, no change", "fomc-7, a rise of 25 bp", "fomc-8, a cut of 50 bp",
        "fomc-10, no change",
    }  # fmt: skip


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_it_makes_no_difference_whether_time_is_told_in_silence(
    tmp_path: Path, named: str, seed: int
) -> None:
    quiet, _, _ = loop_over(world(seed), tmp_path / "quiet", named)
    quiet.run(lambda: None)
    told, _, _ = loop_over(world(seed, silent=False), tmp_path / "told", named)
    told.run(lambda: None)
    expected = entries_of(quiet)
    assert entries_of(told) == expected, f"seed {seed}"
    # where there is time, every outcome is read ahead, and where there is none, the one that is told
    assert (
        told.components.prepared.prefetcher.stats.num_read
        > quiet.components.prepared.prefetcher.stats.num_read
        > 0
    )


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_killed_at_any_entry_and_from_any_state_it_goes_on_to_the_same_entries(
    whole: list[bytes], tmp_path: Path, named: str, seed: int
) -> None:
    dice, items = random.Random(seed), world(1)
    loop, _, _ = loop_over(items, tmp_path / "saved", named)
    saved: list[tuple[int, int, bytes]] = [(0, 0, b"")]
    taken = 0

    def save() -> None:
        nonlocal taken
        taken += 1
        loop.recorder.commit(now=True)
        saved.append((taken, loop.recorder.num_recorded, encode_state(loop.state())))

    loop.run(save)
    assert entries_of(loop) == whole
    served = [k for k, entry in enumerate(whole) if decode_entry(entry).plan.rung_after_release is not None]
    amended = [k for k, entry in enumerate(whole) if decode_entry(entry).amends]
    cuts = [*dice.sample(served, 2), *(k + 1 for k in dice.sample(served, 1)), *dice.sample(amended, 2)]
    for cut in dict.fromkeys(cuts):
        states = [state for state in saved if state[1] <= cut]
        start, _, state = states[-1 - min(dice.choice((0, 1, 2, 9)), len(states) - 1)]
        again, _, outlet = loop_over(
            items[start:], tmp_path / f"cut{cut}-{start}", named, whole[:cut], dice.randrange(cut + 1)
        )
        if state:
            again.restore(decode_state(state))
        again.run(lambda: None)
        assert entries_of(again) == whole, f"seed {seed}, cut {cut}, from item {start}"
        assert outlet.released == whole, f"seed {seed}, cut {cut}, from item {start}"


def test_the_budget_bounds_what_is_prepared(tmp_path: Path, named: str) -> None:
    one_outcome = {"budget_ms": 240.0}  # three readings of 80 ms: one outcome for three series
    loop, _, _ = loop_over(world(1, silent=False), tmp_path / "one", named, **one_outcome)
    loop.run(lambda: None)
    found = check(entries_of(loop))
    prepared = {one.view.prepared for one in found if one.view is not None and one.view.prepared}
    assert prepared == {"fomc-5, no change", "fomc-10, no change"}  # the likeliest without odds
    assert loop.components.prepared.prefetcher.stats.num_read == 3 * 7
    none, _, _ = loop_over(world(1), tmp_path / "none", named, budget_ms=0.0)
    none.run(lambda: None)
    assert not any(one.plan.rung_after_release for one in check(entries_of(none)))


def test_without_a_calendar_nothing_is_prepared(tmp_path: Path) -> None:
    loop, _, _ = loop_over(world(1), tmp_path, "")
    loop.run(lambda: None)
    assert not any(
        one.plan.rung_after_release or (one.view and one.view.prepared) for one in check(entries_of(loop))
    )


def test_what_was_changed_in_a_record_is_named(whole: list[bytes]) -> None:
    found = [decode_entry(entry) for entry in whole]
    place = next(k for k, one in enumerate(found) if one.plan.rung_after_release is not None)
    one = found[place]
    later = next(k for k, other in enumerate(found) if other.amends == one.id)
    after = found[later]
    assert one.view is not None
    slots = {**one.rationale.slots, "prepared": "fomc-99, no change"}
    cases = {
        (place, "states wrongly whether the reading was prepared"): replace(
            one, plan=replace(one.plan, rung_after_release=None)
        ),
        (place, "does not state what the view was prepared for"): replace(
            one,
            plan=replace(one.plan, legacy_reason_text="prepared for fomc-99, no change", reason_codes=UNSET),
        ),
        (place, "states wrongly what the reading was prepared for"): replace(
            one, rationale=replace(one.rationale, slots=slots)
        ),
        (place, "states wrongly whether the reading is provisional"): replace(
            one, view=replace(one.view, provisional=False)
        ),
        (later, "plan does not follow"): replace(
            after, plan=replace(after.plan, reason_codes=(PlanReason.NORMAL,))
        ),
        (later, "plan does not follow "): replace(after, plan=replace(after.plan, rung=Rung.DEEP)),
    }
    settings = load_settings(environment={})
    for (at, told), altered in cases.items():
        entries = [*whole[:at], encode_decision(altered)]
        amendments = AmendmentAuditor(entries.__getitem__)
        problems: list[str] = []
        for entry in entries:
            problems = check_entry(entry, one.settings_digest, settings.policy, amendments, settings.routing)
        assert any(told.strip() in problem for problem in problems), (told, problems)


@pytest.mark.parametrize("late_share", [0.3, 1.0])
def test_where_the_target_is_late_no_provisional_view_is_served_and_none_is_amended_twice(
    tmp_path: Path, named: str, late_share: float
) -> None:
    loop, _, _ = loop_over(world(1), tmp_path, named, late_share=late_share)
    loop.run(lambda: None)
    found = check(entries_of(loop))
    served = [one for one in found if one.plan.rung_after_release is not None]
    assert bool(served) == (late_share < 1.0)
    amended = [one.amends for one in found if one.amends]
    assert len(amended) == len(set(amended)) == sum(one.awaits_amendment for one in found)
    assert not loop.late.pending.by_question
