"""Commodities, chips and freight: what makes them scarce or plentiful, and by how much against forecasts.

`supply` draws from here.
"""

from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_event
from htfi.simulation.rng import Rng

_DEARER = "[supply shrinks|less comes to market|the market gets tighter]"
_CHEAPER = "[supply grows|more comes to market|the market gets looser]"


def _commodity(
    name: str, factor: str, tighter: tuple[str, ...], looser: tuple[str, ...]
) -> tuple[EventFrame, EventFrame]:
    return (
        EventFrame(f"{name} tighter", tighter, _DEARER, factors=((factor, 1.0),)),
        EventFrame(f"{name} looser", looser, _CHEAPER, factors=((factor, -1.0),)),
    )


_CARTEL = "[OPEC|OPEC+|oil cartel|Saudi-led group|oil producers' group]"
_OIL = (
    _commodity(
        "oil",
        "oil",
        (
            "{cartel} [agrees|decides|vows] to cut [output|production|supply] {by}",
            "{cartel} [extends|deepens|prolongs] [output|production] cuts {by}",
            "{cartel} {does_not} raise [output|production]",
            "{cartel} [cuts|raises quota cuts by] {far} more than expected",
            "{cartel} raises [output|production] {far} less than expected",
            (
                "[Pipeline|Refinery|Oil field|Export terminal] [fire|blast|shutdown|sabotage] [halts|"
                "cuts] {adj} crude [flows|exports]"
            ),
            "U.S. crude [stocks|inventories] [fall|drop] {far} more than expected",
            "U.S. crude [stocks|inventories] [rise|build] {far} less than expected",
        ),
        (
            "{cartel} [agrees|decides|vows] to raise [output|production|supply] {by}",
            "{cartel} [ends|unwinds|abandons] [output|production] cuts {by}",
            "{cartel} {does_not} cut [output|production]",
            "{cartel} [raises output by|adds] {far} more than expected",
            "{cartel} cuts [output|production] {far} less than expected",
            (
                "[Pipeline|Refinery|Oil field|Export terminal] [restart|repair|reopening] [restores|"
                "frees] {adj} crude [flows|exports]"
            ),
            "U.S. crude [stocks|inventories] [rise|build] {far} more than expected",
            "U.S. crude [stocks|inventories] [fall|drop] {far} less than expected",
        ),
    ),
    _commodity(
        "oil figures",
        "oil",
        (
            "{cartel} cuts output by {hi} [bpd|barrels a day], {lo} expected",
            "{cartel} raises output by {lo} [bpd|barrels a day], {hi} expected",
            "[Traders|Analysts] expected {lo} [bpd|barrel] cut, {cartel} [cuts|agrees] {hi}",
            "[Traders|Analysts] expected {hi} [bpd|barrel] increase, {cartel} adds {lo}",
            "U.S. crude stocks [fall|drop] {hi} barrels vs {lo} forecast",
            "U.S. crude stocks [rise|build] {lo} barrels vs {hi} forecast",
        ),
        (
            "{cartel} cuts output by {lo} [bpd|barrels a day], {hi} expected",
            "{cartel} raises output by {hi} [bpd|barrels a day], {lo} expected",
            "[Traders|Analysts] expected {hi} [bpd|barrel] cut, {cartel} [cuts|agrees] {lo}",
            "[Traders|Analysts] expected {lo} [bpd|barrel] increase, {cartel} adds {hi}",
            "U.S. crude stocks [fall|drop] {lo} barrels vs {hi} forecast",
            "U.S. crude stocks [rise|build] {hi} barrels vs {lo} forecast",
        ),
    ),
)
_OTHERS = (
    _commodity(
        "copper",
        "copper",
        (
            "[Strike|Walkout|Flood|Collapse] [halts|shuts] {adj} copper mine in [Chile|Peru|Zambia]",
            "Copper miners [reject pay offer|extend strike] in [Chile|Peru]",
            "Copper [stocks|inventories] [fall|drop] {far} more than expected",
            "[Chile|Peru] copper output [falls|drops] {by}",
        ),
        (
            "[Strike|Walkout|Stoppage] ends at {adj} copper mine in [Chile|Peru|Zambia]",
            "Copper miners [accept pay offer|end strike] in [Chile|Peru]",
            "Copper [stocks|inventories] [rise|build] {far} more than expected",
            "[Chile|Peru] copper output [rises|jumps] {by}",
        ),
    ),
    _commodity(
        "gas",
        "gas",
        (
            (
                "[Gas pipeline|LNG terminal|Gas field] [shut|halted|offline] after [fire|leak|blast], "
                "{adj} supply lost"
            ),
            (
                "[Cold snap|Freeze|Arctic blast] [to hit|forecast for] [Midwest|Europe|Northeast], gas "
                "demand {far} higher"
            ),
            "Gas [stocks|storage] {far} below forecasts",
            "Restart of [gas pipeline|LNG terminal] [delayed|put off|not expected soon]",
        ),
        (
            (
                "[Gas pipeline|LNG terminal|Gas field] [restarts|back online|reopens] after [fire|leak|"
                "blast], {adj} supply restored"
            ),
            (
                "[Mild|Warm] [weather|winter] [to reach|forecast for] [Midwest|Europe|Northeast], gas "
                "demand {far} lower"
            ),
            "Gas [stocks|storage] {far} above forecasts",
            "Restart of [gas pipeline|LNG terminal] [brought forward|due early|no longer delayed]",
        ),
    ),
    _commodity(
        "grain",
        "grain",
        (
            "[Drought|Frost|Heatwave|Flood] [hits|damages|shrinks] {adj} [wheat|corn|grain] [crop|harvest]",
            "[Russia|Ukraine|Argentina|India] [halts|bans|curbs] grain exports",
            "[Wheat|Corn|Grain] harvest {far} smaller than [expected|forecast]",
            "Black Sea grain [deal|corridor] [ends|collapses|not renewed]",
        ),
        (
            "[Rain|Better weather|Mild spring] [saves|helps|swells] {adj} [wheat|corn|grain] [crop|harvest]",
            "[Russia|Ukraine|Argentina|India] [resumes|frees|lifts curbs on] grain exports",
            "[Wheat|Corn|Grain] harvest {far} bigger than [expected|forecast]",
            "Black Sea grain [deal|corridor] [extended|revived|renewed]",
        ),
    ),
    _commodity(
        "chips",
        "chips",
        (
            "[Global|] chip shortage {begin}",
            (
                "[Quake|Fire|Power cut|Drought] [shuts|halts] {adj} chip [plants|foundries] in [Taiwan|"
                "Japan|Korea]"
            ),
            "Chip [lead times|delivery times] {far} longer",
            "Chip shortage no longer [expected to ease|seen ending] this year",
        ),
        (
            "[Global|] chip shortage {end}",
            (
                "[Taiwan|Japan|Korea] chip [plants|foundries] [restart|back at work] after [quake|fire|"
                "power cut]"
            ),
            "Chip [lead times|delivery times] {far} shorter",
            "Chip [glut|oversupply] {begin}",
        ),
    ),
    _commodity(
        "freight",
        "freight",
        (
            "[Port|Dockworkers'|Dock] strike {begin} [on East Coast|in Europe|at biggest ports]",
            "[Canal|Strait|Sea lane] [blocked|closed|shut] [by grounded ship|by drought|after attacks]",
            "Container [freight rates|rates] {far} higher",
            "[Port|Canal] reopening [delayed|put off|no longer expected this month]",
        ),
        (
            "[Port|Dockworkers'|Dock] strike {end} [on East Coast|in Europe|at biggest ports]",
            (
                "[Canal|Strait|Sea lane] [reopens|reopened|cleared] [after grounded ship is freed|after "
                "rain|as attacks stop]"
            ),
            "Container [freight rates|rates] {far} lower",
            "[Port|Canal] closure [avoided|called off|no longer expected]",
        ),
    ),
)

