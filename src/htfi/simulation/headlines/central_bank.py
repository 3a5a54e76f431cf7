"""Central banks against what was priced, the data that move them, and help for banks in a crisis."""

from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines import policy, rescue
from htfi.simulation.headlines.frames import EventFrame, draw_amount, draw_event
from htfi.simulation.rng import Rng


def draw(dice: Rng) -> NewsEvent:
    """What a central bank does, what makes it act, or what is done for banks."""
    currency = tuple(policy.BANKS)[dice.weighted_index(policy.SHARES)]
    small, big = dice.choice(policy.STEPS)
    facts = rescue.SLOTS | {
        "m": draw_amount(dice, 5.0, 900.0), "lv": f"{0.25 * dice.integer(24):.2f}", "st": dice.choice(("25", "50")),
        "year": str(1996 + dice.integer(29)), "more": policy.MORE,
        "b": policy.BANKS[currency], "p": policy.PLACES[currency],
        "raise": policy.RAISE, "cut": policy.CUT, "hold": policy.HOLD, "expected": policy.EXPECTED,
        "bp": policy.BP, "big": big,
    }  # fmt: skip
    way = dice.uniform()
    if way < 0.13:
        return draw_event(dice, NewsEventKind.CENTRAL_BANK, dice.choice(rescue.FRAMES), None, None, facts)
    if way < 0.32:
        return _move(dice, currency, facts, small, big)
    if way < 0.47:
        return _data(dice, currency, facts)
    if way < 0.61:
        return _step(dice, currency, facts)
    if way < 0.67:
        frame = EventFrame(
            "as expected", policy.EXPECTED_HOLD, "policy is as expected", factors=(("rates", 0.0),), grade=1
        )
        return _of(dice, currency, frame, facts)
    if way < 0.75:
        return _of(dice, currency, dice.choice(policy.GROWTH), facts)
    frames = policy.TIGHT_WORDS if dice.chance(0.5) else policy.EASY_WORDS
    frame = frames[dice.weighted_index([frame.weight for frame in frames])]
    return _of(dice, currency, frame, facts)


def _step(dice: Rng, currency: str, facts: dict[str, str]) -> NewsEvent:
    up, grade = dice.chance(0.5), dice.weighted_index((4, 3, 2))
    facts["st"] = ("25", "50", "75")[grade]
    frame = EventFrame(
        "step",
        policy.STEP_UP if up else policy.STEP_DOWN,
        "money gets " + ("dearer" if up else "cheaper") + " [at once|by a step|]",
        factors=(("rates", 0.9 if up else -0.9),),
        grade=grade,
    )
    return _of(dice, currency, frame, facts)


def _move(dice: Rng, currency: str, facts: dict[str, str], small: str, big: str) -> NewsEvent:
    up, more = dice.chance(0.5), dice.chance(0.5)
    hawkish = 1.0 if up == more else -1.0
    x, y = (big, small) if more else (small, big)
    facts |= {"x": x, "y": y}
    why = policy.TIGHTER if hawkish > 0 else policy.EASIER
    if dice.chance(0.25):
        facts |= {"move": policy.RAISE if up else policy.CUT, "cmp": "[more]" if more else "[less]"}
        frame = EventFrame("move", policy.MOVES_WORDS, why, factors=(("rates", hawkish),))
        return _of(dice, currency, frame, facts)
    grade = 2 if int(big) - int(small) >= 50 else (0 if int(big) - int(small) <= 15 else 1)
    frame = EventFrame(
        "move", policy.MOVES_UP if up else policy.MOVES_DOWN, why, factors=(("rates", hawkish),), grade=grade
    )
    return _of(dice, currency, frame, facts)


def _data(dice: Rng, currency: str, facts: dict[str, str]) -> NewsEvent:
    more, cold = dice.chance(0.5), dice.chance(0.3)
    hawkish = 1.0 if more != cold else -1.0
    facts["n"] = f"[{'|'.join(policy.COLD if cold else policy.HOT)}]"
    facts["cmp"] = "[more|higher]" if more else "[less|lower]"
    stance = "tighter" if hawkish > 0 else "easier"
    why = f"[the data|the figures] [argue|speak] for [policy|money] that is {stance}"
    if dice.chance(0.4):
        return _of(
            dice,
            currency,
            EventFrame("data", policy.DATA_WORDS, why, factors=(("rates", 0.8 * hawkish),)),
            facts,
        )
    grade = dice.weighted_index((0.3, 0.45, 0.25))
    gap = (0.1, 0.3, 0.7)[grade]
    low = dice.uniform_between(0.6, 7.0)
    a, e = (low + gap, low) if more else (low, low + gap)
    facts |= {"a": f"{a:.1f}%", "e": f"{e:.1f}%"}
    if cold:
        facts["n"] = "[unemployment rate|jobless rate|unemployment]"
    else:
        facts["n"] = "[CPI|inflation|core inflation|consumer prices|GDP growth|retail sales|wage growth]"
    return _of(
        dice,
        currency,
        EventFrame("data", policy.DATA, why, factors=(("rates", 0.8 * hawkish),), grade=grade),
        facts,
    )


def _of(dice: Rng, currency: str, frame: EventFrame, facts: dict[str, str]) -> NewsEvent:
    factors = tuple((f"{factor} {currency}", size) for factor, size in frame.factors)
    frame = EventFrame(frame.subkind, frame.phrases, frame.why, factors=factors, grade=frame.grade)
    return draw_event(dice, NewsEventKind.CENTRAL_BANK, frame, None, None, facts)
