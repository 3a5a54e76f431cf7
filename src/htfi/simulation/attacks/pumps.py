# ruff: noqa: E501 -- a line is a rule of the grammar
"""Messages of those who pump a price, as on boards and channels: a grammar of kinds, written for this project.

The sanitiser's weights are learned from it, and `htfi eval sanitise` plants it among headlines.
"""

from htfi.simulation.headlines.grammar import expand, wording
from htfi.simulation.rng import Rng

SLOTS = {
    "rocket": "[🚀|🚀🚀|🚀🚀🚀|🔥|🔥🔥|💎|💎🙌|📈|💰|💰💰|🤑|🎯|⏰|⏳|🚨|🚨🚨|❗|‼️|📢|👉|✅|⚡|🌕|🌙|💵|👇|💪|🐳|🦍|🟢|]",
    "hype": "[massive|huge|insane|explosive|monster|mega|epic|crazy|gigantic|unbelievable|life changing|historic|big|biggest|guaranteed|enormous|wild|parabolic|100x|10x|legendary|giant|super|unstoppable|next level]",
    "gain": "[{x}00% profit|{x}x|{x}0x|{x}00% gains|{x}00-{y}00% profit|easy money|free money|{x}00 percent|double your money|triple your bag|{x}00%+ returns|profit of {x}0% a day|quick profit|gains of {x}00%|{x}0%-{y}0%|up to {x}00%|minimum {x}00%|at least {x}x|{x}k from $100|maximum profit|life changing money|big gains]",
    "left": "[left|remaining|to go|until the pump|left to pump|till the pump|before the pump|left until we start|until the signal|until the call|until the coin is revealed|before liftoff|and counting|left for the next {hype} call|away|until the next post|until launch|from now|till signal]",
    "span": "[{n} minutes|{n} min|{n} mins|{n} hours|{n} hour|{n} hrs|1 day|2 days|{n}h|less than {n} hours|only {n} minutes|just {n} hours|only {n} hours|under {n} minutes|final {n} minutes|last {n} minutes|24 hours|12 hours|30 seconds|60 seconds|1 hour|30 minutes|15 minutes|3 days|48 hours|10 hours|5 minutes|one minute|two hours|half an hour]",
    "coin": "[{tick}|${tick}|#{tick}|this coin|the coin|this gem|this stock|our coin|this token|the pick|this penny stock|the next coin|{tick}/BTC|{tick}/USDT|this alt|this low cap|it]",
    "moon": "[to the moon|going to the moon|will explode|about to explode|ready to fly|mooning soon|will moon|is about to rip|ready for lift off|is going parabolic|will skyrocket|about to take off|to mars|will go {x}x|will hit ${x}0|is ready to pump|cannot be stopped|will 10x this week|sending it|is the next 100x|will make you rich|blasting off|is a rocket]",
    "buy": "[buy|buy and hold|load up on|get in|ape into|grab|accumulate|fill your bags with|go all in on|scoop up|BUY|BUY NOW|jump in|pile into|enter|pick up]",
    "quick": "[now|fast|before it is too late|right now|asap|immediately|today|before everyone else|before the news|at any price|at market|while it is cheap|before it moons|quickly|hard|and hold|before the whales|this second|]",
    "group": "[VIP|premium|our group|our channel|the VIP channel|our telegram|our discord|our whales|the team|our members|our private group|insiders|whales|the community|diamond members|paid members|our premium members|our experts]",
    "ex": "[Binance|Kucoin|Yobit|Hotbit|Bittrex|Poloniex|Gate|OKX|MEXC|HitBTC|the exchange|Robinhood|Coinbase|Cryptopia|Huobi|Bitmart]",
    "tz": "[GMT|UTC|EST|pm GMT|:00 GMT|:00 UTC|pm UTC|pm EST|CET]",
    "all": "[guys|everyone|folks|friends|members|traders|dear members|all|fam|apes|legends|team|people|dear investors|pumpers|holders]",
    "day": "[today|tomorrow|tonight|Sunday|Saturday|Friday|this weekend|Monday|on Thursday|Wednesday|Tuesday|12 March|21 May|7 July|the 3rd of November|4 Oct|this evening]",
}  # fmt: skip

