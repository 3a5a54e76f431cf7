"""Central banks against what was priced, the data that move them, and help for banks in a crisis."""

from htfi.simulation.dice import Dice
from htfi.simulation.events import Event, Kind
from htfi.simulation.headlines import rescue
from htfi.simulation.headlines.frames import Frame, draw_event, money

# Currency: names of its bank in headlines.
_BANKS: dict[str, str] = {
    "USD": "[Fed|Federal Reserve|FOMC|U.S. central bank|Fed]",
    "EUR": "[ECB|European Central Bank|euro zone central bank]",
    "GBP": "[BoE|Bank of England|UK central bank]",
    "JPY": "[BoJ|Bank of Japan|Japan's central bank]",
    "CHF": "[SNB|Swiss National Bank]",
    "AUD": "[RBA|Reserve Bank of Australia|Australia's central bank]",
    "CAD": "[BoC|Bank of Canada|Canada's central bank]",
    "NZD": "[RBNZ|New Zealand's central bank]",
    "NOK": "[Norges Bank|Norway's central bank]",
    "MXN": "[Banxico|Mexico's central bank]",
}
_PLACES = {
    "USD": "U.S.",
    "EUR": "[euro zone|euro-area]",
    "GBP": "[UK|British]",
    "JPY": "[Japan|Japanese]",
    "CHF": "Swiss",
    "AUD": "Australian",
    "CAD": "Canadian",
    "NZD": "New Zealand",
    "NOK": "Norwegian",
    "MXN": "Mexican",
}
_SHARES = (9, 3.5, 2.5, 2.5, 1.2, 1, 1, 0.6, 0.6, 0.5)

_RAISE = "[raises|lifts|hikes|increases]"
_CUT = "[cuts|lowers|reduces|trims]"
_HOLD = "[leaves rates unchanged|holds rates|keeps rates on hold|stands pat|keeps policy unchanged]"
_EXPECTED = "[expected|priced|forecast|markets expected|economists expected]"
_STEPS = (("25", "50"), ("25", "75"), ("50", "75"), ("10", "25"), ("25", "100"), ("50", "100"))
_BP = "[bp|bps|basis points]"

_TIGHTER = "[the central bank|policy|the bank] was tighter than [priced|expected]"
_EASIER = "[the central bank|policy|the bank] was easier than [priced|expected]"

