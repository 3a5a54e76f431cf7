"""Rumours of takeovers, defaults and cooked books, as trustworthy as their source; denials, forgeries."""

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_amount, draw_event
from htfi.simulation.rng import Rng

# Who says so, by the chance that it comes true.
_TALK = (
    (
        0.86,
        (
            "[{claim}, people familiar with the matter say|{claim} - [sources|people familiar]|[Sources|"
            "People close to the talks]: {claim}|{claim}, [three|several|two] [sources|people] say]"
        ),
    ),
    (
        0.62,
        (
            "[[Market talk|Talk|Chatter]: {claim}|{claim}, [unconfirmed report|one report] says|"
            "[Unconfirmed|Talk]: {claim}|{claim}, [a source says|traders say]]"
        ),
    ),
)


class RumourFrame(EventFrame, frozen=True):
    """A rumour's frame with what a confirmation or a denial would be about."""

    about: str = ""


_FRAMES = (
    RumourFrame(
        "takeover",
        (
            "{s} [in|is in|enters] [advanced|early|] [takeover|buyout|merger] talks [with {bidder}|]",
            "{bidder} [weighs|considers|prepares|nears] [bid|offer] for {s}",
            "{s} [draws|attracts] takeover interest from {bidder}",
            "{s} [works with banks on|explores|nears] {money} sale",
            "{bidder} [said to|may] [bid|offer] {money} for {s}",
        ),
        "[takeover|merger] talk",
        own=1.3,
        grade=1,
        about="[takeover|merger|sale] talks",
    ),
    RumourFrame(
        "default",
        (
            "{s} [may|could|said to] miss [bond|debt|coupon] payment",
            "{s} [hires|talks to] [advisers|lenders] on [debt restructuring|bankruptcy|standstill]",
            "[Lenders|Banks|Creditors] [refuse|decline] to roll over {s} debt",
            "{s} [close to|near|nears] [default|bankruptcy|breach of covenants]",
            "{s} runs short of cash",
        ),
        "[talk of default|payment trouble]",
        own=-1.5,
        grade=1,
        about="[default|bankruptcy|cash shortage|restructuring]",
    ),
    RumourFrame(
        "accounting",
        (
            "[Auditor|Whistleblower|Insider] [questions|doubts] {s} [accounts|books]",
            "{s} [inflated|overstated|booked too early] {adj} [sales|profit]",
            "[Hole|Irregularities] found in {s} [accounts|books]",
            "{s} to restate {adj} [profit|results]",
            "{s} [hid|concealed] {adj} losses",
        ),
        "[doubts about|trouble with] the books",
        own=-1.2,
        grade=1,
        about="[accounting irregularities|accounting report|allegations]",
    ),
    RumourFrame(
        "stake",
        (
            "{bidder} [builds|has built|takes] stake in {s}",
            "Activist [fund|investor] [builds|buys] {adj} stake in {s}",
            "[Large|New] buyer behind {s} share purchases",
        ),
        "[a big buyer|an investor] is said to build a stake",
        own=0.9,
        grade=1,
        about="stake [building|purchase]",
    ),
    RumourFrame(
        "contract",
        (
            "{s} [close to|near|nears|said to win] {adj} [contract|order] [worth {money}|]",
            "{s} [chosen|picked] for {adj} [government|defence|supply] [contract|order]",
        ),
        "[talk of|hope for] a big order",
        own=0.9,
        grade=1,
        about="[contract|order] win",
    ),
    RumourFrame(
        "departure",
        (
            "{s} [chief executive|CEO|finance chief] [to leave|may quit|pushed out]",
            "{s} board [loses confidence in|splits over] [chief executive|CEO]",
        ),
        "[talk that|a report that] the chief will go",
        own=-0.9,
        grade=1,
        about="[departure|resignation] [report|rumours]",
    ),
    RumourFrame(
        "lost client",
        ("{s} [may|set to|said to] lose [largest|key|main] customer", "{bidder} to drop {s} as supplier"),
        "[talk of|fear of] a lost customer",
        own=-1.0,
        grade=1,
        about="[loss of customer|customer report]",
    ),
)

_CONFIRM = (
    "{s} confirms {about}",
    "{s}: {about} [confirmed|true|is correct]",
    "[CONFIRMED|Confirmed]: {claim}, says {s}",
    "{s} [admits|acknowledges] {about}",
    "{about} [confirmed|not denied] by {s} [in filing|in statement|]",
    "{s} says report of {about} is [true|accurate|correct|no rumour]",
    "{s} [does not deny|cannot rule out any longer|no longer denies] {about}",
    "{s} [issues statement confirming|owns up to|makes official] {about}",
    "It is true: {s} {about} [confirmed|acknowledged]",
    "After [days|hours] of rumours, {s} confirms {about}",
    "{s} [drops|withdraws] denial of {about}",
)
_DENY = (
    "{s} denies {about}",
    "{s}: {about} [denied|untrue|pure fiction]",
    "{s} [rejects|dismisses|refutes] [report|talk] of {about}",
    "{s} says report of {about} is [false|untrue|incorrect|baseless]",
    "{about} [denied|not confirmed] by {s} [in filing|in statement|]",
    "{s} [knows of no|sees no truth in|is not in any] {about}",
    "No truth in report of {about}, says {s}",
    "{s} [does not confirm|never confirmed] {about}, [calls report false|speaks of invention]",
    "{s} [issues statement denying|threatens to sue over|demands retraction of] [report|story] of {about}",
    "[Report|Story|Talk] of {about} [is wrong|has no basis], {s} [tells investors|insists]",
    "After [days|hours] of rumours, {s} denies {about}",
    "[Newspaper|Blog|Agency] [retracts|withdraws|takes back] [report|story] of {s} {about}",
)

