"""A run whose readings depend on the weather, killed at any entry: what the ledger holds comes out the same."""

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from examples import one_in_eight
from htfi.domain.decision import Decision, decode_decision, encode_decision
from htfi.domain.errors import IntegrityError
from htfi.domain.events import FeedItem, News, TimePassed, Trade
from htfi.domain.time import NS_PER_S
from htfi.governance.ledger.log import TransparencyLog
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.record.entry import decode_entry, entry_json
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.pipeline.weighing import without_view
from htfi.wiring.ledger import open_ledger
from htfi.wiring.settings import load_settings
from late_network import START_NS, LateAuthor, ListOutlet, days, loop_over, told

SYMBOLS = ("A", "B", "C")
NUM_DAYS = 44
CLOCKS = "60s,120s"
Snapshot = tuple[int, int, bytes]  # items taken, entries made, state


def ledger_with(folder: Path, entries: list[bytes]) -> TransparencyLog:
    ledger = open_ledger(folder, origin="test.run", durable=False)
    ledger.append(entries)
    return ledger


def run_whole(
    folder: Path, author: LateAuthor, dice: random.Random, deep: LateAuthor | None = None
) -> tuple[list[bytes], list[Snapshot]]:
    """An undisturbed run, with states saved at random items."""
    ledger = open_ledger(folder, origin="test.run", durable=False)
    items = days(NUM_DAYS, SYMBOLS)
    loop = loop_over(items, author, ledger, ListOutlet(), deep=deep, group_ms=dice.choice((0.0, 3.6e6)))
    snapshots: list[Snapshot] = []
    num_items = 0

    def save() -> None:
        nonlocal num_items
        num_items += 1
        if dice.random() < 0.1:
            loop.recorder.commit(now=True)
            snapshots.append((num_items, loop.recorder.num_recorded, encode_state(loop.state())))

    loop.run(save)
    entries = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    return entries, snapshots


def check_whole(entries: list[bytes], refused: int = 0) -> list[Decision]:
    """Every decision with a provisional view is amended once, by one after it that says of all else the same."""
    found = [decode_entry(entry) for entry in entries]
    assert max(Counter(decision.id for decision in found).values()) == 1
    first = {decision.id: place for place, decision in enumerate(found)}
    amended = [decision for decision in found if decision.amends]
    for decision in amended:
        before = found[first[decision.amends]]
        assert first[decision.amends] < first[decision.id]
        assert before.awaits_amendment
        assert decision.view is not None
        assert not decision.view.provisional
        for name in Decision.__struct_fields__:
            if name not in ("id", "plan", "view", "forecast", "rationale", "verdict", "amends"):
                assert getattr(before, name) == getattr(decision, name), name
        assert without_view(before.forecast) == without_view(decision.forecast)
    assert len(amended) + refused == sum(decision.awaits_amendment for decision in found)
    amendments, policy = AmendmentAuditor(entries.__getitem__), load_settings(environment={}).policy
    for decision, entry in zip(found, entries, strict=True):
        assert check_entry(entry, decision.settings_digest, policy, amendments) == []
    return found


@pytest.mark.parametrize(
    ("seed", "in_depth"),
    [
        (0, False),
        pytest.param(1, False, marks=pytest.mark.slow),
        pytest.param(2, False, marks=pytest.mark.slow),
        (3, True),
        pytest.param(4, True, marks=pytest.mark.slow),
    ],
)
def test_killed_at_any_entry_a_run_goes_on_with_nothing_lost_and_nothing_twice(
    tmp_path: Path, seed: int, in_depth: bool
) -> None:
    dice = random.Random(seed)
    deep = LateAuthor(seed) if in_depth else None
    entries, snapshots = run_whole(tmp_path / "whole", LateAuthor(seed), dice, deep)
    whole = check_whole(entries)
    assert sum(decision.plan.rung_after_release is not None for decision in whole) >= 3 * in_depth
    assert 5 < sum(bool(decision.amends) for decision in whole) < len(whole) // 2
    items = days(NUM_DAYS, SYMBOLS)
    for cut in one_in_eight(dice.sample(range(len(entries) + 1), 12)):
        told = f"seed {seed}, cut {cut}"
        saved = [snapshot for snapshot in snapshots if snapshot[1] <= cut]
        taken, _, state = saved[-1] if saved and dice.random() < 0.8 else (0, 0, b"")
        ledger = ledger_with(tmp_path / f"cut{cut}", entries[:cut])
        outlet = ListOutlet(entries[: dice.randrange(cut + 1)])
        author = LateAuthor(1000 * seed + cut)
        deep = LateAuthor(2000 * seed + cut) if in_depth else None
        loop = loop_over(items[taken:], author, ledger, outlet, deep=deep)
        if state:
            loop.restore(decode_state(state))
        loop.run(lambda: None)
        again = [ledger.entry(index) for index in range(ledger.size)]
        ledger.close()
        assert again[:cut] == entries[:cut], told
        assert outlet.released == again, told
        found = check_whole(again)
        assert forecasts(found) == forecasts(whole), told
        assert max(Counter(request.id for request in author.written).values(), default=1) == 1, told
        assert max(Counter(author.pursued).values(), default=1) == 1, told
        assert loop.recorder.num_decided == len(forecasts(whole)), told
        assert loop.recorder.num_recorded == len(again), told


def as_before_record_2(entry: bytes) -> bytes:
    """The entry as JSON; an amendment with its slots in another order than today's, as they once stood."""
    decision = decode_decision(entry_json(entry))
    if not decision.amends:
        return entry_json(entry)
    slots = dict(reversed(decision.rationale.slots.items()))
    rationale = msgspec.structs.replace(decision.rationale, slots=slots)
    return encode_decision(msgspec.structs.replace(decision, rationale=rationale))


