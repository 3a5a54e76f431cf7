"""Banks in trouble and what is done for them: facilities, bail-outs, runs, stress tests. `central_bank` draws them."""

from htfi.simulation.headlines.frames import EventFrame

_ASSET = "[commercial paper|mortgage securities|agency debt|asset-backed securities|bank bonds]"
_WHOM = "[banks|primary dealers|money market funds|lenders|dealers|savings banks|insurers]"
_CALM = "[help for banks|the rescue|public money] [calms fear|lowers the strain]"
_FEAR = "[strain|fear] in the banking system grows"

FRAMES = (
    EventFrame(
        "help",
        (
            (
                "{b} [opens|launches|creates|widens] {adj} [lending facility|liquidity facility|discount "
                "window|term auction facility] for {whom}"
            ),
            (
                "{b} [opens|raises|widens] {adj} dollar swap lines with [other central banks|the ECB|"
                "six central banks] [by {m}|to {m}|]"
            ),
            "{b} will lend {whom} up to {m} [against {asset}|]",
            "{b} [is ready|stands ready] to [supply|lend] [reserves|dollars|cash] [as needed|without limit]",
            "{b} will buy [up to {m} of|] {asset} [through a new facility|]",
            "{b} lets [its New York bank|its branches] lend to {whom}",
            "[Treasury|Government] [puts|will put] up to {m} of capital into {whom}",
            "[Treasury|Government|{b}] to [rescue|bail out|back] {whom} in {adj} [package|plan]",
            (
                "[Treasury|Government|Regulator] [insures|guarantees] [money market funds|all bank "
                "deposits|new bank debt|deposits]"
            ),
            (
                "[Lawmakers|Senators|House members|Deputies] [pass|approve|back] {m} [rescue|bailout] "
                "[bill|plan]"
            ),
            "The {m} rescue bill passes [the House|the Senate] and is signed into law",
            "Banks [pass|clear|sail through] stress tests, capital hole {far} smaller than feared",
            "[Big banks|Lenders] repay {adj} [rescue|bailout] [funds|aid] early",
            (
                "[Government|Treasury|{b}] takes over [failing|troubled|ailing] [lender|insurer|broker], "
                "[creditors|depositors] made whole"
            ),
            "[Investment banks|Brokers] may become bank holding companies, {b} decides",
            "[Troubled|Ailing] [lender|broker] gets emergency funding, backed by {b}",
            "{b} [extends|prolongs] {adj} crisis [facilities|lending] [to next year|by six months]",
        ),
        _CALM,
        factors=(("bank stress", -1.0),),
    ),
    EventFrame(
        "strain",
        (
            (
                "[Lawmakers|Senators|House members|Deputies] [reject|vote down|block] {m} [rescue|"
                "bailout] [bill|plan]"
            ),
            "[House|Senate] votes down the {m} rescue bill",
            "Banks [fail|flunk] stress tests, capital hole {far} bigger than feared",
            "Stress tests: [ten|most|many] [of nineteen|] large banks must add {m} of capital",
            (
                "[Big|Regional|Large] [lender|broker|investment bank] [fails|collapses|files for "
                "bankruptcy] [after run on deposits|as funding dries up|]"
            ),
            (
                "[Big|Regional|Large] [lender|bank] [seized by regulators|placed in conservatorship] "
                "[after run on deposits|as funding dries up|]"
            ),
            "[Government|Treasury|{b}] will not [rescue|bail out|back] [lender|failing bank|broker|{whom}]",
            "[No rescue|No buyer] found for [ailing|troubled] [lender|broker|bank]",
            (
                "{b} [closes|ends|withdraws] {adj} [lending facility|liquidity facility|swap lines] "
                "[despite strains|early]"
            ),
            "Interbank [lending|funding] [freezes|dries up], [spreads|rates] {far} wider",
            "[Depositors|Savers] [queue|rush] to withdraw [cash|money] from [lender|banks]",
            "[Money market fund|Hedge fund] [halts|suspends] withdrawals after {adj} losses",
        ),
        _FEAR,
        factors=(("bank stress", 1.0),),
    ),
)
SLOTS = {"whom": _WHOM, "asset": _ASSET}
