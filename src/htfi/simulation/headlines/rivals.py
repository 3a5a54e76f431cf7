"""Between two companies: bids, contracts, market share; who does what to whom. `guidance` draws from here."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_event
from htfi.simulation.rng import Rng

_BID = "[a bid|a takeover] [at a premium|above the market price] lifts the target"
_FRAMES = (
    EventFrame(
        "to buy",
        (
            "{s} to [buy|acquire|take over] {o} [for {money}|in {money} deal|at {premium}% premium]",
            "{s} [agrees|signs deal] to [buy|acquire] {o} at {premium}% premium",
            "{s} [offers|bids] {money} for {o}",
            "{s} makes [agreed|friendly|all-cash] [bid|offer] for {o}",
            "{s} [swallows|snaps up|takes out] [rival|] {o} [for {money}|]",
        ),
        _BID,
        own=-0.45,
        other=2.4,
        grade=1,
    ),
    EventFrame(
        "to be bought",
        (
            (
                "{s} to be [bought|acquired|taken over] by {o} [for {money}|in {money} deal|at "
                "{premium}% premium]"
            ),
            "{s} agrees to be [bought|acquired] by {o} at {premium}% premium",
            "{s} [accepts|backs] {money} [bid|offer] from {o}",
            "{s} [receives|gets] [bid|offer] from {o} at {premium}% premium",
            "{s} [sells itself|agrees sale] to {o} for {money}",
        ),
        _BID,
        own=2.4,
        other=-0.45,
        grade=1,
    ),
    EventFrame(
        "drops bid",
        (
            "{s} [drops|withdraws|abandons|walks away from] [bid|offer] for {o}",
            "{s} [drops|ends] plan to [buy|acquire] {o}",
            "{s} will not [raise bid|proceed with bid|return] for {o}",
        ),
        "the bid is gone and its premium with it",
        own=0.45,
        other=-1.9,
        grade=1,
        weight=0.7,
    ),
    EventFrame(
        "rejects bid",
        (
            "{s} loses [bidder|suitor] {o} as [bid|offer] is withdrawn",
            "{s} left without [bid|offer] as {o} [walks away|pulls out|withdraws]",
        ),
        "the bid is gone and its premium with it",
        own=-1.9,
        other=0.45,
        grade=1,
        weight=0.6,
    ),
    EventFrame(
        "takes contract from",
        (
            "{s} [takes|snatches|wins] {adj} [contract|order|customer] away from {o}",
            "{s} beats {o} to {adj} [government|supply|defence] [contract|order]",
            "{s} [picked|chosen|preferred] over {o} for {adj} [contract|order|project]",
            "{s} [replaces|ousts] {o} as [main|sole] supplier in {adj} [contract|deal]",
        ),
        "[a contract|an order] changes hands",
        own=0.85,
        other=-0.75,
    ),
    EventFrame(
        "loses contract to",
        (
            "{s} [loses|cedes] {adj} [contract|order|customer] to {o}",
            "{s} [beaten|outbid] by {o} to {adj} [government|supply|defence] [contract|order]",
            "{s} [passed over|rejected] in favour of {o} for {adj} [contract|order|project]",
            "{s} [replaced|ousted] by {o} as [main|sole] supplier in {adj} [contract|deal]",
        ),
        "[a contract|an order] changes hands",
        own=-0.85,
        other=0.75,
    ),
    EventFrame(
        "cheaper than",
        (
            "{s} [undercuts|takes market share from|outsells|overtakes] {o} {by}",
            "{o} [loses market share to|outsold by|overtaken by] {s} {by}",
        ),
        "market share [changes hands|moves between rivals]",
        own=0.7,
        other=-0.7,
        weight=0.8,
    ),
    EventFrame(
        "dearer than",
        (
            "{s} [loses market share to|undercut by|outsold by|overtaken by] {o} {by}",
            "{o} [takes market share from|outsells|overtakes] {s} {by}",
        ),
        "market share [changes hands|moves between rivals]",
        own=-0.7,
        other=0.7,
        weight=0.8,
    ),
)
_WEIGHTS = tuple(frame.weight for frame in _FRAMES)


def draw(dice: Rng, subject: SimulatedAsset, other: SimulatedAsset, facts: dict[str, str]) -> NewsEvent:
    """Something between the two; `facts` hold an amount of money."""
    frame = _FRAMES[dice.weighted_index(_WEIGHTS)]
    if frame.why is _BID:
        return _bid(dice, frame, subject, other, facts)
    return draw_event(dice, NewsEventKind.GUIDANCE, frame, subject, other, facts)


def _bid(
    dice: Rng, frame: EventFrame, subject: SimulatedAsset, other: SimulatedAsset, facts: dict[str, str]
) -> NewsEvent:
    """A takeover: the higher the premium, the further the target rises; without one it is a middling bid."""
    premium = dice.weighted_index((3, 4, 3))
    facts["premium"] = str(((12, 18), (25, 38), (45, 75))[premium][0] + dice.integer((7, 14, 31)[premium]))
    if premium == 1:
        return draw_event(dice, NewsEventKind.GUIDANCE, frame, subject, other, facts)
    phrases = tuple(
        phrase.replace("[for {money}|in {money} deal|at {premium}% premium]", "at {premium}% premium")
        for phrase in frame.phrases
        if "{premium}" in phrase
    )
    scale = 0.6 if premium == 0 else 1.7
    own, target = (frame.own * scale, frame.other) if frame.own > 0 else (frame.own, frame.other * scale)
    frame = EventFrame(frame.subkind, phrases, frame.why, own=own, other=target, grade=1)
    return draw_event(dice, NewsEventKind.GUIDANCE, frame, subject, other, facts)