_NOTHING = EventFrame(
    "as expected",
    (
        "{cartel} [keeps|leaves] [output|production|quotas] unchanged, as [widely|] expected",
        "U.S. crude [stocks|inventories] [rise|fall] {lo} barrels, [exactly|just] as forecast",
        "{cartel} [meeting|talks] [ends|close] without [change|surprise]",
    ),
    "supply stays as expected",
    factors=(("oil", 0.0),),
    grade=1,
)
_SLOTS = {
    "cartel": _CARTEL,
    "begin": "[begins|starts|returns|worsens|spreads|drags on|deepens]",
    "end": "[ends|is over|eases|is averted|is called off|fades|is resolved]",
    "does_not": "[does not agree to|rules out plan to|will not|shelves plan to|fails to agree to]",
}


def draw(dice: Rng) -> NewsEvent:
    """More or less of something comes to market."""
    low = dice.uniform_between(0.3, 1.2)
    facts = _SLOTS | {
        "lo": f"{low:.1f} [mln|million]",
        "hi": f"{low * dice.uniform_between(1.8, 3.0):.1f} [mln|million]",
    }
    which = dice.weighted_index((5, 1, 1, 1, 1, 1.5))
    if which == 0 and dice.chance(0.07):
        return draw_event(dice, NewsEventKind.SUPPLY, _NOTHING, None, None, facts)
    pair = _OTHERS[which - 1] if which else dice.choice(_OIL)
    return draw_event(dice, NewsEventKind.SUPPLY, dice.choice(pair), None, None, facts)
