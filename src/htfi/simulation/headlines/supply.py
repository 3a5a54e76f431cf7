"""A company's own output: strikes, fires, repairs, suppliers; what begins and what ends."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_event
from htfi.simulation.rng import Rng

# Starts and ends of trouble: with "strike" or "output" the same verb means opposite things.
_BEGIN = "[begins|starts|returns|worsens|spreads|drags on|deepens]"
_END = "[ends|is over|eases|is averted|is called off|fades|is resolved]"
_KEEP = "[extends|prolongs|widens|resumes|threatens]"
_STOP = "[ends|averts|settles|calls off|avoids|resolves]"
_TROUBLE = "[strike|walkout|outage|shutdown|shortage of parts|fire damage|labour dispute|recall]"
_FLOW = "[production|output|deliveries|operations|shipments|exports]"
_SITE = "[main|largest|key|second|coastal|new] [plant|mine|factory|refinery|works|site|warehouse]"

_OWN = (
    EventFrame(
        "own trouble",
        (
            "{s} {keep} {trouble} at {site}",
            "{trouble} {begin} at {s}'s {site}",
            "{s} [halts|suspends|stops|delays] {flow} at {site}",
            "{s} {far} slower to restore {flow} than [hoped|expected]",
            "[Fire|Explosion|Flood|Accident|Cyberattack] [hits|shuts|damages] {s} {site}",
            "Workers at {s} [reject|vote down] pay [deal|offer]",
            "{s} {flow} [cut|down] {by} after [accident|outage]",
            "{s} [loses|fails to secure] {adj} [supplier|shipment|permit] for {site}",
        ),
        "[output|production] at the company suffers",
        own=-0.95,
        grade=1,
        weight=1.5,
    ),
    EventFrame(
        "own relief",
        (
            "{s} {stop} {trouble} at {site}",
            "{trouble} {end} at {s}'s {site}",
            "{s} [resumes|restarts|restores|speeds up] {flow} at {site}",
            "{s} {far} quicker to restore {flow} than [hoped|expected]",
            "No damage to {s} {site} from [fire|explosion|flood|cyberattack]",
            "Workers at {s} [accept|back|vote for] pay [deal|offer]",
            "{s} {flow} [raised|up] {by} after [repair|upgrade]",
            "{s} [wins|secures] {adj} [supplier|shipment|permit] for {site}",
        ),
        "[output|production] at the company recovers",
        own=0.95,
        grade=1,
        weight=1.5,
    ),
    EventFrame(
        "graded trouble",
        (
            "{s} {flow} {far} below plan",
            "{s} [outage|stoppage] {far} longer than [expected|announced]",
            "{adj} [loss|drop] of {flow} at {s} {site}",
            "{s} cuts {flow} {by} as parts run short",
        ),
        "[output|production] at the company suffers",
        own=-1.0,
    ),
    EventFrame(
        "graded relief",
        (
            "{s} {flow} {far} above plan",
            "{s} [outage|stoppage] {far} shorter than [expected|announced]",
            "{adj} [gain|rise] of {flow} at {s} {site}",
            "{s} lifts {flow} {by} as parts arrive",
        ),
        "[output|production] at the company recovers",
        own=1.0,
    ),
)
_RIVAL = (
    EventFrame(
        "rival's trouble",
        (
            "[Fire|Strike|Outage|Explosion] at {s} {site} sends [customers|orders] to rival {o}",
            "{o} to [fill|take over] orders as {s} [halts|stops] {flow}",
            "{o} [gains|steps in] as {s} [suspends|cannot resume] {flow}",
        ),
        "one rival's lost output is the other's [gain|business]",
        own=-0.95,
        other=0.7,
        grade=1,
    ),
    EventFrame(
        "supplier's trouble",
        (
            "{s} [halts|stops] deliveries to {o} after [fire|strike|outage]",
            "{o} runs short of parts as {s} [halts|stops] {flow}",
        ),
        "the customer loses its [supplier|parts]",
        own=-0.8,
        other=-0.8,
        grade=1,
    ),
    EventFrame(
        "supplier's relief",
        (
            "{s} [resumes|restarts] deliveries to {o} after [fire|strike|outage]",
            "{o} gets parts again as {s} [resumes|restarts] {flow}",
        ),
        "deliveries [start again|are back] for supplier and customer",
        own=0.8,
        other=0.8,
        grade=1,
    ),
)
_SLOTS = {
    "begin": _BEGIN,
    "end": _END,
    "keep": _KEEP,
    "stop": _STOP,
    "trouble": _TROUBLE,
    "flow": _FLOW,
    "site": _SITE,
}


def draw(dice: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    """Trouble or relief, in some cases one that concerns `other` too."""
    if dice.chance(0.3):
        return draw_event(dice, NewsEventKind.SUPPLY, dice.choice(_RIVAL), subject, other, _SLOTS)
    return draw_event(dice, NewsEventKind.SUPPLY, dice.choice(_OWN), subject, None, _SLOTS)