_TIGHT_WORDS = (
    Frame(
        "no cut",
        (
            "{b} {hold}, [cut had been|markets had priced a cut|defying calls for a cut]",
            "{b} [does not cut|declines to cut|refuses to cut] rates as {expected}",
            "{b} [pushes back against|rules out|sees no case for] rate cuts",
            "{b} no longer [sees|expects|plans] rate cuts [this year|soon]",
            "{b} [drops|removes] [language|wording|reference] on further [easing|cuts]",
            "{b} [raises|lifts] rates in surprise move",
            (
                "{b} [ends|stops|winds down] [bond buying|asset purchases|quantitative easing] [early|"
                "ahead of schedule]"
            ),
            "{b} {hold}, [signals|flags|hints at] further [tightening|hikes|firming]",
        ),
        _TIGHTER,
        factors=(("rates", 1.0),),
        grade=1,
        weight=2.4,
    ),
    Frame(
        "hawkish tone",
        (
            "{b} [minutes|statement|projections|chief] {far} more hawkish than {expected}",
            "{b} [signals|sees|projects] rates {far} higher [for longer|next year] than {expected}",
            "{b} [minutes|statement|chief] {far} less dovish than {expected}",
            "{b} [speeds up|accelerates] [tightening|balance-sheet runoff] {by}",
        ),
        _TIGHTER,
        factors=(("rates", 0.9),),
        weight=1.6,
    ),
)
_EASY_WORDS = (
    Frame(
        "no hike",
        (
            "{b} {hold}, [hike had been|markets had priced a hike|defying calls for a hike]",
            "{b} [does not raise|declines to raise|refuses to hike] rates as {expected}",
            "{b} [pushes back against|rules out|sees no case for] rate hikes",
            "{b} no longer [sees|expects|plans] rate hikes [this year|soon]",
            "{b} [drops|removes] [language|wording|reference] on further [firming|tightening|hikes]",
            "{b} [cuts|lowers] rates in surprise move",
            (
                "{b} [extends|expands|restarts] [bond buying|asset purchases|quantitative easing] [early|"
                "ahead of schedule]"
            ),
            "{b} {hold}, [signals|flags|hints at] further [easing|cuts|support]",
        ),
        _EASIER,
        factors=(("rates", -1.0),),
        grade=1,
        weight=2.4,
    ),
    Frame(
        "dovish tone",
        (
            "{b} [minutes|statement|projections|chief] {far} more dovish than {expected}",
            "{b} [signals|sees|projects] rates {far} lower [for longer|next year] than {expected}",
            "{b} [minutes|statement|chief] {far} less hawkish than {expected}",
            "{b} [slows|scales back] [tightening|balance-sheet runoff] {by}",
        ),
        _EASIER,
        factors=(("rates", -0.9),),
        weight=1.6,
    ),
    Frame(
        "emergency",
        (
            "{b} [cuts rates|slashes rates|cuts rate to near zero] in emergency [move|meeting|session]",
            "Emergency [cut|easing] by {b}, rates [down|lowered] {big} {bp}",
            "{b} [launches|unveils|announces] unlimited [bond buying|asset purchases]",
        ),
        _EASIER,
        factors=(("rates", -1.0),),
        grade=2,
        weight=0.5,
    ),
    Frame(
        "zero and buys",
        (
            (
                "{b} keeps [its target range|its rate] at 0 to 0.25% and is ready to buy [long "
                "Treasuries|long bonds|longer-term bonds]"
            ),
            (
                "{b} [holds rates near zero|keeps target range at 0 to 0.25%], will buy [long-term|"
                "longer-dated] [Treasuries|bonds]"
            ),
            (
                "{b} [stands ready|is prepared] to [expand|increase] [purchases|asset purchases] of "
                "[agency debt|long bonds|mortgage bonds]"
            ),
            "{b} evaluates benefits of [purchasing|buying] longer-term [Treasuries|bonds|securities]",
        ),
        _EASIER,
        factors=(("rates", -1.0),),
        grade=2,
        weight=0.6,
    ),
)

# "{x}" what was done, "{y}" what was expected: only the pair tells.
_MOVES_UP = (
    "{b} {raise} [rates|key rate|benchmark rate] [by|] {x} {bp}, {y} {expected}",
    "{b} {raise} rates {x} {bp} [vs|against] {y} {expected}",
    "[Markets|Traders|Economists] [had priced|expected] {y} {bp} [hike|increase], {b} delivers {x}",
    "{b} hikes {x} {bp}; {y} [was|had been] {expected}",
    "Instead of {y} {bp}, {b} {raise} rates by {x}",
    "{b} rate [hike|increase] of {x} {bp} follows forecasts of {y}",
)
_MOVES_DOWN = (
    "{b} {cut} [rates|key rate|benchmark rate] [by|] {x} {bp}, {y} {expected}",
    "{b} {cut} rates {x} {bp} [vs|against] {y} {expected}",
    "[Markets|Traders|Economists] [had priced|expected] {y} {bp} [cut|reduction], {b} delivers {x}",
    "{b} cuts {x} {bp}; {y} [was|had been] {expected}",
    "Instead of {y} {bp}, {b} {cut} rates by {x}",
    "{b} rate [cut|reduction] of {x} {bp} follows forecasts of {y}",
)
_MOVES_WORDS = (
    "{b} {move} rates by {far} {cmp} than {expected}",
    "{b} {move} [key rate|benchmark rate], {far} {cmp} than {expected}",
    "{b} rate move {far} {cmp} than {expected}: {move} by {x} {bp}",
)

