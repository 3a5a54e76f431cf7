"""A company's prospects in plain words: warnings, ratings, launches, demand, failures. `guidance` draws from them."""

from htfi.simulation.headlines.frames import EventFrame

_BETTER = "[the outlook|what lies ahead] [improves|looks better]"
_WORSE = "[the outlook|what lies ahead] [worsens|looks worse]"
_AGENCY = "[rating agency|agency|credit rater|Ratings firm]"
_BROKER = "[broker|bank|analyst|research house]"

FRAMES = (
    EventFrame(
        "warning",
        (
            "{s} issues {adj} profit warning",
            "{s} warns on [profit|sales|margins|demand], shares at risk",
            (
                "{s} [warns|cautions] that [profit|sales|orders] will be {far} [weaker|lower] [this year|"
                "this quarter]"
            ),
            "{adj} profit warning from {s}",
            "{s} [sees|flags|reports] {adj} slump in [orders|demand|bookings]",
            "[Demand|Orders|Sales] at {s} [collapse|crumble|dry up], company says",
        ),
        _WORSE,
        own=-1.0,
        weight=1.5,
    ),
    EventFrame(
        "bright outlook",
        (
            "{s} [upbeat|optimistic|confident] on [profit|sales|margins|demand]",
            "{s} [sees|flags|reports] {adj} surge in [orders|demand|bookings]",
            "{s} says [profit|sales|orders] will be {far} [stronger|higher] [this year|this quarter]",
            "{adj} rise in orders lifts {s} [outlook|hopes]",
            "[Demand|Orders|Sales] at {s} [boom|soar|take off], company says",
            "{s} [speaks of|enjoys|sees] [record|very strong|unexpectedly strong] demand",
        ),
        _BETTER,
        own=1.0,
        weight=1.5,
    ),
    EventFrame(
        "upgrade",
        (
            "{broker} upgrades {s} to [buy|outperform|overweight] [from hold|from neutral|from sell|]",
            "{s} [raised|upgraded|lifted] to [buy|outperform|overweight] [by {broker}|at {broker}|]",
            "{broker} [lifts|raises] price target on {s} {by}",
            "{agency} [raises|upgrades] {s} [credit rating|debt|rating]",
            "{agency} takes {s} off [watch for downgrade|negative watch]",
        ),
        "[a rating|an analyst] was raised",
        own=0.6,
        grade=1,
    ),
    EventFrame(
        "downgrade",
        (
            (
                "{broker} [downgrades|cuts] {s} to [sell|underperform|underweight] [from hold|from "
                "neutral|from buy|]"
            ),
            "{s} [cut|downgraded|lowered] to [sell|underperform|underweight] [by {broker}|at {broker}|]",
            "{broker} [cuts|lowers] price target on {s} {by}",
            "{agency} [cuts|downgrades] {s} [credit rating|debt|rating] [to junk|]",
            "{agency} puts {s} on [watch for downgrade|negative watch]",
        ),
        "[a rating|an analyst] was cut",
        own=-0.6,
        grade=1,
    ),
    EventFrame(
        "success",
        (
            "{s} [new product|launch|drug trial|new model|pilot project] [is|proves] {adj} [success|hit]",
            "{s} [trial|test|pilot] [meets|hits|reaches] [main goal|its goals|all targets]",
            "{s} finds {adj} [deposit|field|new market|use for product]",
            "{s} unveils {adj} [breakthrough|order book|partnership]",
            "{s} [wins|lands|secures] {adj} [contract|order|deal]",
        ),
        "[a success|good news] for the business",
        own=1.0,
    ),
    EventFrame(
        "failure",
        (
            "{s} [new product|launch|drug trial|new model|pilot project] [is|proves] {adj} [failure|flop]",
            "{s} [trial|test|pilot] [misses|fails to meet|falls short of] [main goal|its goals|all targets]",
            "{s} writes off {adj} [deposit|field|investment|project]",
            "{s} suffers {adj} [data breach|setback|system failure]",
            "{s} [loses|misses out on] {adj} [contract|order|deal]",
        ),
        "[a failure|a setback] for the business",
        own=-1.0,
    ),
    EventFrame(
        "collapse",
        (
            "{s} files for [bankruptcy|creditor protection|insolvency]",
            "{s} [defaults on|fails to pay|misses payment on] [bonds|debt|loan]",
            "{s} [placed in|put into] [administration|conservatorship|receivership]",
            "{s} says its survival is in doubt",
            "[Accounts|Books] of {s} [falsified|faked], auditor [resigns|quits]",
            "{s} chief executive [arrested|charged with fraud]",
        ),
        "the company's survival is in doubt",
        own=-1.2,
        grade=3,
        weight=0.6,
    ),
    EventFrame(
        "saved",
        (
            "{s} [secures|wins|gets] rescue [funding|loan|deal], avoids [bankruptcy|default|insolvency]",
            "{s} [leaves|emerges from] [administration|creditor protection]",
            "{s} [no longer faces|escapes|averts] [bankruptcy|default|insolvency]",
            "[Creditors|Lenders] agree to {s} rescue plan",
        ),
        "the company's survival is [assured|secured]",
        own=1.2,
        grade=2,
        weight=0.6,
    ),
    EventFrame(
        "chief leaves",
        (
            (
                "{s} [chief executive|CEO|finance chief|founder] [quits|resigns|steps down] [abruptly|"
                "unexpectedly|with immediate effect]"
            ),
            "{s} [board|chairman] [ousts|fires|dismisses] [chief executive|CEO|finance chief]",
        ),
        "the chief leaves without warning",
        own=-0.7,
        grade=1,
        weight=0.7,
    ),
    EventFrame(
        "index",
        (
            "{s} [to join|added to|enters] [blue-chip index|main index|benchmark index]",
            "[Index provider|Exchange] adds {s} to [blue-chip|main|benchmark] index",
        ),
        "index funds must buy",
        own=0.7,
        grade=1,
        weight=0.4,
    ),
    EventFrame(
        "out of index",
        (
            "{s} [to leave|dropped from|removed from] [blue-chip index|main index|benchmark index]",
            "[Index provider|Exchange] drops {s} from [blue-chip|main|benchmark] index",
        ),
        "index funds must sell",
        own=-0.7,
        grade=1,
        weight=0.4,
    ),
)
SLOTS = {"agency": _AGENCY, "broker": _BROKER}
