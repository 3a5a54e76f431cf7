"""What is believed of sources: slow to gain, quick to lose, fading, and in bounded number."""

from htfi.narrative.sanitising.sources import SourceReputation

HOUR = 3_600 * 10**9
START = 1_700_000_000 * 10**9


def test_prior_is_that_of_the_kind():
    sources = SourceReputation(8)
    believed = [
        sources.belief("x", START, kind).credibility for kind in ("official", "wire", "unknown", "social")
    ]
    assert believed == sorted(believed, reverse=True)
    assert sources.belief("x", START).evidence == 0.0


def test_it_is_quick_to_lose_and_slow_to_gain():
    sources = SourceReputation(8)
    before = sources.belief("x", START).credibility
    sources.record_confirmed("up", 0.5, START)
    sources.record_contradicted("down", 1.8, START)
    gained, lost = (sources.belief(name, START).credibility for name in ("up", "down"))
    assert 0.0 < gained - before < before - lost


def test_one_item_held_back_lowers_standing_for_hours_and_credibility_little():
    sources = SourceReputation(8)
    sources.record_held_back("x", 1.0, START)
    held = sources.belief("x", START)
    later = sources.belief("x", START + 24 * HOUR)
    assert held.current_credibility < 0.6 * held.credibility
    assert later.current_credibility > 0.9 * later.credibility


def test_one_item_held_back_among_many_tells_little():
    few, many = SourceReputation(8), SourceReputation(8)
    for _ in range(300):
        many.record_passed("x", START)
    for sources in (few, many):
        sources.record_held_back("x", 1.0, START)
    assert many.belief("x", START).current_credibility > 0.9 * many.belief("x", START).credibility > 0.5
    assert few.belief("x", START).current_credibility < many.belief("x", START).current_credibility


def test_harmless_items_earn_no_credit():
    sources = SourceReputation(8)
    for _ in range(1_000):
        sources.record_passed("x", START)
    assert sources.belief("x", START).credibility == sources.belief("y", START).credibility


def test_evidence_fades_towards_the_prior():
    sources = SourceReputation(8)
    for _ in range(20):
        sources.record_contradicted("x", 1.0, START)
    beliefs = [sources.belief("x", START + days * 24 * HOUR).credibility for days in (0, 30, 90, 400)]
    assert beliefs == sorted(beliefs)
    assert beliefs[0] < 0.3
    assert abs(beliefs[-1] - 0.6) < 0.01


def test_prices_that_follow_by_chance_change_nothing_and_those_that_never_do_cost():
    sources = SourceReputation(8)
    for turn in range(400):
        sources.record_price_move("chance", 1.0, turn % 2 == 0, START)
        sources.record_price_move("wrong", 1.0, turn % 10 == 0, START)
        sources.record_price_move("right", 1.0, turn % 10 != 0, START)
    prior = sources.belief("nobody", START).credibility
    chance, wrong, right = (sources.belief(name, START).credibility for name in ("chance", "wrong", "right"))
    assert abs(chance - prior) < 0.01
    assert wrong < prior - 0.15
    assert prior < right <= prior + 0.1


def test_flood_of_new_names_does_not_wash_out_what_is_known_of_an_old_one():
    sources = SourceReputation(64)
    sources.record_contradicted("liar", 5.0, START)
    for number in range(5_000):
        sources.record_passed(f"fresh{number}", START)
    assert len(sources.state()) == 64
    assert sources.belief("liar", START).credibility < 0.4


def test_state_goes_on_where_it_was():
    sources, other = SourceReputation(8), SourceReputation(8)
    sources.record_confirmed("a", 0.4, START)
    sources.record_held_back("b", 1.0, START, "social")
    other.restore(sources.state())
    later = START + 7 * HOUR
    assert [other.belief(name, later) for name in "ab"] == [sources.belief(name, later) for name in "ab"]


def test_who_has_told_much_for_days_without_trouble_is_known():
    sources = SourceReputation(8)
    for hour in range(60):
        sources.record_passed("x", START + hour * HOUR)
        assert sources.belief("x", START + hour * HOUR).known is (hour >= 48)
    sources.record_held_back("x", 1.0, START + 60 * HOUR)
    assert not sources.belief("x", START + 60 * HOUR).known


def test_a_belief_is_that_of_its_record_after_every_change():
    sources = SourceReputation(2)
    acts = [
        lambda: sources.record_confirmed("x", 0.9, START),
        lambda: sources.record_held_back("x", 1.0, START),
        lambda: sources.record_admitted("x", START),
        lambda: sources.record_price_move("x", 1.0, False, START + HOUR),
        lambda: sources.record_passed("x", START + 9 * HOUR),
    ]
    for number, act in enumerate(acts):
        now_ns = START + 2 * number * HOUR
        sources.belief("x", now_ns)
        act()
        fresh = SourceReputation(2)
        fresh.restore(sources.state())
        assert sources.belief("x", now_ns) == fresh.belief("x", now_ns)
