"""News about whole markets: central banks, commodities, geopolitics."""

from htfi_train.simulation.events import NewsEvent, NewsEventKind
from htfi_train.simulation.headlines.frames import EventFrame, choose_frame, draw_amount, draw_event, grammar
from htfi_train.simulation.rng import Rng

_STEPS_BP = (("25", "50"), ("25", "75"), ("50", "75"), ("10", "25"), ("25", "100"), ("50", "100"))
_COMMODITIES = ("copper", "gas", "grain", "chips", "freight")


def draw_central_bank(rng: Rng) -> NewsEvent:
    """What a central bank does, what makes it act, or what is done for banks."""
    words = grammar("central_bank")
    bank = words.banks[rng.weighted_index([bank.share for bank in words.banks])]
    small, big = rng.choice(_STEPS_BP)
    facts = words.slots | {
        "m": draw_amount(rng, 5.0, 900.0), "lv": f"{0.25 * rng.integer(24):.2f}", "st": rng.choice(("25", "50")),
        "year": str(1996 + rng.integer(29)), "b": bank.name, "p": bank.place, "big": big,
    }  # fmt: skip
    branch = rng.uniform()
    if branch < 0.13:
        return draw_event(
            rng, NewsEventKind.CENTRAL_BANK, rng.choice(words.frames["rescue"]), None, None, facts
        )
    if branch < 0.32:
        frame = _rate_decision(rng, facts, small, big)
    elif branch < 0.47:
        frame = _economic_data(rng, facts)
    elif branch < 0.61:
        frame = _rate_step(rng, facts)
    elif branch < 0.67:
        why = "policy is as expected"
        frame = EventFrame(
            "as expected", words.lists["expected_hold"], why, factors=(("rates", 0.0),), grade=1
        )
    elif branch < 0.75:
        frame = rng.choice(words.frames["growth"])
    else:
        frame = choose_frame(rng, words.frames["tight" if rng.chance(0.5) else "easy"])
    factors = tuple((f"{factor} {bank.currency}", size) for factor, size in frame.factors)
    frame = EventFrame(frame.subkind, frame.phrases, frame.why, factors=factors, grade=frame.grade)
    return draw_event(rng, NewsEventKind.CENTRAL_BANK, frame, None, None, facts)


def _rate_step(rng: Rng, facts: dict[str, str]) -> EventFrame:
    """Without a word on what was expected the step itself is the news."""
    up, grade = rng.chance(0.5), rng.weighted_index((4, 3, 2))
    facts["st"] = ("25", "50", "75")[grade]
    phrases = grammar("central_bank").lists["steps_up" if up else "steps_down"]
    why = f"money gets {'dearer' if up else 'cheaper'} [at once|by a step|]"
    return EventFrame("step", phrases, why, factors=(("rates", 0.9 if up else -0.9),), grade=grade)


def _rate_decision(rng: Rng, facts: dict[str, str], small: str, big: str) -> EventFrame:
    words = grammar("central_bank")
    up, more = rng.chance(0.5), rng.chance(0.5)
    hawkish = 1.0 if up == more else -1.0
    facts |= {"x": big if more else small, "y": small if more else big}
    why = words.texts["tighter" if hawkish > 0 else "easier"]
    factors = (("rates", hawkish),)
    if rng.chance(0.25):
        facts |= {"move": words.slots["raise" if up else "cut"], "cmp": "[more]" if more else "[less]"}
        return EventFrame("move", words.lists["moves_in_words"], why, factors=factors)
    gap = int(big) - int(small)
    grade = 2 if gap >= 50 else 0 if gap <= 15 else 1
    return EventFrame(
        "move", words.lists["moves_up" if up else "moves_down"], why, factors=factors, grade=grade
    )


def _economic_data(rng: Rng, facts: dict[str, str]) -> EventFrame:
    lists = grammar("central_bank").lists
    more, cold = rng.chance(0.5), rng.chance(0.3)
    hawkish = 1.0 if more != cold else -1.0
    facts["n"] = f"[{'|'.join(lists['cold_data' if cold else 'hot_data'])}]"
    facts["cmp"] = "[more|higher]" if more else "[less|lower]"
    stance = "tighter" if hawkish > 0 else "easier"
    why = f"[the data|the figures] [argue|speak] for [policy|money] that is {stance}"
    factors = (("rates", 0.8 * hawkish),)
    if rng.chance(0.4):
        return EventFrame("data", lists["data_in_words"], why, factors=factors)
    grade = rng.weighted_index((0.3, 0.45, 0.25))
    low = rng.uniform_between(0.6, 7.0)
    high = low + (0.1, 0.3, 0.7)[grade]
    actual, expected = (high, low) if more else (low, high)
    facts |= {"a": f"{actual:.1f}%", "e": f"{expected:.1f}%"}
    jobs = "[unemployment rate|jobless rate|unemployment]"
    prices = "[CPI|inflation|core inflation|consumer prices|GDP growth|retail sales|wage growth]"
    facts["n"] = jobs if cold else prices
    return EventFrame("data", lists["data"], why, factors=factors, grade=grade)


def draw_commodity(rng: Rng) -> NewsEvent:
    """More or less of something comes to market."""
    words = grammar("commodities")
    low = rng.uniform_between(0.3, 1.2)
    facts = words.slots | {
        "lo": f"{low:.1f} [mln|million]",
        "hi": f"{low * rng.uniform_between(1.8, 3.0):.1f} [mln|million]",
    }
    index = rng.weighted_index((5, 1, 1, 1, 1, 1.5))
    if index == 0 and rng.chance(0.07):
        frame = words.frames["as_expected"][0]
        return draw_event(rng, NewsEventKind.SUPPLY, frame, None, None, facts)
    group = _COMMODITIES[index - 1] if index else rng.choice(("oil", "oil_figures"))
    return draw_event(rng, NewsEventKind.SUPPLY, rng.choice(words.frames[group]), None, None, facts)


def draw_geopolitics(rng: Rng) -> NewsEvent:
    """Something between states or within one."""
    words = grammar("geopolitics")
    land, other = rng.sample(words.lists["countries"], 2)
    state, second = rng.sample(words.lists["governments"], 2)
    low = 5 * (1 + rng.integer(4))
    facts = words.slots | {
        "land": land, "other": other, "state": state, "state2": second, "pct": str(5 * (1 + rng.integer(12))),
        "lo": str(low), "hi": str(low + 5 * (2 + rng.integer(5))),
    }  # fmt: skip
    return draw_event(
        rng, NewsEventKind.GEOPOLITICS, choose_frame(rng, words.frames["events"]), None, None, facts
    )
