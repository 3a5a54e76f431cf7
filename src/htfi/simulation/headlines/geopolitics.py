"""War and peace, sanctions, tariffs, votes: what starts and what stops, and who does it."""

from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.frames import EventFrame, draw_event
from htfi.simulation.rng import Rng

_LAND = (
    "[Russia|Ukraine|Iran|Israel|China|Taiwan|North Korea|Turkey|Venezuela|Syria|Libya|India|Pakistan|"
    "Sudan|Yemen|Iraq|Serbia|Armenia]"
)
_STATE = (
    "[Washington|Beijing|Brussels|Moscow|London|Tokyo|Berlin|Paris|Ottawa|New Delhi|the U.S.|China|the "
    "EU|Mexico]"
)
_GOODS = (
    "[cars|steel|chips|electronics|farm goods|machinery|textiles|solar panels|all imports|consumer goods]"
)
_START = "[begins|starts|resumes|launches|widens|steps up]"
_STOP = "[ends|halts|suspends|stops|calls off|scales back]"
_FIGHT = "[war|offensive|air strikes|shelling|blockade|invasion|mobilisation|naval drills|missile strikes]"
_PEACE = "[truce|ceasefire|peace talks|peace deal|troop withdrawal|prisoner exchange|negotiations]"
_PUT = "[imposes|announces|raises|doubles|reinstates|extends|threatens]"
_TAKE = "[lifts|removes|suspends|scraps|rolls back|delays|postpones|cuts]"
_NOT = "[will not|rules out plan to|decides not to|drops plan to|backs off threat to|no longer plans to]"

