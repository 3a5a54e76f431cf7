"""Headlines of no consequence, about companies and about the market."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_event
from htfi.simulation.rng import Rng

_COMPANY = (
    (
        "{s} names [new|] [head of investor relations|communications chief|regional manager|"
        "sustainability officer|chief of staff]"
    ),
    (
        "{s} to [present|speak] at [investor|industry|technology|annual] conference [next week|on {day}|"
        "in {city}]"
    ),
    "{s} [celebrates|marks] {n}th anniversary",
    "{s} [sponsors|backs] [local marathon|youth football cup|city orchestra|science prize]",
    "{s} [opens|moves] [visitor centre|regional office|training academy] in {city}",
    "{s} publishes [annual report|sustainability report|diversity report]",
    "{s} [sets|announces] date of [annual meeting|results|shareholder meeting] for {day}",
    "{s} to report [results|earnings] on {day}",
    "{s} [wins|receives] [workplace|design|charity] award",
    "{s} [updates|redesigns] [logo|website|packaging]",
    "{s} board re-elected at annual meeting",
    "{s} [donates|gives] $[1|2|5] mln to [flood victims|schools|hospital]",
    "{s} [renews|extends] lease on {city} offices",
    "{s} chairman [gives interview|speaks] on [leadership|careers|the future of work]",
    "{s} no change in number of voting rights",
    "{s} [holding|major shareholding] notification",
    "{s} and {o} [share|to share] stage at {city} conference",
    "{s} hires [analyst|lawyer] from {o}",
    "{s} director [buys|sells] a few shares under regular plan",
    "Why {s} shares are [in focus|being watched] [today|this week]",
    "What analysts say about {s}: views [differ|unchanged]",
    "{s} [raises|lifts] [flag|curtain] at new {city} [visitor centre|museum]",
    "{s} wins [football match|quiz|charity race] against {o}",
    "{s} [cuts|slices] ribbon at {city} [office|showroom]",
)
_MARKET = (
    "[Markets|Stocks|Shares|Bonds] [little changed|quiet|drift] in [thin|holiday|early] trade",
    "[Week ahead|Day ahead|Diary]: [speeches|auctions|data] [due|to watch]",
    "[Exchange|Bourse] to close on {day} for [holiday|maintenance]",
    "[Column|Opinion|Comment]: what [history|theory] says about [bubbles|bonds|inflation]",
    "[Central bank|Finance ministry] publishes [research paper|annual report|calendar]",
    "[Technical|Chart] view: [range|sideways] trade [continues|seen]",
    "[Fed|ECB|BoE] official speaks on [financial literacy|payments|history of money]",
    "[Finance ministers|Leaders] meet in {city}, no decisions expected",
    "[Statistics office|Exchange] changes [release calendar|opening hours]",
    "[Gold|Oil|Dollar] steady before {day} data",
    "[President|Prime minister] visits {city}",
    "[New|Commemorative] coin [issued|unveiled] in {city}",
)
_DAYS = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "March 4",
    "June 12",
    "May 21",
    "Nov 3",
    "Jan 15",
)
_CITIES = (
    "Geneva",
    "Leeds",
    "Austin",
    "Lyon",
    "Osaka",
    "Toronto",
    "Oslo",
    "Lisbon",
    "Porto",
    "Denver",
    "Leipzig",
    "Cork",
    "Perth",
    "Tampa",
    "Turin",
)


def draw(dice: Rng, subject: SimulatedAsset | None, other: SimulatedAsset) -> NewsEvent:
    """News that moves nothing."""
    facts = {
        "day": dice.choice(_DAYS),
        "city": dice.choice(_CITIES),
        "n": str(5 * (2 + dice.integer(25))),
        "a": f"{dice.uniform_between(0.5, 6):.1f}",
        "o": other.short,
    }
    frame = EventFrame(
        "trivia",
        _COMPANY if subject else _MARKET,
        "[nothing of weight|the news is of no consequence]",
        grade=1,
    )
    return draw_event(dice, NewsEventKind.GUIDANCE, frame, subject, None, facts)
