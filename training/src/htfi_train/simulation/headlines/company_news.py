"""News about companies: results, guidance, lawsuits, supply, rumours, and news of no consequence."""

from htfi_train.simulation.companies import SimulatedAsset
from htfi_train.simulation.events import NewsEvent, NewsEventKind
from htfi_train.simulation.headlines.frames import EventFrame, choose_frame, draw_amount, draw_event, grammar
from htfi_train.simulation.rng import Rng

_NTH = ("first", "second", "third", "fourth")
_PREMIUM_CHOICE = "[for {money}|in {money} deal|at {premium}% premium]"
_BIDS = ("to buy", "to be bought")


def draw_earnings(rng: Rng, subject: SimulatedAsset) -> NewsEvent:
    """A company reports."""
    facts = _quarter(rng)
    branch = rng.uniform()
    if branch < 0.26:
        return _reported_figures(rng, subject, facts)
    if branch < 0.42:
        return _compared_in_words(rng, subject, facts)
    facts |= {"a": f"{rng.uniform_between(0.3, 9):.2f}", "m": draw_amount(rng)}
    frame = choose_frame(rng, grammar("earnings").frames["results"])
    return draw_event(rng, NewsEventKind.EARNINGS, frame, subject, None, facts)


def draw_correction(rng: Rng, subject: SimulatedAsset) -> tuple[NewsEvent, NewsEvent]:
    """A wrong figure and its correction, on opposite sides of what was expected."""
    lists = grammar("earnings").lists
    first = _reported_figures(rng, subject, _quarter(rng))
    sign = 1.0 if first.own < 0 else -1.0
    expected = rng.uniform_between(1.0, 8.0)
    right = f"{expected * (1.0 + int(sign) * rng.uniform_between(0.12, 0.3)):.2f}"
    wrong = f"{expected * (1.0 - int(sign) * rng.uniform_between(0.12, 0.3)):.2f}"
    facts = _quarter(rng) | {
        "a": right, "w": wrong, "e": f"{expected:.2f}", "metric": "[EPS|earnings per share|adj. EPS]",
    }  # fmt: skip
    side = "above" if sign > 0 else "below"
    why = f"[the corrected|the right] figure is {side} [forecasts|what was expected]"
    correction = EventFrame("correction", lists["corrections"], why, own=sign)
    correct = draw_event(rng, NewsEventKind.EARNINGS, correction, subject, None, facts, 2)
    mistaken = EventFrame("figures", lists["figures"], own=-sign)
    return draw_event(rng, NewsEventKind.EARNINGS, mistaken, subject, None, facts | {"a": wrong}, 2), correct


def _quarter(rng: Rng) -> dict[str, str]:
    place = rng.integer(4)
    return {"quarter": str(place + 1), "nth": _NTH[place], "q": grammar("earnings").texts["quarter"]}


def _compared_in_words(rng: Rng, subject: SimulatedAsset, facts: dict[str, str]) -> NewsEvent:
    """Of metric, "rose" or "fell", and "more" or "less", only all three together say what is good."""
    words = grammar("earnings")
    good, rises, more = rng.chance(0.5), rng.chance(0.5), rng.chance(0.5)
    sign = 1.0 if good == (rises == more) else -1.0
    facts |= {
        "metric": rng.choice(words.lists["good_metrics" if good else "bad_metrics"]),
        "verb": words.texts["rise" if rises else "fall"],
        "cmp": "[more]" if more else "[less]",
        "feared": f"[{'|'.join(words.lists['expectations'])}]",
    }
    what = "[results|figures|numbers]" if good else "[the burden|costs and losses]"
    better = "[better|stronger]" if good else "[lighter|easier]"
    worse = "[worse|weaker]" if good else "[heavier|worse]"
    why = f"{what} {better if sign > 0 else worse} than [expected|forecast|hoped]"
    frame = EventFrame("comparison", words.lists["compared"], why, own=sign)
    return draw_event(rng, NewsEventKind.EARNINGS, frame, subject, None, facts)