FRAMES: dict[str, tuple[str, ...]] = {
    "countdown": (
        "{rocket} {span} {left} {rocket}",
        "{rocket} [Only|Just|Less than|Final countdown:|Reminder:|Attention:|Get ready!|Tick tock,|Hurry,|Around|] {span} {left} [{rocket}|!|!!!|, {all}!|. Are you ready?|. Stay tuned|. Be ready|. Don't miss it|. Log in to {ex}|. Have your BTC ready|]",
        "{rocket} [Pump|Next pump|Our next pump|{hype} pump|Signal|Next signal|The call|Big pump|Group pump|Coordinated pump|The announcement|Free signal|Our next call|Pump event] [{day}|in {span}|starts in {span}|at {n} {tz}|{day} at {n} {tz}|on {ex}|on {ex} {day} at {n} {tz}|is coming {day}|begins {day}|time: {n} {tz}] {rocket}",
        "[Date|When]: {day} [Time|Hour]: {n} {tz} Exchange: {ex} [Pair: BTC|Target: {gain}|Pairing: USDT|Goal: {gain}|Coin: will be announced|Type: free for all|]",
        "[Next post|Next message|The next post|Our next message|Coming next:|In {span} the next post] [will be|is|:|reveals] [the coin|the coin name|the coin to buy|the name of the coin|the signal|the ticker|the stock|the pick|coin]{rocket}[. Be ready|. Log in now|. Stay tuned|!|]",
        "{span} [next post coin|next post coin name|till coin|to signal|to coin name|and we go|and we fly|, be ready|. Ready?|then the coin|to pump|before coin release|. Prepare your funds]",
        "[The coin|Our coin|Today's coin|Coin|The pick|The coin to pump|Coin name|The coin we picked|The coin for this pump] [is|today is|:|we pump is|to buy is|name is] {coin} {rocket}[ {buy} {quick}| Target {gain}| Hold| Buy and hold for higher| Push it|]",
    ),
    "hype": (
        "{rocket} {coin} {moon} {rocket}",
        "{coin} {moon}[, {buy} {quick}|! {buy} {quick}|. {gain} easy|. Don't miss it|. Not financial advice|. Trust me|. Last chance|!!!|. You will regret missing this|. Thank me later|. Screenshot this|] {rocket}",
        "{buy} {coin} {quick}[!|!!|, target ${x}0|, {gain} guaranteed|. {gain} coming|. It {moon}|. Insiders know|. Tell everyone|, you will not lose|. This is not a drill|. Short squeeze incoming|] {rocket}",
        "{rocket} [{gain}|Guaranteed {gain}|{hype} {gain}] [guaranteed|in {span}|with {coin}|for {all}|from our calls|, no risk|without risk|, 100% sure|every day|this week|expected|incoming|, join now|possible|waiting for you]{rocket}",
        "[Don't miss|Do not miss|You don't want to miss|Never miss|Last chance to catch|Don't sleep on|You missed the last one? Get] [this|this pump|our next pump|{coin}|the {hype} move|the {hype} pump|this {hype} opportunity|the train|{gain}][!|, {all}|. {buy} {quick}|. It {moon}|] {rocket}",
        "[Everyone|All of us|{all}|We all|The whole group|Whales|Our whales|The team|China|Thousands of us] [will|are going to|must|should|is going to] [pump|buy|push|squeeze|send|hold|load|moon] {coin} [{day}|together|at the same time|at {n} {tz}|at the open|and hold the line|to {x}00%|, no selling|hard|now|to ${x}0]{rocket}",
        "[Hold|Keep holding|Don't sell|Nobody sells|HODL|Diamond hands|No paper hands|Hold the line|Push it up|Keep buying|Keep pushing|Buy the dip|Don't panic], [{all}|{coin} {moon}|it {moon}|second wave is coming|more to come|we go to {x}x|next leg soon|we are just starting|the whales are loading|new buyers are coming|outsiders are joining] {rocket}",
        "[Create FOMO|Spread the word|Share it everywhere|Tell your friends|Post it on Twitter|Troll the chat|Promote the coin|Tweet about {coin}|Invite your friends|Shill {coin}] [and|so that|to] [{buy} {coin}|it will {moon}|the price flies|we bring in outsiders|make everyone rich|we win together|push the price][!|] {rocket}",
        "[Our|The] [experts|analysts|team|whales|admins|traders|insiders] [chose|picked|found|have chosen|selected|have found] [a|the|one] {hype} [coin|gem|low cap|unicorn|stock|pick|breakout coin|bottom coin], [it {moon}|we will pump it|{gain} expected|get ready|FOMO is coming|whales will push it|news will follow|it sits at the bottom] {rocket}",
    ),
    "results": (
        "[Pump results|Results|Pump result|Our last pump|Last pump|{coin} results|{coin} pump results|Today's pump]: {coin} [Start|Open|Started|Low|Buy]: {n} [Peak|High|Max|Top|Reached]: {x}{n} [Gain: {gain}|Profit {gain}|{x}00% {rocket}|, next one soon|, well done {all}|. Congrats {all}|]",
        "[Boom|Wow|Done|Target hit|Amazing|Booom|Congrats {all}|What a pump|Huge success|Told you|Another one|Bullseye], {coin} [did|made|hit|reached|is up|gave|gained|pumped|already did] {gain} [in {span}|for {group}|with {group}|from our call|{rocket}|, join {group}|in no time|after our signal|, enjoy]",
        "[1st|2nd|3rd|All|First|Second|Third|Final|4th] [target|targets|tp|sell target|goal] [hit|achieved|done|reached|smashed|completed] [in {span}|✅|✅✅|on {coin}|, {gain}|. {gain} profit {rocket}|for {coin} {rocket}|. Book profit|in just {span}]",
        "[Join|Contact us for|Upgrade to|Get|Subscribe to|DM for|Message me for|Buy|Become] {group} [{quick}|for the next {hype} call|and grab the next pump signal|to get the coin before others|for early signals|before the price goes up|, only {n} seats left|, limited slots|for {gain}|membership and earn {gain}|to be first][!|] {rocket}",
    ),
    "signal": (
        "{coin} [Buy|Buy zone|Entry|Buy around|Buy below|Buy at|Accumulate] {n}{n}0-{n}{n}5 [Sell|Target|Targets|Sell zone|TP|Take profit] {x}{n}0-{x}{x}5-{y}00[+|] [Stop {n}0|SL {n}0|stop loss {n}0|Hold|no stop|]",
        "[Signal|VIP signal|Free signal|New signal|Next call|Trade|Insider tip|Hot tip|Alert|Penny stock alert|Hot pick|Stock alert|Urgent tip]: {coin} [buy {quick}|entry {n}{n}0 target {gain}|{moon}|up {gain} soon|insiders are buying|secret merger next week|news drops {day}|will be announced {day}|big news coming|float is tiny]{rocket}",
        "[Secret|Leaked|Inside|Private|Exclusive] [info|information|news|tip|source|document]: {coin} [will be bought at ${x}0|gets approved {day}|signs {hype} deal {day}|announces {hype} partnership {day}|{moon}|will be listed on {ex} {day}|squeeze {day}][. {buy} {quick}|. Tell no one|, act {quick}|, get in before|, be early] {rocket}",
        "[Turn|Make|I turned|We turned|She made|Earn|Start with] $[100|500|1000|200|50] [into|to|and get|and earn] $[5000|10000|50k|100k|a million|1000000] [with {coin}|in {span}|with our signals|every week|trading with {group}|risk free|from home|without work|, ask me how|, guaranteed]{rocket}",
        "[This|This stock|This company|{coin}] [is the next|will be the next|could be the next|is a sure|is a guaranteed|has] [Tesla|Amazon|bitcoin|Apple|100-bagger|winner|{gain}|moonshot|GME|Nvidia|no downside|zero risk|a 1000% upside], [{buy} {quick}|get in|don't wait|act now|insiders are loading|the shorts are trapped|hurry|sell your house|bet everything|you can't lose]{rocket}",
        "[Act now|Hurry|Urgent|Last call|Time is running out|Don't wait|Final warning|Wake up]: {coin} [{moon}|squeeze starts {day}|price target ${x}00|at the bottom|before {gain}|only a few shares left|shorts will burn|is the play|goes vertical][! {buy} {quick}|, {buy} {quick}|] {rocket}",
    ),
    "how": (
        "[Transfer|Move|Send|Deposit|Have|Keep] [your|some|enough] [BTC|ETH|USDT|funds|bitcoin|money] [to|on|in|ready on] {ex} [before {n} {tz}|before the pump|{quick}|and be ready|and wait for the coin|in advance|and join the pump]",
        "[How to join|Rules|Instructions|Guide|Steps] [the pump|for the pump|for {day}|to profit]: [1) buy fast 2) hold 3) sell high|buy quickly and hold|do not sell below {x}00%|place sell orders high|buy in the first seconds and promote|push and hold|set your alarm and log in]",
        "[Welcome to|This is|Join|You are in] the [biggest|best|largest|number one|most profitable] [pump group|pump channel|pump and dump group|signals group|crypto pump community|trading group]{rocket}[. Next pump {day}|. {gain} every week|. Invite {all}|]",
        "[We need|Bring|Let's get|We now have|Already] [{x}000|more|{x}00k|many] [members|buyers|holders|traders|people] [for|to make|for the best|before] [the pump|this {hype} pump|a {hype} profit|{day}] {rocket}",
        "[Pump|The pump] [is|will be] [free for all|ranked|unranked|on {ex}|moved to {day}|delayed|cancelled due to volume|starting now|over|live][. {all}, be ready|. Everyone gets the coin at the same time|. VIP members get the name earlier|. Stay tuned|]",
    ),
}  # fmt: skip
KINDS = tuple(FRAMES)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def draw(dice: Rng, kind: str | None = None) -> str:
    """One message, of `kind` or any; a third are of two parts."""
    kind = kind or KINDS[dice.weighted_index((5, 6, 3, 5, 2))]
    text = _one(dice, kind)
    if dice.chance(0.33):
        text = f"{text} {_one(dice, KINDS[dice.weighted_index((5, 6, 3, 5, 2))])}"
    way = dice.uniform()
    return text.upper() if way < 0.08 else text.lower() if way < 0.14 else text


def _one(dice: Rng, kind: str) -> str:
    tick = "".join(dice.choice(_LETTERS) for _ in range(3 + dice.integer(2)))
    slots = SLOTS | {
        "n": str(1 + dice.integer(12)), "x": str(2 + dice.integer(8)), "y": str(5 + dice.integer(9)), "tick": tick,
    }  # fmt: skip
    text = wording(FRAMES[kind], slots, dice)
    return expand("[" + text + "|" + text[:1].upper() + text[1:] + "]", {}, dice) if "[" not in text and "|" not in text and "{" not in text else text  # fmt: skip