_SHILL = (
    "URGENT!!! ${t} [guaranteed|100%] [10x|5x|double] [today|this week], [insiders|whales] [loading|buying]",
    "${t} TAKEOVER CONFIRMED!! buy before [noon|the bell|everyone knows]",
    "[LEAKED|SECRET] memo: {s} to [explode|triple|moon], don't miss [out|it]",
    "${t} [to the moon|about to squeeze], trust me, [guaranteed|can't lose] [gains|money]",
    "Breaking!!! {s} [buyout|merger] at {pct}% premium [guaranteed|100% sure], [act now|buy now]",
    "Hot tip: ${t} will [rocket|skyrocket] tomorrow, [my cousin|a friend] works there",
)
_SMEAR = (
    "URGENT!!! ${t} going to ZERO, [sell everything|get out] [now|today]",
    "${t} BANKRUPT TOMORROW!! [insiders|everyone] dumping, sell now",
    "[LEAKED|SECRET] memo: {s} [collapse|fraud] [imminent|guaranteed], [sell|short] before it's too late",
    "${t} is a [scam|ponzi|fraud], trust me, [100% sure|guaranteed] crash",
    "Breaking!!! {s} [raided|shut down] [by agents|tonight], [act now|sell now] before halt",
    "Hot tip: ${t} will crash tomorrow, [my cousin|a friend] works there",
)
# A wire's manner under a name that is almost a wire's, with the letters of another alphabet or a wrong desk.
_LOOKALIKE_TEXT = (
    "[{desk} (unverified account)|via anonymous forwarded message|posted by @{handle}|- {desk} copy, "
    "sender unknown]"
)
_LOOKALIKE_SOURCES = (
    "Market1ine",
    "Cap1tal Wire",
    "Northgаte News",
    "Capitаl Wire",
    "Mаrketline",
    "Tradedеsk",
)
_HANDLES = ("stock_prophet", "alpha_gains", "pumpking", "moon_desk", "freetips4u", "insider_x")


def draw(dice: Rng, subject: SimulatedAsset) -> NewsEvent:
    """Something that is said about `subject`, with a source worth more or less."""
    tale, facts = _draw_frame(dice, subject)
    trust, said = _TALK[0 if dice.chance(0.6) else 1]
    phrases = tuple(said.replace("{claim}", phrase) for phrase in tale.phrases)
    frame = EventFrame(tale.subkind, phrases, tale.why, own=tale.own, grade=1, credibility=trust)
    return draw_event(dice, NewsEventKind.RUMOUR, frame, subject, None, facts)


def answered_rumour(dice: Rng, subject: SimulatedAsset, confirmed: bool) -> tuple[NewsEvent, NewsEvent]:
    """A rumour and what the company says to it. The second's own effect is the rumour's, or its undoing."""
    tale, facts = _draw_frame(dice, subject)
    said = _TALK[1][1] if dice.chance(0.5) else _TALK[0][1]
    phrases = tuple(said.replace("{claim}", phrase) for phrase in tale.phrases)
    facts["about"] = tale.about
    facts["claim"] = "[{}]".format("|".join(tale.phrases[:2]))
    rumour = draw_event(
        dice,
        NewsEventKind.RUMOUR,
        EventFrame(tale.subkind, phrases, tale.why, own=tale.own, grade=1),
        subject,
        None,
        facts,
    )
    answer = EventFrame(
        "confirmed" if confirmed else "denied",
        _CONFIRM if confirmed else _DENY,
        "[the company confirms it|confirmed by the company]"
        if confirmed
        else "[the company denies it|denied by the company]",
        own=tale.own if confirmed else -tale.own,
        grade=1,
    )
    return rumour, draw_event(dice, NewsEventKind.RUMOUR, answer, subject, None, facts)


def forged_news(dice: Rng, subject: SimulatedAsset) -> NewsEvent:
    """What only looks like news. It claims much and does nothing."""
    up = dice.chance(0.5)
    facts = {
        "t": subject.symbol,
        "pct": str(20 + dice.integer(180)),
        "desk": dice.choice(_LOOKALIKE_SOURCES),
        "handle": dice.choice(_HANDLES),
    }
    phrases = _SHILL if up else _SMEAR
    if dice.chance(0.4):
        tale, more = _draw_frame(dice, subject)
        facts |= more
        phrases = tuple(f"{phrase} {_FAKE_DESK}" for phrase in tale.phrases)
        up = tale.own > 0
    frame = EventFrame(
        "forged", phrases, "[nobody|no known source] stands behind it", own=1.2 if up else -1.2, grade=1
    )
    return draw_event(dice, NewsEventKind.RUMOUR, frame, subject, None, facts)


def _draw_frame(dice: Rng, subject: SimulatedAsset) -> tuple[RumourFrame, dict[str, str]]:
    bidder = dice.choice(
        (
            "private equity firm",
            "foreign rival",
            "state fund",
            "larger competitor",
            "a consortium",
            "pension fund",
        )
    )
    return dice.choice(_FRAMES), {"money": draw_amount(dice), "bidder": bidder, "s": subject.short}