def _reported_figures(rng: Rng, subject: SimulatedAsset, facts: dict[str, str]) -> NewsEvent:
    """{a} is the actual figure, {e} the expected one: only the words and their order say which is which."""
    words = grammar("earnings").lists
    grade = rng.weighted_index((0.25, 0.4, 0.25, 0.1))
    low, high = ((0.015, 0.04), (0.06, 0.14), (0.2, 0.4), (0.6, 1.2))[grade]
    sign = rng.sign()
    per_share = rng.chance(0.6)
    expected = (
        round(rng.uniform_between(0.4, 9.0), 2) if per_share else round(rng.uniform_between(3.0, 90.0), 1)
    )
    gap = expected * rng.uniform_between(low, high)
    if sign < 0:
        gap = expected * (1.0 - 1.0 / (1.0 + gap / expected))
    digits = 2 if per_share else 1
    actual = expected + sign * max(gap, 10.0**-digits)
    loss = per_share and rng.chance(0.15)
    a, e = (f"{actual:.{digits}f}", f"{expected:.{digits}f}")
    if per_share:
        gain = "[EPS|earnings per share|adj. EPS|profit per share]"
        metric = "[loss per share|net loss/shr|loss a share]" if loss else gain
        a, e = (f"${a}", f"${e}") if rng.chance(0.5) else (a, e)
    else:
        metric = "[revenue|sales|net sales|turnover]"
        unit = "[bln|billion|bn]" if rng.chance(0.5) else "[mln|million|m]"
        a, e = (f"${a} {unit}", f"${e} {unit}")
    own = -sign if loss else sign
    side = "[above|over|ahead of]" if sign > 0 else "[below|under|short of]"
    phrases = words["worded_figures" if rng.chance(0.45) else "figures"]
    facts |= {"a": a, "e": e, "metric": metric, "side": side}
    verb = "[beat|topped]" if own > 0 else "[missed|fell short of]"
    why = f"[reported figures|the numbers] {verb} [what was expected|the forecasts]"
    frame = EventFrame("figures", phrases, why, own=own)
    return draw_event(rng, NewsEventKind.EARNINGS, frame, subject, None, facts, grade)


