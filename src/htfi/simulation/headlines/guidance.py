"""What a company announces about its own future: outlook, payouts, contracts, capital, deals it has signed."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines import fortunes, rivals
from htfi.simulation.headlines.frames import EventFrame, draw_amount, draw_event
from htfi.simulation.rng import Rng

_UP = "[raises|lifts|increases|boosts|hikes|ups|upgrades]"
_DOWN = "[cuts|lowers|reduces|trims|slashes|downgrades]"
_OUTLOOK = (
    "[full-year|annual|2025|next year's|second-half|fiscal-year] [outlook|guidance|forecast|profit "
    "target|sales target]"
)
_NO = "[does not|will not|has no plans to|sees no need to|says it won't|declines to]"
_RULES = (
    "[rules out|dismisses talk of|decides against|backs away from|shelves plans for|abandons plans for|"
    "scraps plans for]"
)

_BETTER = "[the outlook|guidance] was [raised|lifted]"
_WORSE = "[the outlook|guidance] was [cut|lowered]"
_RELIEF = "[a feared|an expected] [cut|setback] [will not come|was ruled out]"
_LETDOWN = "[a hoped-for|an expected] [gain|lift] [will not come|was ruled out]"

_GOODIES = (
    "[a dividend increase|a special dividend|a share buyback|higher targets|a bigger payout|an upgrade "
    "to its outlook]"
)
_EVILS = (
    "[a dividend cut|a share issue|a profit warning|lower targets|a capital raising|a cut to its outlook|"
    "layoffs and a writedown]"
)

_FRAMES = (
    EventFrame(
        "raised",
        (
            "{s} {up} {outlook} {by}",
            "{s} {up} its {outlook} {by}",
            "{outlook} {up_passive} {by} [at|by] {s}",
            "{s} now sees {outlook} {far} [higher|better] than before",
            "{s} sees [profit|sales|growth] {far} above [earlier|previous] guidance",
            "{s} {up} {outlook} {by} [on strong demand|after strong orders|as costs ease]",
        ),
        _BETTER,
        own=1.0,
        weight=2.4,
    ),
    EventFrame(
        "cut",
        (
            "{s} {down} {outlook} {by}",
            "{s} {down} its {outlook} {by}",
            "{outlook} {down_passive} {by} [at|by] {s}",
            "{s} now sees {outlook} {far} [lower|worse] than before",
            "{s} sees [profit|sales|growth] {far} below [earlier|previous] guidance",
            "{s} {down} {outlook} {by} [on weak demand|after weak orders|as costs rise]",
        ),
        _WORSE,
        own=-1.0,
        weight=2.4,
    ),
    EventFrame(
        "no raise",
        (
            "{s} {no} [raise|lift|increase|upgrade] {outlook}",
            "{s} stops short of [raising|lifting] {outlook}",
            "{s} {rules} {goodies}",
            "{s} no longer expects to [raise|beat|exceed] {outlook}",
            "No {adj} [raise|increase] in {outlook}, says {s}",
            "{s} withdraws [raise|increase] of {outlook}",
            "{goodies} [is off the table|will not happen|is not planned], {s} says",
        ),
        _LETDOWN,
        own=-0.8,
        grade=1,
        weight=0.9,
    ),
    EventFrame(
        "no cut",
        (
            "{s} {no} [cut|lower|reduce|downgrade] {outlook}",
            "{s} stops short of [cutting|lowering] {outlook}",
            "{s} {rules} {evils}",
            "{s} no longer expects to [cut|miss|lower] {outlook}",
            "No {adj} [cut|reduction] in {outlook}, says {s}",
            "{s} withdraws [cut|reduction] of {outlook}",
            "{evils} [is off the table|will not happen|is not planned], {s} says",
        ),
        _RELIEF,
        own=0.8,
        grade=1,
        weight=0.9,
    ),
    EventFrame(
        "payout up",
        (
            (
                "{s} [announces|launches|plans|unveils|proposes] {adj} {money} [share buyback|buyback|"
                "special dividend]"
            ),
            "{s} [raises|lifts] dividend {by}",
            "{s} to [return|hand back] {money} to shareholders",
            "{s} reinstates dividend",
        ),
        "[more cash goes back to|a bigger payout for] shareholders",
        own=0.8,
    ),
    EventFrame(
        "payout down",
        (
            "{s} [suspends|halts|cancels|scraps] {adj} {money} [share buyback|buyback|special dividend]",
            "{s} [cuts|lowers] dividend {by}",
            "{s} to [raise|seek] {money} from shareholders [in share sale|in rights issue]",
            "{s} suspends dividend",
        ),
        "[less cash goes back to|a smaller payout for|new shares dilute] shareholders",
        own=-0.9,
    ),
    EventFrame(
        "versus analysts up",
        (
            "{s} sees [annual|FY] EPS of {hi}, analysts at {lo}",
            "{s} guides to {hi} per share; consensus {lo}",
            "Consensus {lo}, {s} guides to EPS of {hi}",
            "{s} had guided to growth of {lop}, now sees {hip}",
            "{s} sees revenue growth of {hip} [vs|against] {lop} [before|previously|expected]",
            "Analysts expected {lop} growth from {s}, it forecasts {hip}",
            "{s} [raises|moves|changes] growth target to {hip} from {lop}",
            "{s} sees costs rising {lop}, had planned for {hip}",
        ),
        "[the company|management] sees more than was [expected|forecast]",
        own=1.0,
        grade=1,
        weight=1.0,
    ),
    EventFrame(
        "versus analysts down",
        (
            "{s} sees [annual|FY] EPS of {lo}, analysts at {hi}",
            "{s} guides to {lo} per share; consensus {hi}",
            "Consensus {hi}, {s} guides to EPS of {lo}",
            "{s} had guided to growth of {hip}, now sees {lop}",
            "{s} sees revenue growth of {lop} [vs|against] {hip} [before|previously|expected]",
            "Analysts expected {hip} growth from {s}, it forecasts {lop}",
            "{s} [cuts|moves|changes] growth target to {lop} from {hip}",
            "{s} sees costs rising {hip}, had planned for {lop}",
        ),
        "[the company|management] sees less than was [expected|forecast]",
        own=-1.0,
        grade=1,
        weight=1.0,
    ),
    EventFrame(
        "unchanged",
        (
            "{s} [reiterates|confirms|maintains|leaves unchanged|stands by|affirms] {outlook}",
            "{outlook} unchanged at {s}",
        ),
        "[the outlook is unchanged|nothing changes in the outlook]",
        grade=1,
        weight=0.8,
    ),
)

_FORTUNES = tuple(frame.weight for frame in fortunes.FRAMES)
_WEIGHTS = tuple(frame.weight for frame in _FRAMES)
_FIXED = {
    "up": _UP,
    "down": _DOWN,
    "outlook": _OUTLOOK,
    "no": _NO,
    "rules": _RULES,
    "goodies": _GOODIES,
    "evils": _EVILS,
    "up_passive": "[raised|lifted|increased]",
    "down_passive": "[cut|lowered|reduced]",
}


def draw(dice: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    """A company's own announcement or its prospects, in a quarter of cases one that concerns `other` too."""
    low = dice.uniform_between(0.5, 8.0)
    growth = dice.uniform_between(1.0, 9.0)
    facts = _FIXED | {
        "money": draw_amount(dice),
        "lo": f"{low:.2f}",
        "hi": f"{low * dice.uniform_between(1.08, 1.2):.2f}",
        "lop": f"{growth:.1f}%",
        "hip": f"{growth + dice.uniform_between(1.5, 4.0):.1f}%",
    }
    way = dice.uniform()
    if way < 0.27:
        return rivals.draw(dice, subject, other, facts)
    if way < 0.6:
        frame = fortunes.FRAMES[dice.weighted_index(_FORTUNES)]
        return draw_event(dice, NewsEventKind.GUIDANCE, frame, subject, None, facts | fortunes.SLOTS)
    return draw_event(
        dice, NewsEventKind.GUIDANCE, _FRAMES[dice.weighted_index(_WEIGHTS)], subject, None, facts
    )
