"""Central banks against what was priced, the data that move them, and help for banks in a crisis."""

from htfi.simulation.dice import Dice
from htfi.simulation.events import Event, Kind
from htfi.simulation.headlines.frames import Frame, draw_event

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
    "USD": "U.S.", "EUR": "[euro zone|euro-area]", "GBP": "[UK|British]", "JPY": "[Japan|Japanese]", "CHF": "Swiss",
    "AUD": "Australian", "CAD": "Canadian", "NZD": "New Zealand", "NOK": "Norwegian", "MXN": "Mexican",
}  # fmt: skip
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
    Frame("no cut", (
        "{b} {hold}, [cut had been|markets had priced a cut|defying calls for a cut]", "{b} [does not cut|declines to cut|refuses to cut] rates as {expected}",
        "{b} [pushes back against|rules out|sees no case for] rate cuts", "{b} no longer [sees|expects|plans] rate cuts [this year|soon]",
        "{b} [drops|removes] [language|wording|reference] on further [easing|cuts]", "{b} [raises|lifts] rates in surprise move",
        "{b} [ends|stops|winds down] [bond buying|asset purchases|quantitative easing] [early|ahead of schedule]",
        "{b} {hold}, [signals|flags|hints at] further [tightening|hikes|firming]",
    ), _TIGHTER, factors=(("rates", 1.0),), grade=1, weight=2.4),
    Frame("hawkish tone", (
        "{b} [minutes|statement|projections|chief] {far} more hawkish than {expected}", "{b} [signals|sees|projects] rates {far} higher [for longer|next year] than {expected}",
        "{b} [minutes|statement|chief] {far} less dovish than {expected}", "{b} [speeds up|accelerates] [tightening|balance-sheet runoff] {by}",
    ), _TIGHTER, factors=(("rates", 0.9),), weight=1.6),
)  # fmt: skip
_EASY_WORDS = (
    Frame("no hike", (
        "{b} {hold}, [hike had been|markets had priced a hike|defying calls for a hike]", "{b} [does not raise|declines to raise|refuses to hike] rates as {expected}",
        "{b} [pushes back against|rules out|sees no case for] rate hikes", "{b} no longer [sees|expects|plans] rate hikes [this year|soon]",
        "{b} [drops|removes] [language|wording|reference] on further [firming|tightening|hikes]", "{b} [cuts|lowers] rates in surprise move",
        "{b} [extends|expands|restarts] [bond buying|asset purchases|quantitative easing] [early|ahead of schedule]",
        "{b} {hold}, [signals|flags|hints at] further [easing|cuts|support]",
    ), _EASIER, factors=(("rates", -1.0),), grade=1, weight=2.4),
    Frame("dovish tone", (
        "{b} [minutes|statement|projections|chief] {far} more dovish than {expected}", "{b} [signals|sees|projects] rates {far} lower [for longer|next year] than {expected}",
        "{b} [minutes|statement|chief] {far} less hawkish than {expected}", "{b} [slows|scales back] [tightening|balance-sheet runoff] {by}",
    ), _EASIER, factors=(("rates", -0.9),), weight=1.6),
    Frame("emergency", (
        "{b} [cuts rates|slashes rates|cuts rate to near zero] in emergency [move|meeting|session]", "Emergency [cut|easing] by {b}, rates [down|lowered] {big} {bp}",
        "{b} [launches|unveils|announces] unlimited [bond buying|asset purchases]",
    ), _EASIER, factors=(("rates", -1.0),), grade=2, weight=0.5),
    Frame("zero and buys", (
        "{b} keeps [its target range|its rate] at 0 to 0.25% and is ready to buy [long Treasuries|long bonds|longer-term bonds]",
        "{b} [holds rates near zero|keeps target range at 0 to 0.25%], will buy [long-term|longer-dated] [Treasuries|bonds]",
        "{b} [stands ready|is prepared] to [expand|increase] [purchases|asset purchases] of [agency debt|long bonds|mortgage bonds]",
        "{b} evaluates benefits of [purchasing|buying] longer-term [Treasuries|bonds|securities]",
    ), _EASIER, factors=(("rates", -1.0),), grade=2, weight=0.6),
)  # fmt: skip

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

_HELP = (
    Frame("help", (
        "{b} [opens|launches|creates|widens] {adj} [lending facility|liquidity facility|discount window|dollar swap lines] for banks",
        "[Treasury|Government|{b}] to [rescue|bail out|back|inject capital into] [lenders|banks|money funds] in {adj} [package|plan]",
        "[Lawmakers|Senate|Parliament] [pass|approve|back] {adj} bank [rescue|bailout|aid] [bill|plan]", "Banks [pass|clear|sail through] stress tests, capital hole {far} smaller than feared",
        "[Government|Regulator] [guarantees|insures] all bank deposits in {adj} [step|plan]", "[Big banks|Lenders] repay {adj} [rescue|bailout] [funds|aid] early",
    ), "[help for banks|the rescue] calms fear", factors=(("bank stress", -1.0),), weight=1.0),
    Frame("strain", (
        "[Lawmakers|Senate|Parliament] [reject|vote down|block] {adj} bank [rescue|bailout|aid] [bill|plan]", "Banks [fail|flunk] stress tests, capital hole {far} bigger than feared",
        "[Big|Regional|Large] lender [fails|collapses|seized by regulators] [after run on deposits|as funding dries up]", "[Government|Treasury|{b}] will not [rescue|bail out|back] [lender|failing bank|broker]",
        "{b} [closes|ends|withdraws] {adj} [lending facility|liquidity facility|swap lines] [despite strains|early]", "Interbank [lending|funding] [freezes|dries up], [spreads|rates] {far} wider",
    ), "[strain|fear] in the banking system grows", factors=(("bank stress", 1.0),), weight=1.0),
)  # fmt: skip


def draw(dice: Dice, currency: str = "", kindred: str = "") -> Event:
    """What a central bank does, or what makes it act; of `currency` where given. `kindred` 'banks' is help or strain."""
    currency = currency or tuple(_BANKS)[dice.weighted(_SHARES)]
    small, big = dice.pick(_STEPS)
    facts = {
        "b": _BANKS[currency], "p": _PLACES[currency],
        "raise": _RAISE, "cut": _CUT, "hold": _HOLD, "expected": _EXPECTED, "bp": _BP, "big": big,
    }  # fmt: skip
    way = dice.unit()
    if kindred == "banks" or (not kindred and way < 0.13):
        return draw_event(dice, Kind.CENTRAL_BANK, dice.pick(_HELP), None, None, facts)
    if way < 0.45:
        return _move(dice, currency, facts, small, big)
    if way < 0.65:
        return _data(dice, currency, facts)
    frames = _TIGHT_WORDS if dice.chance(0.5) else _EASY_WORDS
    frame = frames[dice.weighted([frame.weight for frame in frames])]
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
