"""Results: figures beside what was expected, words of comparison, and who tops whom."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_amount, draw_event, draw_quarter
from htfi.simulation.rng import Rng

# More of these is good, more of those is bad: of thing, "rose" or "fell", and "more" or "less", only all three tell.
_GOOD = (
    "[profit|net profit|net income|earnings]",
    "[sales|revenue|turnover]",
    "[operating margin|margins|gross margin]",
    "[orders|order intake|new orders]",
    "[same-store sales|comparable sales]",
    "[bookings|new contracts]",
    "[core profit|operating profit|EBITDA]",
    "[volumes|deliveries|shipments]",
    "[free cash flow|cash flow]",
)
_BAD = (
    "[costs|operating costs|expenses]",
    "[net loss|loss|operating loss]",
    "[writedowns|impairments|charges]",
    "[debt|net debt|borrowings]",
    "[bad loans|defaults|loan losses|claims]",
    "[churn|customer losses|cancellations]",
    "[input costs|wage bill|energy bill]",
    "[inventories|unsold stock]",
)
_RISE = "[rose|climbed|grew|increased|went up|up]"
_FALL = "[fell|dropped|declined|shrank|went down|down]"

_COMPARED = (
    "{s}'s {q} {metric} {verb} {far} {cmp} than {feared}",
    "{s} {q} {metric} {verb} {far} {cmp} than {feared}",
    "{q} {metric} at {s} {verb} {far} {cmp} than {feared}",
    "{s} says {q} {metric} {verb} {far} {cmp} than {feared}",
    "{s}: {metric} {verb}, {far} {cmp} than {feared}",
)
_FEAREDS = (
    "expected",
    "forecast",
    "analysts expected",
    "the market expected",
    "consensus",
    "predicted",
    "pencilled in",
)


def _compared(dice: Rng, subject: SimulatedAsset, facts: dict[str, str]) -> NewsEvent:
    good, rises, more = dice.chance(0.5), dice.chance(0.5), dice.chance(0.5)
    sign = 1.0 if good == (rises == more) else -1.0
    facts |= {
        "metric": dice.choice(_GOOD if good else _BAD),
        "verb": _RISE if rises else _FALL,
        "cmp": "[more]" if more else "[less]",
        "feared": f"[{'|'.join(_FEAREDS)}]",
    }
    thing = "[results|figures|numbers]" if good else "[the burden|costs and losses]"
    better = "[better|stronger]" if good else "[lighter|easier]"
    worse = "[worse|weaker]" if good else "[heavier|worse]"
    why = f"{thing} {better if sign > 0 else worse} than [expected|forecast|hoped]"
    return draw_event(
        dice, NewsEventKind.EARNINGS, EventFrame("comparison", _COMPARED, why, own=sign), subject, None, facts
    )


# "{a}" the actual figure, "{e}" the expected one; which is which only the words and their order tell.
_FIGURES = (
    "{s} {q} {metric} {a} [vs|versus|against] {e} [expected|estimate|consensus]",
    "{s} {q} {metric} {a}, [est.|estimate|consensus|analysts expected|expected|forecast] {e}",
    (
        "{s} [posts|reports|delivers] {q} {metric} of {a}; [analysts had|consensus was|the market looked "
        "for] {e}"
    ),
    "[Expected|Forecast|Consensus] {e}, {s} [delivers|reports|posts] {q} {metric} of {a}",
    "{s}: {metric} [expected at|seen at|forecast] {e}, [actual|comes in at|came at] {a}",
    "Against [forecasts|estimates] of {e}, {s} [earned|reported|booked] {metric} of {a}",
    "{s} {metric} {a} [(consensus {e})|(est. {e})|(forecast: {e})]",
    "[Analysts|The Street|Forecasters] wanted {e}, {s} {metric} [was|came to|was only] {a}",
    "{s} {q} results: {metric} {a}, forecast {e}",
)
_WORDED = (
    "{s} {q} {metric} {a}, {far} {side} [the|] {e} [expected|analysts expected|estimate]",
    "{s}'s {q} {metric} of {a} is {far} {side} [estimates|consensus|forecasts] of {e}",
    "[At|With] {a}, {s}'s {metric} comes in {far} {side} the {e} [expected|forecast]",
)


def _figures(dice: Rng, subject: SimulatedAsset, facts: dict[str, str]) -> NewsEvent:
    grade = dice.weighted_index((0.25, 0.4, 0.25, 0.1))
    low, high = ((0.015, 0.04), (0.06, 0.14), (0.2, 0.4), (0.6, 1.2))[grade]
    sign = dice.sign()
    per_share = dice.chance(0.6)
    expected = (
        round(dice.uniform_between(0.4, 9.0), 2) if per_share else round(dice.uniform_between(3.0, 90.0), 1)
    )
    gap = expected * dice.uniform_between(low, high)
    if sign < 0:
        gap = expected * (1.0 - 1.0 / (1.0 + gap / expected))
    digits = 2 if per_share else 1
    least = 10.0**-digits
    actual = expected + sign * max(gap, least)
    loss = per_share and dice.chance(0.15)
    a, e = (f"{actual:.{digits}f}", f"{expected:.{digits}f}")
    if per_share:
        metric = (
            "[loss per share|net loss/shr|loss a share]"
            if loss
            else "[EPS|earnings per share|adj. EPS|profit per share]"
        )
        a, e = (f"${a}", f"${e}") if dice.chance(0.5) else (a, e)
    else:
        metric = "[revenue|sales|net sales|turnover]"
        unit = "[bln|billion|bn]" if dice.chance(0.5) else "[mln|million|m]"
        a, e = (f"${a} {unit}", f"${e} {unit}")
    own = -sign if loss else sign
    far_side = "[above|over|ahead of]" if sign > 0 else "[below|under|short of]"
    phrases = _WORDED if dice.chance(0.45) else _FIGURES
    facts |= {"a": a, "e": e, "metric": metric, "side": far_side}
    why = (
        "[reported figures|the numbers] [beat|topped] [what was expected|the forecasts]"
        if own > 0
        else "[reported figures|the numbers] [missed|fell short of] [what was expected|the forecasts]"
    )
    return draw_event(
        dice,
        NewsEventKind.EARNINGS,
        EventFrame("figures", phrases, why, own=own),
        subject,
        None,
        facts,
        grade,
    )


_BEAT = "[results|the quarter] [topped|beat] [forecasts|expectations]"
_MISS = "[results|the quarter] [missed|fell short of] [forecasts|expectations]"
_MIXED = "[guidance|the outlook] [matters more than|outweighs] the quarter"
_FRAMES = (
    EventFrame(
        "beat",
        (
            (
                "{s} {q} [profit [beats|tops|exceeds]|[earnings|results] [beat|top|exceed]] [forecasts|"
                "estimates|expectations] {by}"
            ),
            "{s} [beats|tops] {q} [profit|earnings] [forecasts|estimates|consensus] {by}",
            (
                "[Forecasts|Estimates|Expectations] for {s} [beaten|topped|exceeded] {by} by {q} [profit|"
                "earnings|results]"
            ),
            "{s} {q} [profit|earnings|results] {far} [better than|ahead of] [forecasts|expected]",
            "[Feared|Expected] {s} {q} [miss|shortfall] [fails to appear|does not come], results {far} ahead",
            "{s} {q} results do not disappoint, {far} [ahead of|above] [forecasts|consensus]",
        ),
        _BEAT,
        own=1.0,
    ),
    EventFrame(
        "miss",
        (
            (
                "{s} {q} [profit [misses|trails|lags]|[earnings|results] [miss|trail|lag]] [forecasts|"
                "estimates|expectations] {by}"
            ),
            "{s} [misses|falls short of] {q} [profit|earnings] [forecasts|estimates|consensus] {by}",
            "[Forecasts|Estimates|Expectations] [beat|top|exceed] {s}'s {q} [profit|earnings] {by}",
            "{s} {q} [profit|earnings|results] {far} [worse than|behind] [forecasts|expected]",
            (
                "[Hoped-for|Expected] {s} {q} [beat|surprise] [fails to appear|does not come], results "
                "{far} behind"
            ),
            "{s} {q} results do not [impress|please], {far} [behind|below] [forecasts|consensus]",
        ),
        _MISS,
        own=-1.0,
    ),
    EventFrame(
        "no beat",
        (
            (
                "{s} [fails to beat|does not beat|cannot beat|stops short of beating] {q} [profit|"
                "earnings] [forecasts|estimates]"
            ),
            "No {q} [beat|upside surprise] from {s}, [profit|earnings] short of forecasts",
            "{s} {q} [profit|earnings] [not above|no better than] [last year's low|the weakest forecast]",
        ),
        _MISS,
        own=-0.8,
        grade=1,
        weight=0.7,
    ),
    EventFrame(
        "no miss",
        (
            "{s} [avoids|escapes|dodges] [feared|expected] {q} [profit|earnings] miss",
            "No {q} [miss|shortfall] at {s} after all, [profit|earnings] hold up",
            "{s} {q} [profit|earnings] [not below|no worse than] [last year's high|the boldest forecast]",
        ),
        _BEAT,
        own=0.8,
        grade=1,
        weight=0.7,
    ),
    EventFrame(
        "beat, outlook cut",
        (
            (
                "{s} [beats|tops] {q} [profit|earnings] forecasts but [cuts|lowers|trims] [full-year|"
                "annual] [outlook|guidance] {by}"
            ),
            "{s} [cuts|lowers] [full-year|annual] [outlook|guidance] {by} despite {q} [profit|earnings] beat",
            "Despite [record|strong] {q} [profit|sales], {s} [cuts|lowers] [outlook|guidance|forecast] {by}",
            "{s} {q} [profit|earnings] above forecasts; [outlook|guidance] lowered {by}",
        ),
        _MIXED,
        own=-0.9,
    ),
    EventFrame(
        "miss, outlook raised",
        (
            (
                "{s} [misses|falls short of] {q} [profit|earnings] forecasts but [raises|lifts|"
                "increases] [full-year|annual] [outlook|guidance] {by}"
            ),
            (
                "{s} [raises|lifts] [full-year|annual] [outlook|guidance] {by} despite {q} [profit|"
                "earnings] miss"
            ),
            "Despite [poor|weak] {q} [profit|sales], {s} [raises|lifts] [outlook|guidance|forecast] {by}",
            "{s} {q} [profit|earnings] below forecasts; [outlook|guidance] raised {by}",
        ),
        _MIXED,
        own=0.9,
    ),
    EventFrame(
        "in line",
        (
            (
                "{s} {q} [[profit|earnings|sales] in line with|profit [matches|meets]|[sales|earnings] "
                "match] [forecasts|expectations|consensus]"
            ),
            "{s} {q} EPS {a} vs {a} expected",
            "{s} reports {q} [profit|revenue] [exactly|just] as [forecast|expected]",
        ),
        "[results|figures] were [just as expected|in line with forecasts]",
        grade=1,
        weight=0.8,
    ),
)
_WEIGHTS = tuple(frame.weight for frame in _FRAMES)


def draw(dice: Rng, subject: SimulatedAsset) -> NewsEvent:
    """A company reports."""
    facts = draw_quarter(dice)
    way = dice.uniform()
    if way < 0.26:
        return _figures(dice, subject, facts)
    if way < 0.42:
        return _compared(dice, subject, facts)
    facts |= {"a": f"{dice.uniform_between(0.3, 9):.2f}", "m": draw_amount(dice)}
    return draw_event(
        dice, NewsEventKind.EARNINGS, _FRAMES[dice.weighted_index(_WEIGHTS)], subject, None, facts
    )


def correction(dice: Rng, subject: SimulatedAsset) -> tuple[NewsEvent, NewsEvent]:
    """A wrong figure and its correction, on opposite sides of what was expected."""
    facts = draw_quarter(dice)
    first = _figures(dice, subject, facts)
    sign = 1.0 if first.own < 0 else -1.0
    right, wrong, expected = _far_apart(dice, int(sign))
    facts = draw_quarter(dice) | {
        "a": right,
        "w": wrong,
        "e": expected,
        "metric": "[EPS|earnings per share|adj. EPS]",
    }
    why = (
        "[the corrected|the right] figure is "
        + ("above" if sign > 0 else "below")
        + " [forecasts|what was expected]"
    )
    phrases = (
        "CORRECTED-{s} {q} {metric} {a} [(not {w})|, not {w}], [vs|est.] {e} expected",
        "[CORRECTION|Correction]: {s} {q} {metric} [was|is] {a} instead of {w}; consensus {e}",
        "{s} corrects {q} {metric} to {a} from {w}, [against|vs] {e} expected",
        "{s}: {q} {metric} {a}, not {w} as [earlier reported|first stated], analysts expected {e}",
    )
    told = draw_event(
        dice,
        NewsEventKind.EARNINGS,
        EventFrame("correction", phrases, why, own=sign),
        subject,
        None,
        facts,
        2,
    )
    false = draw_event(
        dice,
        NewsEventKind.EARNINGS,
        EventFrame("figures", _FIGURES, "", own=-sign),
        subject,
        None,
        facts | {"a": wrong},
        2,
    )
    return false, told


def _far_apart(dice: Rng, sign: int) -> tuple[str, str, str]:
    expected = dice.uniform_between(1.0, 8.0)
    right = expected * (1.0 + sign * dice.uniform_between(0.12, 0.3))
    wrong = expected * (1.0 - sign * dice.uniform_between(0.12, 0.3))
    return f"{right:.2f}", f"{wrong:.2f}", f"{expected:.2f}"
