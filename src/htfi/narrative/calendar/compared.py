"""How a figure is said to stand to what was expected: 'more than expected', 'tops forecasts'. Telling uses it."""

import re
from typing import NamedTuple

_EXPECTED = (
    r"(?:expected|forecasts?|forecasted|expectations?|estimates?|estimated|consensus|predicted|predictions?|"
    r"anticipated|"
    r"projected|thought|views?|the street|wall street|street|hopes|targets?)"
)
_WHO = (
    r"(?:[ -](?:economists?|analysts?|analyst|market|markets|the|was|were|had been|wall|street|street's|most|"
    r"profit|earnings|"
    r"consensus|median|average|own|its|first call|thomson|reuters|bloomberg|all|lofty|sky-high|high|low|lowered|"
    r"reduced|"
    r"quarterly|q[1-4]|eps|financial)'?){0,5}"
)
UP = (
    r"ris(?:es?|ing)|rose|up|climb(?:s|ed|ing)?|jump(?:s|ed|ing)?|gain(?:s|ed)?|increas(?:es?|ed)|surg(?:es?|ed)|"
    r"soar(?:s|ed)?|"
    r"advance[sd]?|accelerat(?:es?|ed)|quicken(?:s|ed)?|pick(?:s|ed) up|edge[sd]? (?:up|higher)|tick(?:s|ed) (?:up|"
    r"higher)|"
    r"inch(?:es|ed) (?:up|higher)|grows?|grew|expand(?:s|ed)?|add(?:s|ed)?|create[sd]?|rebound(?:s|ed)?|spike[sd]?|"
    r"swells?|"
    r"leap(?:s|ed|t)?|rocket(?:s|ed)?|heats? up|bounces? back|doubles?|triples?"
)
DOWN = (
    r"fall(?:s|ing)?|fell|down|drop(?:s|ped)?|declin(?:es?|ed)|slip(?:s|ped)?|dip(?:s|ped)?|slid(?:es?)?|tumble[sd]?|"
    r"plunge[sd]?|slow(?:s|ed)?|ease[sd]?|cool(?:s|ed)?|decelerat(?:es?|ed)|edge[sd]? (?:down|lower)|tick(?:s|"
    r"ed) (?:down|lower)|"
    r"inch(?:es|ed) (?:down|lower)|shrinks?|shrank|contract(?:s|ed)?|lose[s]?|lost|shed[s]?|cuts?|weaken(?:s|ed)?|"
    r"sinks?|sank|"
    r"moderate[sd]?|plummet(?:s|ed)?|halves"
)
_FAR = r"(?:(?P<far>far|much|well|way|sharply|significantly|considerably|a lot)[ -])?"
_THAN = re.compile(
    rf"\b{_FAR}(?P<word>more|bigger|larger|faster|steeper|sharper|deeper|wider|less|smaller|slower|fewer|narrower|"
    rf"shallower|"
    rf"higher|stronger|hotter|firmer|lower|weaker|softer|cooler|tamer|better|worse)(?:[- ]than)(?:-|"
    rf"{_WHO}[ -]){_EXPECTED}\b"
)
_BESIDE = re.compile(
    rf"\b(?<!to ){_FAR}(?P<word>above|over|beyond|ahead of|past|below|under|short of|beats?|beating|tops?|topped|"
    rf"topping|exceeds?|"
    rf"exceeded|exceeding|surpass(?:es|ed|ing)|crush(?:es|ed|ing)|smash(?:es|ed|ing)|outpac(?:es|ed|ing)|"
    rf"trounc(?:es|ed)|"
    rf"miss(?:es|ed|ing)?|lag(?:s|ged|ging)?|trail(?:s|ed|ing)?|undershoots?|undershot)"
    rf"{_WHO}(?: [$€£]?[\d.,]+[a-z%]*)? {_EXPECTED}\b"
)
_EVEN = re.compile(
    rf"\b(?:in[- ]line with|match(?:es|ed|ing)?|meet(?:s|ing)?|met|on par with|right at|as){_WHO} {_EXPECTED}\b|"
    r"\bin[- ]line(?! with)\b|\bas[- ](?:economists |analysts |was |had been )?(?:expected|forecast|predicted|"
    r"anticipated)\b"
)
_SURPRISE = re.compile(r"\b(?:unexpectedly|surprisingly)\b")
_SURPRISE_MOVE = re.compile(rf"\b(?:unexpectedly|surprisingly) (?:(?P<up>{UP})|(?P<down>{DOWN}))\b")
_NOT = re.compile(
    r"\b(?:not|n't|never|no (?:better|worse|more|less)|neither|nor|despite|fails?|failed|nearly|almost|"
    r"barely (?:tops|beats|above)|instead of|rather than)\b"
)
_ABOVE = ("higher", "stronger", "hotter", "firmer", "above", "over", "beyond", "ahead of", "past")
_ABOVE_VERBS = ("beat", "top", "exceed", "surpass", "crush", "smash", "outpac", "trounc")
_BELOW = ("lower", "weaker", "softer", "cooler", "tamer", "below", "under", "short of")
_BELOW_VERBS = ("miss", "lag", "trail", "undersho")
_MORE = ("more", "bigger", "larger", "faster", "steeper", "sharper", "deeper", "wider")
_LESS = ("less", "smaller", "slower", "fewer", "narrower", "shallower")


class Side(NamedTuple):
    """Which side of what was expected: 1 above, 0 in line, −1 below; whether far; where the words stand."""

    way: int
    is_far: bool
    start: int
    end: int


def sides(text: str, moving: int, better: int = 0) -> list[Side] | None:
    """Every comparison with expectations in `plain` text; None where one cannot be told for sure.

    `moving` says whether the figure is said to rise (1), to fall (−1) or neither (0):
    'less than expected' turns with it. `better` is the side that is better, where that can be said.
    """
    if _NOT.search(text):
        return None
    found: list[Side] = []
    for match in _THAN.finditer(text):
        word = match["word"]
        way = (
            (better if word == "better" else -better) if word in ("better", "worse") else _than(word, moving)
        )
        if way == 0:
            return None
        found.append(Side(way, match["far"] is not None, match.start(), match.end()))
    for match in _BESIDE.finditer(text):
        word = match["word"]
        above = word in _ABOVE or word.startswith(_ABOVE_VERBS)
        found.append(Side(1 if above else -1, match["far"] is not None, match.start(), match.end()))
    found += [Side(0, False, match.start(), match.end()) for match in _EVEN.finditer(text)]
    surprise = _SURPRISE_MOVE.search(text)
    if surprise is not None:
        found.append(Side(1 if surprise["up"] else -1, False, surprise.start(), surprise.end()))
    elif _SURPRISE.search(text):
        return None
    return sorted(found, key=lambda side: side.start)


def _than(word: str, moving: int) -> int:
    if word in _ABOVE:
        return 1
    if word in _BELOW:
        return -1
    if word in _MORE:
        return moving
    return -moving if word in _LESS else 0  # better and worse: of what, the caller knows