def draw_guidance(rng: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    """A company's own announcement or its prospects, in a quarter of cases one that concerns `other` too."""
    words = grammar("guidance")
    low = rng.uniform_between(0.5, 8.0)
    growth = rng.uniform_between(1.0, 9.0)
    facts = words.slots | {
        "money": draw_amount(rng),
        "lo": f"{low:.2f}",
        "hi": f"{low * rng.uniform_between(1.08, 1.2):.2f}",
        "lop": f"{growth:.1f}%",
        "hip": f"{growth + rng.uniform_between(1.5, 4.0):.1f}%",
    }
    branch = rng.uniform()
    if branch < 0.27:
        return _draw_rivals(rng, subject, other, facts)
    if branch < 0.6:
        frame = choose_frame(rng, words.frames["prospects"])
        return draw_event(rng, NewsEventKind.GUIDANCE, frame, subject, None, facts | words.texts)
    frame = choose_frame(rng, words.frames["announcements"])
    return draw_event(rng, NewsEventKind.GUIDANCE, frame, subject, None, facts)


def _draw_rivals(
    rng: Rng, subject: SimulatedAsset, other: SimulatedAsset, facts: dict[str, str]
) -> NewsEvent:
    """Something between two companies. The higher a bid's premium, the further the target rises."""
    frame = choose_frame(rng, grammar("guidance").frames["rivals"])
    if frame.subkind in _BIDS:
        premium = rng.weighted_index((3, 4, 3))
        facts["premium"] = str((12, 25, 45)[premium] + rng.integer((7, 14, 31)[premium]))
        if premium != 1:
            phrases = tuple(
                phrase.replace(_PREMIUM_CHOICE, "at {premium}% premium")
                for phrase in frame.phrases
                if "{premium}" in phrase
            )
            scale = 0.6 if premium == 0 else 1.7
            gains = frame.own > 0
            own, target = frame.own * (scale if gains else 1), frame.other * (1 if gains else scale)
            frame = EventFrame(frame.subkind, phrases, frame.why, own=own, other=target, grade=1)
    return draw_event(rng, NewsEventKind.GUIDANCE, frame, subject, other, facts)


def draw_legal(rng: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    """A ruling or an inquiry; a third of them between `subject` and `other`."""
    words = grammar("legal")
    facts = words.slots | {"money": draw_amount(rng, 0.03, 8.0)}
    if rng.chance(0.36):
        frame = choose_frame(rng, words.frames["two_companies"])
        return draw_event(rng, NewsEventKind.LEGAL, frame, subject, other, facts)
    frame = choose_frame(rng, words.frames["one_company"])
    return draw_event(rng, NewsEventKind.LEGAL, frame, subject, None, facts)


def draw_supply(rng: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    """Trouble or relief, in some cases one that concerns `other` too."""
    words = grammar("supply")
    if rng.chance(0.3):
        frame = rng.choice(words.frames["two_companies"])
        return draw_event(rng, NewsEventKind.SUPPLY, frame, subject, other, words.slots)
    frame = rng.choice(words.frames["one_company"])
    return draw_event(rng, NewsEventKind.SUPPLY, frame, subject, None, words.slots)


def draw_rumour(rng: Rng, subject: SimulatedAsset) -> NewsEvent:
    """A rumour about `subject`; the chance that it comes true depends on its source."""
    rumour, facts = _rumour_frame(rng, subject)
    source, credibility = ("trusted", 0.86) if rng.chance(0.6) else ("doubtful", 0.62)
    frame = EventFrame(
        rumour.subkind, _claimed(rumour, source), rumour.why, own=rumour.own, grade=1, credibility=credibility
    )
    return draw_event(rng, NewsEventKind.RUMOUR, frame, subject, None, facts)


def answered_rumour(rng: Rng, subject: SimulatedAsset, confirmed: bool) -> tuple[NewsEvent, NewsEvent]:
    """A rumour and the company's answer to it. The answer repeats or reverses the rumour's effect."""
    rumour, facts = _rumour_frame(rng, subject)
    phrases = _claimed(rumour, "doubtful" if rng.chance(0.5) else "trusted")
    facts["about"] = rumour.about
    facts["claim"] = "[{}]".format("|".join(rumour.phrases[:2]))
    frame = EventFrame(rumour.subkind, phrases, rumour.why, own=rumour.own, grade=1)
    first = draw_event(rng, NewsEventKind.RUMOUR, frame, subject, None, facts)
    verb, sign = ("confirm", 1.0) if confirmed else ("deny", -1.0)
    answer = EventFrame(
        "confirmed" if confirmed else "denied",
        grammar("rumour").lists["confirmations" if confirmed else "denials"],
        "[the company confirms it|confirmed by the company]"
        if verb == "confirm"
        else "[the company denies it|denied by the company]",
        own=sign * rumour.own,
        grade=1,
    )
    return first, draw_event(rng, NewsEventKind.RUMOUR, answer, subject, None, facts)


def forged_news(rng: Rng, subject: SimulatedAsset) -> NewsEvent:
    """What only looks like news. It claims much and does nothing."""
    words = grammar("rumour")
    up = rng.chance(0.5)
    facts = {
        "t": subject.symbol,
        "pct": str(20 + rng.integer(180)),
        "desk": rng.choice(words.lists["lookalike_names"]),
        "handle": rng.choice(words.lists["handles"]),
    }
    phrases = words.lists["promotions" if up else "smears"]
    if rng.chance(0.4):
        rumour, more = _rumour_frame(rng, subject)
        facts |= more
        phrases = tuple(f"{phrase} {words.texts['lookalike']}" for phrase in rumour.phrases)
        up = rumour.own > 0
    why = "[nobody|no known source] stands behind it"
    frame = EventFrame("forged", phrases, why, own=1.2 if up else -1.2, grade=1)
    return draw_event(rng, NewsEventKind.RUMOUR, frame, subject, None, facts)


def _rumour_frame(rng: Rng, subject: SimulatedAsset) -> tuple[EventFrame, dict[str, str]]:
    words = grammar("rumour")
    bidder = rng.choice(words.lists["bidders"])
    frame = rng.choice(words.frames["rumours"])
    return frame, {"money": draw_amount(rng), "bidder": bidder, "s": subject.short}


def _claimed(rumour: EventFrame, source: str) -> tuple[str, ...]:
    text = grammar("rumour").texts[source]
    return tuple(text.replace("{claim}", phrase) for phrase in rumour.phrases)


def draw_trivia(rng: Rng, subject: SimulatedAsset | None, other: SimulatedAsset) -> NewsEvent:
    """News that moves nothing."""
    lists = grammar("trivia").lists
    facts = {
        "day": rng.choice(lists["days"]),
        "city": rng.choice(lists["cities"]),
        "n": str(5 * (2 + rng.integer(25))),
        "a": f"{rng.uniform_between(0.5, 6):.1f}",
        "o": other.short,
    }
    why = "[nothing of weight|the news is of no consequence]"
    frame = EventFrame("trivia", lists["company" if subject else "market"], why, grade=1)
    return draw_event(rng, NewsEventKind.GUIDANCE, frame, subject, None, facts)