_FRAMES = (
    EventFrame(
        "war",
        (
            "{land} {start} {fight} [against|on|near] {other}",
            "{land} {stop} {peace} with {other}",
            "{land} [rejects|breaks|quits|walks out of] {peace} [with|on] {other}",
            "[No|Hopes fade for] {peace} between {land} and {other}",
            "{land} and {other} no longer in {peace}",
            "{land} {nots} [end|halt|stop] {fight} [against|on] {other}",
            "[Tension|Conflict|Crisis] between {land} and {other} [escalates|flares up|deepens]",
            "{land} [troops|forces] [enter|cross into|attack] {other}",
        ),
        "[the conflict|fighting] [grows|spreads]",
        factors=(("war", 1.0),),
        grade=1,
        weight=1.6,
    ),
    EventFrame(
        "peace",
        (
            "{land} {stop} {fight} [against|on|near] {other}",
            "{land} {start} {peace} with {other}",
            "{land} [accepts|agrees to|signs|returns to] {peace} [with|on] {other}",
            "[Agreement|Progress] on {peace} between {land} and {other}",
            "{land} and {other} no longer at war",
            "{land} {nots} [begin|start|launch] {fight} [against|on] {other}",
            "[Tension|Conflict|Crisis] between {land} and {other} [cools|dies down|eases]",
            "{land} [troops|forces] [leave|pull out of|withdraw from] {other}",
        ),
        "[the conflict|fighting] [eases|winds down]",
        factors=(("war", -1.0),),
        grade=1,
        weight=1.6,
    ),
    EventFrame(
        "war, graded",
        (
            "{land} [attack|offensive] on {other} {far} [larger|heavier] than feared",
            "{adj} [escalation|flare-up] between {land} and {other}",
            "[Clashes|Hostilities] in {land} [widen|intensify] {by}",
        ),
        "[the conflict|fighting] [grows|spreads]",
        factors=(("war", 1.0),),
    ),
    EventFrame(
        "peace, graded",
        (
            "{land} [attack|offensive] on {other} {far} [smaller|lighter] than feared",
            "{adj} [thaw|breakthrough] between {land} and {other}",
            "[Clashes|Hostilities] in {land} [ebb|subside] {by}",
        ),
        "[the conflict|fighting] [eases|winds down]",
        factors=(("war", -1.0),),
    ),
    EventFrame(
        "tariffs",
        (
            "{state} {put} {pct}% tariffs on {goods}",
            "{state} {nots} [lift|remove|suspend|cut] tariffs on {goods}",
            "{state} [ends|suspends|quits|breaks off] trade talks with {state2}",
            "{state} [raises|lifts] tariffs on {goods} to {hi}% from {lo}%",
            "{state} tariffs on {goods} [at|set at] {hi}%, {lo}% expected",
            "{state} [ends|scraps|withdraws] tariff [pause|exemption|truce] for {goods}",
        ),
        "[trade barriers|tariffs] [rise|go up]",
        factors=(("tariffs", 1.0),),
        grade=1,
        weight=1.6,
    ),
    EventFrame(
        "no tariffs",
        (
            "{state} {take} {pct}% tariffs on {goods}",
            "{state} {nots} [impose|raise|extend|increase] tariffs on {goods}",
            "{state} [begins|resumes|agrees to|signs deal in] trade talks with {state2}",
            "{state} [cuts|changes] tariffs on {goods} to {lo}% from {hi}%",
            "{state} tariffs on {goods} [at|set at] {lo}%, {hi}% expected",
            "{state} [extends|grants|widens] tariff [pause|exemption|truce] for {goods}",
        ),
        "[trade barriers|tariffs] [fall|come down]",
        factors=(("tariffs", -1.0),),
        grade=1,
        weight=1.6,
    ),
    EventFrame(
        "sanctions",
        (
            "{state} {put} {adj} [sanctions|embargo|price cap] on {land} oil",
            "{state} {nots} lift {adj} [sanctions|embargo] on {land} oil",
            "{state} {adj} [oil|crude] embargo on {land} [comes into force|begins|takes effect]",
        ),
        "sanctions keep oil from the market",
        factors=(("oil", 0.9),),
        weight=0.8,
    ),
    EventFrame(
        "sanctions lifted",
        (
            "{state} {take} {adj} [sanctions|embargo|price cap] on {land} oil",
            "{state} {nots} impose {adj} [sanctions|embargo] on {land} oil",
            "{state} {adj} [oil|crude] embargo on {land} [expires|is waived|ends]",
        ),
        "sanctions no longer hold oil back",
        factors=(("oil", -0.9),),
        weight=0.8,
    ),
    EventFrame(
        "politics calm",
        (
            (
                "[Lawmakers|Party leaders|House and Senate] [reach|agree on|pass] {adj} [budget|"
                "debt-ceiling|spending] deal"
            ),
            "[Government|Coalition|Prime minister] [survives|wins] confidence vote by {adj} margin",
            (
                "[Moderates|Pro-market party|Centrists] [win|lead in] election {far} [more clearly|"
                "better] than polls showed"
            ),
            "Government shutdown [averted|ends] in {adj} [deal|compromise]",
        ),
        "[political risk|uncertainty] falls away",
        factors=(("risk", 0.9),),
        weight=1.2,
    ),
    EventFrame(
        "politics trouble",
        (
            (
                "[Lawmakers|Party leaders|House and Senate] [fail to reach|reject|vote down] {adj} "
                "[budget|debt-ceiling|spending] deal"
            ),
            "[Government|Coalition|Prime minister] [falls|loses] confidence vote by {adj} margin",
            (
                "[Moderates|Pro-market party|Centrists] [lose|trail in] election {far} [more clearly|"
                "worse] than polls showed"
            ),
            "Government shutdown [looms|begins] in {adj} [standoff|dispute]",
        ),
        "[political risk|uncertainty] rises",
        factors=(("risk", -0.9),),
        weight=1.2,
    ),
    EventFrame(
        "drug price cap",
        (
            "[Lawmakers|Senators|Ministers] [back|pass|plan] {adj} [cap|cut] on drug prices",
            "[Senate|Court] [upholds|revives] {adj} drug-price [cap|law]",
        ),
        "[a cap on|lower] drug prices [hurts makers|cuts income]",
        factors=(("drug prices", 1.0),),
        weight=0.5,
    ),
    EventFrame(
        "no drug price cap",
        (
            "[Lawmakers|Senators|Ministers] [reject|drop|shelve] {adj} [cap|cut] on drug prices",
            "[Senate|Court] [overturns|kills] {adj} drug-price [cap|law]",
        ),
        "[no cap on|free] drug prices [spare makers|keep income]",
        factors=(("drug prices", -1.0),),
        weight=0.5,
    ),
    EventFrame(
        "crypto curbs",
        (
            "[Regulators|Ministers|Lawmakers] [ban|curb|restrict] crypto trading in {adj} crackdown",
            "[Regulator|Watchdog] [rejects|blocks|delays] {adj} bitcoin fund",
            "{adj} [hack|theft] hits crypto exchange",
        ),
        "[curbs|trouble] for [crypto|coins]",
        factors=(("crypto curbs", 1.0),),
        weight=0.6,
    ),
    EventFrame(
        "crypto freed",
        (
            "[Regulators|Ministers|Lawmakers] [lift|ease|drop] crypto trading curbs in {adj} shift",
            "[Regulator|Watchdog] [approves|clears|allows] {adj} bitcoin fund",
            "{adj} [inflow|demand] from funds reaches crypto exchange",
        ),
        "[a door opens|demand grows] for [crypto|coins]",
        factors=(("crypto curbs", -1.0),),
        weight=0.6,
    ),
    EventFrame(
        "arms",
        (
            "{state} [raises|lifts|doubles] defence spending {by}",
            "{state} [orders|to buy] {adj} [arms|missile|fighter jet] [package|fleet]",
            "{state} {nots} [cut|trim] defence spending {by}",
        ),
        "more is spent on defence",
        factors=(("arms", 1.0),),
        weight=0.5,
    ),
    EventFrame(
        "fewer arms",
        (
            "{state} [cuts|trims|halves] defence spending {by}",
            "{state} [cancels|scraps] {adj} [arms|missile|fighter jet] [package|order]",
            "{state} {nots} [raise|lift] defence spending {by}",
        ),
        "less is spent on defence",
        factors=(("arms", -1.0),),
        weight=0.5,
    ),
    EventFrame(
        "carbon",
        (
            "{state} [raises|tightens] carbon [price|limits] {by}",
            "{state} [adopts|passes] {adj} carbon [levy|tax]",
        ),
        "carbon gets dearer",
        factors=(("carbon", 1.0),),
        weight=0.4,
    ),
    EventFrame(
        "no carbon",
        (
            "{state} [cuts|loosens] carbon [price|limits] {by}",
            "{state} [scraps|rejects] {adj} carbon [levy|tax]",
        ),
        "carbon gets cheaper",
        factors=(("carbon", -1.0),),
        weight=0.4,
    ),
)
_WEIGHTS = tuple(frame.weight for frame in _FRAMES)
_FIXED = {
    "land": _LAND,
    "state": _STATE,
    "goods": _GOODS,
    "start": _START,
    "stop": _STOP,
    "fight": _FIGHT,
    "peace": _PEACE,
    "put": _PUT,
    "take": _TAKE,
    "nots": _NOT,
}
_LANDS = tuple(_LAND[1:-1].split("|"))
_STATES = tuple(_STATE[1:-1].split("|"))


def draw(dice: Rng) -> NewsEvent:
    """Something between states or within one."""
    land, other = dice.sample(_LANDS, 2)
    state, second = dice.sample(_STATES, 2)
    low = 5 * (1 + dice.integer(4))
    facts = _FIXED | {
        "land": land, "other": other, "state": state, "state2": second, "pct": str(5 * (1 + dice.integer(12))),
        "lo": str(low), "hi": str(low + 5 * (2 + dice.integer(5))),
    }  # fmt: skip
    return draw_event(
        dice, NewsEventKind.GEOPOLITICS, _FRAMES[dice.weighted_index(_WEIGHTS)], None, None, facts
    )
