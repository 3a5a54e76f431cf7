"""How central banks speak, and how they are spoken of: the wordings of `central_bank`."""

from htfi.simulation.headlines.frames import EventFrame

# Currency: names of its bank in headlines.
BANKS: dict[str, str] = {
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
PLACES = {
    "USD": "U.S.",
    "EUR": "[euro zone|euro-area]",
    "GBP": "[UK|British]",
    "JPY": "[Japan|Japanese]",
    "CHF": "Swiss",
    "AUD": "Australian",
    "CAD": "Canadian",
    "NZD": "New Zealand",
    "NOK": "Norwegian",
    "MXN": "Mexican",
}
SHARES = (9, 3.5, 2.5, 2.5, 1.2, 1, 1, 0.6, 0.6, 0.5)

RAISE = "[raises|lifts|hikes|increases]"
CUT = "[cuts|lowers|reduces|trims]"
HOLD = "[leaves rates unchanged|holds rates|keeps rates on hold|stands pat|keeps policy unchanged]"
EXPECTED = "[expected|priced|forecast|markets expected|economists expected]"
STEPS = (("25", "50"), ("25", "75"), ("50", "75"), ("10", "25"), ("25", "100"), ("50", "100"))
BP = "[bp|bps|basis points]"

TIGHTER = "[the central bank|policy|the bank] was tighter than [priced|expected]"
EASIER = "[the central bank|policy|the bank] was easier than [priced|expected]"

TIGHT_WORDS = (
    EventFrame(
        "no cut",
        (
            "{b} {hold}, [cut had been priced|cut was expected|markets had priced a cut|defying calls for a cut]",
            "{b} [does not cut|declines to cut|refuses to cut] rates as {expected}",
            "{b} [pushes back against|rules out|sees no case for] rate cuts",
            "{b} no longer [sees|expects|plans] rate cuts [this year|soon]",
            "{b} [drops|removes] [language|wording|reference] on further [easing|cuts]",
            "{b} [raises|lifts] rates in surprise move",
            (
                "{b} [ends|stops|winds down] [bond buying|asset purchases|quantitative easing] [early|"
                "ahead of schedule]"
            ),
            "{b} {hold}, [signals|flags|hints at] further [tightening|hikes|firming]",
        ),
        TIGHTER,
        factors=(("rates", 1.0),),
        grade=1,
        weight=2.4,
    ),
    EventFrame(
        "hawkish tone",
        (
            "{b} [minutes|statement|projections|chief] {far} more hawkish than {expected}",
            "{b} [signals|sees|projects] rates {far} higher [for longer|next year] than {expected}",
            "{b} [minutes|statement|chief] {far} less dovish than {expected}",
            "{b} [speeds up|accelerates] [tightening|balance-sheet runoff] {by}",
        ),
        TIGHTER,
        factors=(("rates", 0.9),),
        weight=1.6,
    ),
)
EASY_WORDS = (
    EventFrame(
        "no hike",
        (
            "{b} {hold}, [hike had been priced|hike was expected|markets had priced a hike|defying calls for a hike]",
            "{b} [does not raise|declines to raise|refuses to hike] rates as {expected}",
            "{b} [pushes back against|rules out|sees no case for] rate hikes",
            "{b} no longer [sees|expects|plans] rate hikes [this year|soon]",
            "{b} [drops|removes] [language|wording|reference] on further [firming|tightening|hikes]",
            "{b} [cuts|lowers] rates in surprise move",
            (
                "{b} [extends|expands|restarts] [bond buying|asset purchases|quantitative easing] [early|"
                "ahead of schedule]"
            ),
            "{b} {hold}, [signals|flags|hints at] further [easing|cuts|support]",
        ),
        EASIER,
        factors=(("rates", -1.0),),
        grade=1,
        weight=2.4,
    ),
    EventFrame(
        "dovish tone",
        (
            "{b} [minutes|statement|projections|chief] {far} more dovish than {expected}",
            "{b} [signals|sees|projects] rates {far} lower [for longer|next year] than {expected}",
            "{b} [minutes|statement|chief] {far} less hawkish than {expected}",
            "{b} [slows|scales back] [tightening|balance-sheet runoff] {by}",
        ),
        EASIER,
        factors=(("rates", -0.9),),
        weight=1.6,
    ),
    EventFrame(
        "emergency",
        (
            "{b} [cuts rates|slashes rates|cuts rate to near zero] in emergency [move|meeting|session]",
            "Emergency [cut|easing] by {b}, rates [down|lowered] {big} {bp}",
            "{b} [launches|unveils|announces] unlimited [bond buying|asset purchases]",
        ),
        EASIER,
        factors=(("rates", -1.0),),
        grade=2,
        weight=0.5,
    ),
    EventFrame(
        "zero and buys",
        (
            (
                "{b} keeps [its target range|its rate] at 0 to 0.25% and is ready to buy [long "
                "Treasuries|long bonds|longer-term bonds]"
            ),
            (
                "{b} [holds rates near zero|keeps target range at 0 to 0.25%], will buy [long-term|"
                "longer-dated] [Treasuries|bonds]"
            ),
            (
                "{b} [stands ready|is prepared] to [expand|increase] [purchases|asset purchases] of "
                "[agency debt|long bonds|mortgage bonds]"
            ),
            "{b} evaluates benefits of [purchasing|buying] longer-term [Treasuries|bonds|securities]",
        ),
        EASIER,
        factors=(("rates", -1.0),),
        grade=2,
        weight=0.6,
    ),
)

# "{x}" what was done, "{y}" what was expected: only the pair tells.
MOVES_UP = (
    "{b} {raise} [rates|key rate|benchmark rate] [by|] {x} {bp}, {y} {expected}",
    "{b} {raise} rates {x} {bp} [vs|against] {y} {expected}",
    "[Markets|Traders|Economists] [had priced|expected] {y} {bp} [hike|increase], {b} delivers {x}",
    "{b} hikes {x} {bp}; {y} [was|had been] {expected}",
    "Instead of {y} {bp}, {b} {raise} rates by {x}",
    "{b} rate [hike|increase] of {x} {bp} follows forecasts of {y}",
)
MOVES_DOWN = (
    "{b} {cut} [rates|key rate|benchmark rate] [by|] {x} {bp}, {y} {expected}",
    "{b} {cut} rates {x} {bp} [vs|against] {y} {expected}",
    "[Markets|Traders|Economists] [had priced|expected] {y} {bp} [cut|reduction], {b} delivers {x}",
    "{b} cuts {x} {bp}; {y} [was|had been] {expected}",
    "Instead of {y} {bp}, {b} {cut} rates by {x}",
    "{b} rate [cut|reduction] of {x} {bp} follows forecasts of {y}",
)
MOVES_WORDS = (
    "{b} {move} rates by {far} {cmp} than {expected}",
    "{b} {move} [key rate|benchmark rate], {far} {cmp} than {expected}",
    "{b} rate move {far} {cmp} than {expected}: {move} by {x} {bp}",
)

HOT = (
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
COLD = ("unemployment rate", "jobless rate", "jobless claims")
DATA = (
    "{p} {n} [rises to|at|comes in at|was] {a} [vs|against] {e} [expected|forecast|consensus]",
    "{p} {n}: {a}, [forecast|consensus|expected] {e}",
    "[Expected|Forecast] {e}, {p} {n} [prints|comes in at] {a}",
    "Economists saw {p} {n} at {e}, [actual|it was] {a}",
)
DATA_WORDS = (
    "{p} {n} [rises|comes in] {far} {cmp} than {expected}",
    "{p} {n} {far} {cmp} than {expected} [in [March|June|May|October]|last month|]",
    "{p} {n} [report|figures] {far} {cmp} than economists predicted",
)

# Without a word on what was expected the step itself is the news; "{lv}" is the level after it.
STEP_UP = (
    "{b} {raise} its [target rate|key rate|benchmark rate] by {st} {bp} [to {lv}%|]{more}",
    "{b} [hikes|raises] rates [{st} {bp}|by {st} {bp}][, first rise since {year}|, more to come|]",
    "[Rate hike|Tightening]: {b} goes {st} {bp} higher [to {lv}%|]",
)
STEP_DOWN = (
    "{b} {cut} its [target rate|key rate|benchmark rate|discount rate] by {st} {bp} [to {lv}%|]{more}",
    "{b} [cuts|lowers] rates [{st} {bp}|by {st} {bp}][, first cut since {year}|, more to come|]",
    "[Rate cut|Easing]: {b} goes {st} {bp} lower [to {lv}%|]",
    (
        "{b} cuts its target rate by {st} bp [to {lv}% between meetings|to {lv}%, together with other "
        "central banks]"
    ),
)
MORE = "[; one member dissents|; two members dissent|, as growth and prices are weighed|]"
EXPECTED_HOLD = (
    "{b} [leaves|keeps] its [target rate|key rate|benchmark rate] at {lv}%[; one member dissents|]",
    "{b} {hold}[, as {expected}|, as widely expected|]",
    "{b} keeps its target range at 0 to 0.25%",
    "{b} [raises|cuts] rates by {st} {bp}, [exactly|just] as {expected}",
    "{p} [CPI|inflation|GDP growth|unemployment rate] {lv}%, [exactly as|in line with what was] {expected}",
    "{b} publishes minutes, [which left|with] the pace of [asset purchases|tightening|easing] unchanged",
)
GROWTH = (
    EventFrame(
        "growth worse",
        (
            "{b} {hold} and sees [somewhat|appreciably|] more [downside risk|risk] to growth",
            "{b} sees [weaker|slower|softer] [growth|activity|spending] [ahead|than before], ready to act",
            "{b} [chief|governor]: [labour market|economy] needs {adj} support",
            "{b} says [inflation|price pressure] [is {far} lower than [thought|feared]|fades {by}]",
        ),
        EASIER,
        factors=(("rates", -0.8),),
    ),
    EventFrame(
        "growth better",
        (
            "{b} {hold} and sees [somewhat|appreciably|] more [upside risk|risk] to [inflation|prices]",
            "{b} sees [stronger|faster|hotter] [growth|activity|inflation] [ahead|than before], ready to act",
            "{b} [chief|governor]: [labour market|economy] needs {adj} restraint",
            "{b} says [inflation|price pressure] [is {far} higher than [thought|feared]|builds {by}]",
        ),
        TIGHTER,
        factors=(("rates", 0.8),),
    ),
)