def test_a_run_of_the_json_form_goes_on_across_its_amendments(tmp_path: Path) -> None:
    entries, _ = run_whole(tmp_path / "whole", LateAuthor(0), random.Random(0))
    amended = [place for place, entry in enumerate(entries) if decode_entry(entry).amends]
    former = [as_before_record_2(entry) for entry in entries]
    assert len(amended) > 5
    assert any(former[place] != entry_json(entries[place]) for place in amended)
    for cut in (amended[0] + 1, amended[-1] + 1):
        ledger = ledger_with(tmp_path / f"cut{cut}", former[:cut])
        outlet = ListOutlet(former[:cut])
        loop_over(days(NUM_DAYS, SYMBOLS), LateAuthor(7), ledger, outlet).run(lambda: None)
        again = [ledger.entry(index) for index in range(ledger.size)]
        ledger.close()
        assert again[:cut] == former[:cut]
        assert all(entry.startswith(b"{") for entry in again)
        assert outlet.released == again
        assert forecasts(check_whole(again)) == forecasts([decode_entry(entry) for entry in entries])


@pytest.mark.parametrize("change", ["text", "slot"])
def test_an_amendment_with_another_word_is_not_taken_for_its_own(tmp_path: Path, change: str) -> None:
    entries, _ = run_whole(tmp_path / "whole", LateAuthor(0), random.Random(0))
    former = [as_before_record_2(entry) for entry in entries]
    place = next(at for at, entry in enumerate(entries) if decode_entry(entry).amends)
    decision = decode_decision(former[place])
    slots = dict(decision.rationale.slots)
    slots["series" if "series" in slots else next(iter(slots))] += "x"
    changes = {"slots": slots} if change == "slot" else {"text": decision.rationale.text + "x"}
    rationale = msgspec.structs.replace(decision.rationale, **changes)
    former[place] = encode_decision(msgspec.structs.replace(decision, rationale=rationale))
    ledger = ledger_with(tmp_path / "cut", former[: place + 1])
    with pytest.raises(IntegrityError, match=f"decision {place} "):
        loop_over(days(NUM_DAYS, SYMBOLS), LateAuthor(7), ledger, ListOutlet()).run(lambda: None)
    ledger.close()


def forecasts(found: list[Decision]) -> list[tuple[str, object, object, str]]:
    """What no weather changes: the numbers. What is read when decides how they are tilted."""
    return [
        (decision.id, without_view(decision.forecast), decision.features, decision.inputs.digest)
        for decision in found
        if not decision.amends
    ]


@pytest.mark.parametrize("seed", range(2))
def test_what_will_never_come_ends_and_is_counted(tmp_path: Path, seed: int) -> None:
    author = LateAuthor(seed, refused_share=0.5)
    ledger = open_ledger(tmp_path, origin="test.run", durable=False)
    loop = loop_over(days(NUM_DAYS, SYMBOLS), author, ledger, ListOutlet())
    loop.run(lambda: None)
    entries = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    assert author.num_refused > 2
    check_whole(entries, refused=loop.late.pending.num_abandoned)
    assert (
        loop.late.pending.num_abandoned >= author.num_refused
    )  # with all that carry what stood in for the answer
    assert not loop.late.pending.by_question


def ticks(with_time: bool) -> list[FeedItem]:
    """Trades whose bars of one and of two minutes end in silence, in which a live feed tells the time; headlines."""
    dice = random.Random(0)
    items: list[FeedItem] = []
    for turn in range(70):
        at_ns = START_NS + turn * 240 * NS_PER_S
        if turn % 2 == 0:
            items.append(News(at_ns, at_ns, "wire", turn + 1, f"n{turn}", told(turn)))
        trade_ns, price = at_ns + NS_PER_S, 100.0 + dice.gauss(0, 1)
        items.append(Trade(trade_ns, trade_ns, "ticks", turn + 1, "A", price, 1.0))
        if with_time:
            items += [TimePassed(at_ns + wait_s * NS_PER_S) for wait_s in (60, 61, 62, 120, 121, 122)]
    return [*items, TimePassed(START_NS + 70 * 240 * NS_PER_S)]


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_moments_that_silence_told_apart_are_made_again_where_nothing_tells_of_it(
    tmp_path: Path, seed: int
) -> None:
    ledger = open_ledger(tmp_path / "whole", origin="test.run", durable=False)
    loop_over(ticks(with_time=True), LateAuthor(seed), ledger, ListOutlet(), CLOCKS).run(lambda: None)
    entries = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    whole = check_whole(entries)
    moments = [decision.amends or decision.as_of_ns for decision in whole]
    between = sum(isinstance(at, str) and not isinstance(after, str) for at, after in pairwise(moments))
    assert between > 3, f"seed {seed}: amendments stand between moments"
    for cut in one_in_eight(random.Random(seed).sample(range(len(entries) + 1), 12)):
        ledger = ledger_with(tmp_path / f"cut{cut}", entries[:cut])
        outlet = ListOutlet()
        loop_over(ticks(with_time=False), LateAuthor(seed + cut), ledger, outlet, CLOCKS).run(lambda: None)
        again = [ledger.entry(index) for index in range(ledger.size)]
        ledger.close()
        assert again[:cut] == entries[:cut], f"seed {seed}, cut {cut}"
        assert outlet.released == again
        assert forecasts(check_whole(again)) == forecasts(whole), f"seed {seed}, cut {cut}"
