"""The prepared sentences of a rationale, without a digit: every figure is a slot in braces. `rationale` fills them."""

CLAIM = (
    "With {coverage} probability the next {bar} closes between {low_price} and {high_price} ({low} to {high})"
)
OPENINGS = {
    "first": "First forecast for {series}, which is {state}. {claim}.",
    "steady": "{series} is {state}. {claim}, a band of {width} after {previous_width}.",
    "widening": "{series} is {state}, and its band widens to {width} from {previous_width}. {claim}.",
    "narrowing": "{series} is {state}, and its band narrows to {width} from {previous_width}. {claim}.",
    "after_jump": (
        "{series} is {state} and moved {last_move}, {last_sigmas} times the size expected. "
        "{claim}, a band of {width} after {previous_width}."
    ),
    "shock": (
        "{series} is in shock; the last move was {last_move}. {claim}, a band of {width} after "
        "{previous_width}. This answer is provisional."
    ),
}
SENTENCES = {
    "one_driver": " Out of line: {driver_a}.",
    "two_drivers": " Out of line: {driver_a}; {driver_b}.",
    "three_drivers": " Out of line: {driver_a}; {driver_b}; {driver_c}.",
    "no_drivers": " No feature is far from its usual value.",
    "leader": " {expert} leads the experts with {expert_weight} of the weight.",
    "equal_experts": " The experts weigh the same.",
    "one_headline": " On the wire: {headline_a}, {age_a} earlier",
    "two_headlines": " On the wire: {headline_a}, {age_a} earlier; {headline_b}, {age_b} earlier",
    "three_headlines": (
        " On the wire: {headline_a}, {age_a} earlier; {headline_b}, {age_b} earlier; {headline_c}, {age_c} earlier"
    ),
    "unread": "; cited, not weighed.",
    "read": ".",
    "moving": (
        " Read by {reader}: {direction} by {size}, volatility {volatility}, confidence {confidence}, "
        "{consistency}, {words}."
    ),
    "flat": (
        " Read by {reader}: no direction, volatility {volatility}, confidence {confidence}, "
        "{consistency}, {words}."
    ),
    "weighed": " Weighed at {tilt_weight}, this moves the median by {median_move} and {band_change}.",
    "weightless": " This changes nothing in the forecast.",
    "deepening": (
        " News and numbers disagree, more than they did in {divergence} of its readings before: this answer is "
        "provisional, and a reading in depth follows."
    ),
    "consulting": " The news are worth the best reader: this answer is provisional, and its reading follows.",
    "provisional": (
        " This reading is provisional: {settled} of its {tokens} tokens are the target's, the rest the draft's; "
        "the target's own follows."
    ),
    "still_provisional": " This reading is provisional: the target's own has not come yet.",
    "prepared": (
        " This reading is provisional: it was prepared before the release for {prepared}; a reading of the news itself "
        "follows."
    ),
    "contested": " Its readings contradict each other: all are kept, and the band is wider for it.",
    "suspected": " Manipulation is suspected: the target alone reads, and only what passed every check.",
    "amending": " It takes the place of a provisional reading: the target, heard late, says otherwise.",
    "confirming": " It takes the place of a provisional reading: the target, heard late, says the same.",
    "deepened": " It takes the place of a provisional answer: read again in depth, the news points the same way.",
    "overturned": " It takes the place of a provisional answer: read again in depth, the news points another way.",
    "borne_out": " It takes the place of a prepared reading: read since, the news itself points the same way.",
    "otherwise": " It takes the place of a prepared reading: read since, the news itself points another way.",
}
