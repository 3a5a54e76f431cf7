"""Courts and regulators: who wins against whom, what is upheld or overturned, cleared or blocked."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_amount, draw_event
from htfi.simulation.rng import Rng

_COURT = "[court|judge|jury|appeals court|top court|federal judge|tribunal|arbitration panel]"
_SUIT = "[patent|contract|antitrust|licensing|trade-secret|royalty] [suit|case|dispute|lawsuit]"
_WATCHDOG = (
    "[regulator|watchdog|competition authority|antitrust agency|markets authority|drug agency|ministry]"
)
_WON = "[the ruling|the court] [goes|went] [its way|in its favour]"
_LOST = "[the ruling|the court] [goes|went] against it"
_TWO = "[one side wins what|the winner gains what] the other [loses|pays]"

_PAIRS = (
    EventFrame(
        "wins",
        (
            "{s} [wins|prevails in] {suit} against {o}",
            "{court} [rules|finds|decides] for {s} in {suit} [with|against] {o}",
            "{court} [sides with|backs] {s} over {o} in {suit}",
            "{s} defeats {o} in {suit}",
            "{s} awarded {money} from {o} in {suit}",
            "{o} [must|ordered to|told to] pay {s} {money} in {suit}",
            "{court} [dismisses|throws out|rejects] {o}'s {suit} against {s}",
            "{court} overturns {o}'s win over {s} in {suit}",
            "{court} [upholds|confirms] {s}'s win over {o}",
            "{o} drops {suit} against {s}",
            "{o} loses to {s} in {suit}",
            "{o} fails in [bid|attempt] to overturn {s}'s win",
        ),
        _TWO,
        own=0.9,
        other=-0.8,
        grade=1,
    ),
    EventFrame(
        "loses",
        (
            "{s} [loses|is beaten in] {suit} against {o}",
            "{court} [rules|finds|decides] for {o} in {suit} [with|against] {s}",
            "{court} [sides with|backs] {o} over {s} in {suit}",
            "{s} defeated by {o} in {suit}",
            "{s} [must|ordered to|told to] pay {o} {money} in {suit}",
            "{o} awarded {money} from {s} in {suit}",
            "{court} [dismisses|throws out|rejects] {s}'s {suit} against {o}",
            "{court} overturns {s}'s win over {o} in {suit}",
            "{court} [upholds|confirms] {o}'s win over {s}",
            "{s} drops {suit} against {o}",
            "{s} loses to {o} in {suit}",
            "{s} fails in [bid|attempt] to overturn {o}'s win",
        ),
        _TWO,
        own=-0.9,
        other=0.8,
        grade=1,
    ),
    EventFrame(
        "merger blocked",
        (
            (
                "{watchdog} [blocks|rejects|prohibits|refuses to clear] {s}'s [purchase of|takeover of|"
                "bid for] {o}"
            ),
            "{s} barred from buying {o}, {watchdog} says",
            "{watchdog} does not [clear|approve] {s}'s [purchase of|takeover of] {o}",
        ),
        "the deal [is off|was blocked] and its premium goes",
        own=0.0,
        other=-1.7,
        grade=1,
        weight=0.5,
    ),
    EventFrame(
        "merger cleared",
        (
            "{watchdog} [clears|approves|waves through] {s}'s [purchase of|takeover of|bid for] {o}",
            "{s} free to buy {o}, {watchdog} says",
            "{watchdog} does not [block|oppose] {s}'s [purchase of|takeover of] {o}",
            "{watchdog} drops objections to {s}'s [purchase of|bid for] {o}",
        ),
        "the deal [may go ahead|was cleared] and the gap closes",
        own=0.0,
        other=1.1,
        grade=1,
        weight=0.5,
    ),
)

_FRAMES = (
    EventFrame(
        "probe",
        (
            "{watchdog} [opens|launches|widens|starts] {adj} [probe|investigation|inquiry] into {s}",
            "{s} [faces|under|hit by] {adj} [probe|investigation] [by|from] {watchdog}",
            (
                "{s} [sued|charged|accused] by {watchdog} over {adj} [fraud|emissions|safety|pricing|"
                "tax] [breach|case]"
            ),
            "{s} [recalls|stops selling] products in {adj} safety case",
        ),
        "[a probe|an inquiry] [hangs over|threatens] [it|the company]",
        own=-0.95,
    ),
    EventFrame(
        "probe ends",
        (
            "{watchdog} [drops|closes|ends|shelves] {adj} [probe|investigation|inquiry] into {s}",
            "{s} [cleared|acquitted|exonerated] in {adj} [probe|investigation] [by|of] {watchdog}",
            (
                "{watchdog} will not [charge|sue|prosecute] {s} over {adj} [fraud|emissions|safety|"
                "pricing|tax] case"
            ),
            "No charges [for|against] {s} in {adj} safety case",
        ),
        "[the probe|the inquiry] is over",
        own=0.9,
    ),
    EventFrame(
        "fine",
        (
            (
                "{s} [fined|must pay|ordered to pay] {money}, {far} [more|higher] than [expected|feared|"
                "provided for]"
            ),
            "{s} fine of {money} {far} exceeds [provisions|what it set aside]",
            "{s} [settlement|penalty] {far} above [estimates|provisions]",
        ),
        "the [fine|penalty] is [bigger|heavier] than [feared|expected]",
        own=-0.9,
    ),
    EventFrame(
        "small fine",
        (
            (
                "{s} [fined|must pay|ordered to pay] {money}, {far} [less|lower] than [expected|feared|"
                "provided for]"
            ),
            "[Provisions|What it set aside] {far} exceed {s}'s fine of {money}",
            "{s} [settlement|penalty] {far} below [estimates|provisions]",
        ),
        "the [fine|penalty] is [smaller|lighter] than [feared|expected]",
        own=0.8,
    ),
    EventFrame(
        "ruling against stands",
        (
            (
                "{court} [upholds|confirms|lets stand|reinstates|declines to overturn] [ruling|verdict|"
                "judgment|penalty] against {s}"
            ),
            (
                "{court} [overturns|throws out|reverses|voids|refuses to uphold] [ruling|verdict|"
                "judgment] in favour of {s}"
            ),
            "{s} loses [appeal|bid] to overturn [ruling|fine|verdict]",
            "{court} [rejects|dismisses] {s}'s appeal [against|of] {money} [fine|verdict]",
        ),
        _LOST,
        own=-0.95,
        grade=1,
        weight=1.0,
    ),
    EventFrame(
        "ruling against falls",
        (
            (
                "{court} [overturns|throws out|reverses|voids|refuses to uphold] [ruling|verdict|"
                "judgment|penalty] against {s}"
            ),
            (
                "{court} [upholds|confirms|lets stand|reinstates|declines to overturn] [ruling|verdict|"
                "judgment] in favour of {s}"
            ),
            "{s} wins [appeal|bid] to overturn [ruling|fine|verdict]",
            "{court} [rejects|dismisses] appeal [against|of] {s}'s {money} [award|win]",
        ),
        _WON,
        own=0.95,
        grade=1,
        weight=1.0,
    ),
    EventFrame(
        "licence",
        (
            (
                "{watchdog} [approves|clears|grants] {s}'s [new drug|licence|new product|key product|"
                "plant permit]"
            ),
            "{s} [wins|gets|secures] [approval|green light|go-ahead] for {adj} [product|plant|project]",
            "{watchdog} lifts [ban on|suspension of|block on] {s}'s {adj} [product|plant|project]",
            "{watchdog} does not [reject|ban] {s}'s {adj} [product|project]",
        ),
        "[approval|the licence] [opens the way|came through]",
        own=1.0,
    ),
    EventFrame(
        "no licence",
        (
            (
                "{watchdog} [rejects|refuses|revokes] {s}'s [new drug|licence|new product|key product|"
                "plant permit]"
            ),
            (
                "{s} [denied|refused|fails to get] [approval|green light|go-ahead] for {adj} [product|"
                "plant|project]"
            ),
            (
                "{watchdog} lifts [approval of|permit for|clearance for] no longer, suspends {s}'s {adj} "
                "[product|plant]"
            ),
            "{watchdog} does not [approve|clear] {s}'s {adj} [product|project]",
        ),
        "[approval|the licence] was [refused|denied]",
        own=-1.1,
    ),
)
_WEIGHTS = tuple(frame.weight for frame in _FRAMES)
_PAIR_WEIGHTS = tuple(frame.weight for frame in _PAIRS)


def draw(dice: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    """A ruling or an inquiry; half of them between `subject` and `other`."""
    facts = {"court": _COURT, "suit": _SUIT, "watchdog": _WATCHDOG, "money": draw_amount(dice, 0.03, 8.0)}
    if dice.chance(0.36):
        return draw_event(
            dice, NewsEventKind.LEGAL, _PAIRS[dice.weighted_index(_PAIR_WEIGHTS)], subject, other, facts
        )
    return draw_event(dice, NewsEventKind.LEGAL, _FRAMES[dice.weighted_index(_WEIGHTS)], subject, None, facts)