_HOT = (
    "consumer prices",
    "CPI",
    "inflation",
    "core inflation",
    "wages",
    "payrolls",
    "job growth",
    "retail sales",
    "GDP growth",
    "services PMI",
    "producer prices",
)
_COLD = ("unemployment rate", "jobless rate", "jobless claims")
_DATA = (
    "{p} {n} [rises to|at|comes in at|was] {a} [vs|against] {e} [expected|forecast|consensus]",
    "{p} {n}: {a}, [forecast|consensus|expected] {e}",
    "[Expected|Forecast] {e}, {p} {n} [prints|comes in at] {a}",
    "Economists saw {p} {n} at {e}, [actual|it was] {a}",
)
_DATA_WORDS = (
    "{p} {n} [rises|comes in] {far} {cmp} than {expected}",
    "{p} {n} {far} {cmp} than {expected} [in [March|June|May|October]|last month|]",
    "{p} {n} [report|figures] {far} {cmp} than economists predicted",
)

# Without a word on what was expected the step itself is the news; "{lv}" is the level after it.
_STEP_UP = (
    "{b} {raise} its [target rate|key rate|benchmark rate] by {st} {bp} [to {lv}%|]{more}",
    "{b} [hikes|raises] rates [{st} {bp}|by {st} {bp}][, first rise since {year}|, more to come|]",
    "[Rate hike|Tightening]: {b} goes {st} {bp} higher [to {lv}%|]",
)
_STEP_DOWN = (
    "{b} {cut} its [target rate|key rate|benchmark rate|discount rate] by {st} {bp} [to {lv}%|]{more}",
    "{b} [cuts|lowers] rates [{st} {bp}|by {st} {bp}][, first cut since {year}|, more to come|]",
    "[Rate cut|Easing]: {b} goes {st} {bp} lower [to {lv}%|]",
    (
        "{b} cuts its target rate by {st} bp [to {lv}% between meetings|to {lv}%, together with other "
        "central banks]"
    ),
)
_MORE = "[; one member dissents|; two members dissent|, as growth and prices are weighed|]"
_EXPECTED_HOLD = (
    "{b} [leaves|keeps] its [target rate|key rate|benchmark rate] at {lv}%[; one member dissents|]",
    "{b} {hold}[, as {expected}|, as widely expected|]",
    "{b} keeps its target range at 0 to 0.25%",
    "{b} [raises|cuts] rates by {st} {bp}, [exactly|just] as {expected}",
    "{p} [CPI|inflation|GDP growth|unemployment rate] {lv}%, [exactly as|in line with what was] {expected}",
    "{b} publishes minutes, [which left|with] the pace of [asset purchases|tightening|easing] unchanged",
)
_GROWTH = (
    Frame(
        "growth worse",
        (
            "{b} {hold} and sees [somewhat|appreciably|] more [downside risk|risk] to growth",
            "{b} sees [weaker|slower|softer] [growth|activity|spending] [ahead|than before], ready to act",
            "{b} [chief|governor]: [labour market|economy] needs {adj} support",
            "{b} says [inflation|price pressure] [is {far} lower|fades] [than thought|than feared]",
        ),
        _EASIER,
        factors=(("rates", -0.8),),
    ),
    Frame(
        "growth better",
        (
            "{b} {hold} and sees [somewhat|appreciably|] more [upside risk|risk] to [inflation|prices]",
            "{b} sees [stronger|faster|hotter] [growth|activity|inflation] [ahead|than before], ready to act",
            "{b} [chief|governor]: [labour market|economy] needs {adj} restraint",
            "{b} says [inflation|price pressure] [is {far} higher|builds] [than thought|than feared]",
        ),
        _TIGHTER,
        factors=(("rates", 0.8),),
    ),
)


def draw(dice: Dice, currency: str = "", kindred: str = "") -> Event:
    """What a central bank does, or what makes it act; of `currency` where given. `kindred` 'banks' is help or strain."""
    currency = currency or tuple(_BANKS)[dice.weighted(_SHARES)]
    small, big = dice.pick(_STEPS)
    facts = rescue.SLOTS | {
        "m": money(dice, 5.0, 900.0), "lv": f"{0.25 * dice.below(24):.2f}", "st": dice.pick(("25", "50")),
        "year": str(1996 + dice.below(29)), "more": _MORE,
        "b": _BANKS[currency], "p": _PLACES[currency],
        "raise": _RAISE, "cut": _CUT, "hold": _HOLD, "expected": _EXPECTED, "bp": _BP, "big": big,
    }  # fmt: skip
    way = dice.unit()
    if kindred == "banks" or (not kindred and way < 0.13):
        return draw_event(dice, Kind.CENTRAL_BANK, dice.pick(rescue.FRAMES), None, None, facts)
    if way < 0.32:
        return _move(dice, currency, facts, small, big)
    if way < 0.47:
        return _data(dice, currency, facts)
    if way < 0.61:
        return _step(dice, currency, facts)
    if way < 0.67:
        frame = Frame(
            "as expected", _EXPECTED_HOLD, "policy is as expected", factors=(("rates", 0.0),), grade=1
        )
        return _of(dice, currency, frame, facts)
    if way < 0.75:
        return _of(dice, currency, dice.pick(_GROWTH), facts)
    frames = _TIGHT_WORDS if dice.chance(0.5) else _EASY_WORDS
    frame = frames[dice.weighted([frame.weight for frame in frames])]
    return _of(dice, currency, frame, facts)


def _step(dice: Dice, currency: str, facts: dict[str, str]) -> Event:
    up, grade = dice.chance(0.5), dice.weighted((4, 3, 2))
    facts["st"] = ("25", "50", "75")[grade]
    frame = Frame(
        "step",
        _STEP_UP if up else _STEP_DOWN,
        "money gets " + ("dearer" if up else "cheaper") + " [at once|by a step|]",
        factors=(("rates", 0.9 if up else -0.9),),
        grade=grade,
    )
    return _of(dice, currency, frame, facts)


def _move(dice: Dice, currency: str, facts: dict[str, str], small: str, big: str) -> Event:
    up, more = dice.chance(0.5), dice.chance(0.5)
    hawkish = 1.0 if up == more else -1.0
    x, y = (big, small) if more else (small, big)
    facts |= {"x": x, "y": y}
    why = _TIGHTER if hawkish > 0 else _EASIER
    if dice.chance(0.25):
        facts |= {"move": _RAISE if up else _CUT, "cmp": "[more]" if more else "[less]"}
        frame = Frame("move", _MOVES_WORDS, why, factors=(("rates", hawkish),))
        return _of(dice, currency, frame, facts)
    grade = 2 if int(big) - int(small) >= 50 else (0 if int(big) - int(small) <= 15 else 1)
    frame = Frame("move", _MOVES_UP if up else _MOVES_DOWN, why, factors=(("rates", hawkish),), grade=grade)
    return _of(dice, currency, frame, facts)


def _data(dice: Dice, currency: str, facts: dict[str, str]) -> Event:
    more, cold = dice.chance(0.5), dice.chance(0.3)
    hawkish = 1.0 if more != cold else -1.0
    facts["n"] = f"[{'|'.join(_COLD if cold else _HOT)}]"
    facts["cmp"] = "[more|higher]" if more else "[less|lower]"
    why = f"[the data|the figures] [argue|speak] for [policy that is|money that is] {'tighter' if hawkish > 0 else 'easier'}"
    if dice.chance(0.4):
        return _of(
            dice, currency, Frame("data", _DATA_WORDS, why, factors=(("rates", 0.8 * hawkish),)), facts
        )
    grade = dice.weighted((0.3, 0.45, 0.25))
    gap = (0.1, 0.3, 0.7)[grade]
    low = dice.between(0.6, 7.0)
    a, e = (low + gap, low) if more else (low, low + gap)
    facts |= {"a": f"{a:.1f}%", "e": f"{e:.1f}%"}
    if cold:
        facts["n"] = "[unemployment rate|jobless rate|unemployment]"
    else:
        facts["n"] = "[CPI|inflation|core inflation|consumer prices|GDP growth|retail sales|wage growth]"
    return _of(
        dice, currency, Frame("data", _DATA, why, factors=(("rates", 0.8 * hawkish),), grade=grade), facts
    )


def _of(dice: Dice, currency: str, frame: Frame, facts: dict[str, str]) -> Event:
    factors = tuple((f"{factor} {currency}", size) for factor, size in frame.factors)
    frame = Frame(frame.subkind, frame.phrases, frame.why, factors=factors, grade=frame.grade)
    return draw_event(dice, Kind.CENTRAL_BANK, frame, None, None, facts)
