"""Sends honest items and attacks through the sanitiser and counts verdicts. `htfi eval sanitise` calls it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from htfi.apps.eval.sanitise_data import Staged
from htfi.domain.events import News
from htfi.domain.news import Screened, Screening
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.simulation.attacks import floods, injections, pumps, tricks
from htfi.simulation.dice import Dice

Tell = Callable[[int, int], None]

_LONG = 500  # characters from which a staged text is a body
_START_NS = 1_600_000_000 * 10**9
_PROBE = "AAPL"
_SEEDS = {
    "homoglyph": 1,
    "hidden text": 2,
    "split words": 3,
    "encoded instruction": 4,
    "planted order": 5,
    "floods": 6,
}


@dataclass(slots=True)
class Tally:
    """Verdicts on items of one class. `undone`: texts that came back to the letter, of `num`; None where not asked."""

    name: str
    origin: str
    num: int = 0
    num_caught: int = 0
    num_held: int = 0
    num_undone: int | None = None
    rules: Counter[str] = field(default_factory=lambda: Counter[str]())
    parts: "dict[str, Tally]" = field(default_factory=lambda: dict[str, Tally]())

    @property
    def caught(self) -> float:
        return self.num_caught / self.num if self.num else 0.0

    @property
    def undone(self) -> float | None:
        return None if self.num_undone is None else self.num_undone / max(self.num, 1)

    def count(self, screened: Screened, is_known: bool = False) -> None:
        """`is_known`: told before and counted once, which is what a repetition deserves."""
        self.num += 1
        is_caught = screened.verdict is not Screening.PASS
        self.num_caught += is_caught or is_known
        self.num_held += screened.verdict is Screening.QUARANTINE
        if is_caught:
            self.rules.update({one.rule for one in screened.findings if one.strength >= 0.5})


def false_alarms(items: Sequence[News], tell: Tell) -> Tally:
    """Honest agency items in order of time through one sanitiser."""
    sanitiser = Sanitiser()
    tally = Tally("Reuters headlines and leads", "honest")
    for number, item in enumerate(items):
        tally.count(sanitiser.screen(item))
        sanitiser.take_troubles()
        sanitiser.invalidated()
        if number % 500 == 0:
            tell(number, len(items))
    tell(len(items), len(items))
    return tally


def others(name: str, texts: Iterable[str]) -> Tally:
    """Texts of another manner, each by itself."""
    tally = Tally(name, "honest")
    for number, text in enumerate(texts):
        tally.count(_alone(text, number))
    return tally


def staged(data: Staged) -> list[Tally]:
    """Injections by kind, pumps, and what stands beside them in the same sets."""
    injected = Tally("staged injections", "staged")
    for kind, texts in data.injections.items():
        part = injected.parts[kind] = Tally(kind, "staged")
        for number, text in enumerate(texts):
            screened = _alone(text, number)
            part.count(screened)
            injected.count(screened)
    return [injected, _all("staged pump messages", "staged", data.pumps)]


def beside(data: Staged) -> list[Tally]:
    """What the staged sets hold beside attacks: reported, not counted."""
    return [
        _all("the other half of the injections, whose misses were looked at", "seen", data.seen_injections),
        _all("questions to chatbots, in the same set", "beside", data.harmless),
        _all("other posts of pump channels", "beside", data.other_posts),
    ]


def generated(items: Sequence[News], num: int, seed: int, tell: Tell) -> list[Tally]:
    """Attacks made from the agency's own headlines and leads, each by itself."""
    step = max(1, len(items) // num)
    texts = [
        item.headline if place % 2 or not item.body else item.body for place, item in enumerate(items[::step])
    ]
    honest = [_text(_alone(text, place)) for place, text in enumerate(texts)]
    found = [_disguised(texts, honest, seed), _hiding(texts, honest, seed)]
    tell(1, 3)
    found += [_splitting(texts, honest, seed), _encoding(texts, seed), _planting(texts, seed)]
    tell(2, 3)
    found += _flooding(items[::step], seed)
    tell(3, 3)
    return found


def _disguised(texts: Sequence[str], honest: Sequence[str], seed: int) -> Tally:
    tally = Tally("homoglyph", "generated", num_undone=0)
    for turn, (name, trick) in enumerate(tricks.DISGUISES.items()):
        dice = Dice(seed, _SEEDS["homoglyph"], turn)
        part = tally.parts[name] = Tally(name, "generated", num_undone=0)
        for place, text in enumerate(texts):
            _count_undone((tally, part), _alone(trick(dice, text), place), honest[place])
    return tally


def _hiding(texts: Sequence[str], honest: Sequence[str], seed: int) -> Tally:
    tally = Tally("hidden text", "generated", num_undone=0)
    for turn, name in enumerate(tricks.HIDDEN):
        dice = Dice(seed, _SEEDS["hidden text"], turn)
        part = tally.parts[name] = Tally(name, "generated", num_undone=0)
        for place, text in enumerate(texts):
            attack = tricks.hide(dice, text, _order(dice), name)
            _count_undone((tally, part), _alone(attack, place), honest[place])
    return tally


def _splitting(texts: Sequence[str], honest: Sequence[str], seed: int) -> Tally:
    dice = Dice(seed, _SEEDS["split words"])
    tally = Tally("split words", "generated", num_undone=0)
    for place, text in enumerate(texts):
        attack = tricks.split(dice, text)
        if attack != text:
            _count_undone((tally,), _alone(attack, place), honest[place])
    return tally


def _encoding(texts: Sequence[str], seed: int) -> Tally:
    tally = Tally("encoded instruction", "generated")
    for turn, name in enumerate(tricks.ENCODINGS):
        dice = Dice(seed, _SEEDS["encoded instruction"], turn)
        part = tally.parts[name] = Tally(name, "generated")
        for place, text in enumerate(texts):
            screened = _alone(tricks.encode(dice, text, _order(dice), name), place)
            tally.count(screened)
            part.count(screened)
    return tally


def _planting(texts: Sequence[str], seed: int) -> Tally:
    """Orders and pump messages of the grammar that the weights were learned from, after an honest text."""
    tally = Tally("planted order or pump", "own grammar")
    dice = Dice(seed, _SEEDS["planted order"])
    for turn, (name, module) in enumerate((("order", injections), ("pump", pumps))):
        part = tally.parts[name] = Tally(name, "own grammar")
        for place, text in enumerate(texts):
            screened = _alone(f"{text} {module.draw(dice)}", place * 2 + turn)
            tally.count(screened)
            part.count(screened)
    return tally


def _flooding(items: Sequence[News], seed: int) -> list[Tally]:
    """Each flood on its own day, among honest items before and after it."""
    found: list[Tally] = []
    for turn, (name, flood) in enumerate(floods.FLOODS.items()):
        dice = Dice(seed, _SEEDS["floods"], turn)
        tally = Tally(name, "generated")
        sanitiser = Sanitiser(SanitiserConfig())
        for place, item in enumerate(items):
            at_ns = _START_NS + place * 86_400 * 10**9
            sanitiser.screen(_item(items[place - 1].headline, place, at_ns - 10**9, "headlines"))
            seen: set[str] = set()
            sent = flood(dice, item.headline, (item.symbols or (_PROBE,))[0], at_ns)
            for attack in sent:
                screened = sanitiser.screen(attack)
                if seen or len(sent) == 1:  # the first telling of many is no repetition
                    tally.count(screened, is_known=screened.cluster in seen)
                seen.add(screened.cluster)
            sanitiser.take_troubles()
            sanitiser.invalidated()
        found.append(tally)
    return found


def _count_undone(tallies: Iterable[Tally], screened: Screened, honest: str) -> None:
    for tally in tallies:
        tally.count(screened)
        tally.num_undone = (tally.num_undone or 0) + (_text(screened) == honest)


def _all(name: str, origin: str, texts: Iterable[str]) -> Tally:
    tally = Tally(name, origin)
    for number, text in enumerate(texts):
        tally.count(_alone(text, number))
    return tally


def _order(dice: Dice) -> str:
    return injections.draw(dice, dice.pick(("override", "role", "leak", "reading")))


def _alone(text: str, number: int) -> Screened:
    """An item by itself, from a source that nobody knows yet."""
    return Sanitiser().screen(_item(text, number, _START_NS))


def _item(text: str, number: int, at_ns: int, source: str = "somewhere.example") -> News:
    is_long = len(text) > _LONG
    return News(
        available_at_ns=at_ns,
        event_time_ns=at_ns,
        source=source,
        row=number + 1,
        id=f"{source}/{at_ns}/{number}",
        headline="" if is_long else text,
        body=text if is_long else "",
    )


def _text(screened: Screened) -> str:
    return screened.item.body or screened.item.headline


def rows_of(tallies: Iterable[Tally]) -> list[dict[str, Any]]:
    """A row for each class, and beneath it one for each of its parts."""
    rows: list[dict[str, Any]] = []
    for tally in tallies:
        for one, name in (
            (tally, tally.name),
            *((part, f"  {label}") for label, part in tally.parts.items()),
        ):
            rows.append(
                {
                    "attack": name,
                    "made by": one.origin,
                    "items": one.num,
                    "not passed": f"{one.caught:.2%}",
                    "held back": f"{one.num_held / max(one.num, 1):.1%}",
                    "undone": "" if one.undone is None else f"{one.undone:.2%}",
                    "by": ", ".join(
                        f"{rule} {num / max(one.num, 1):.0%}" for rule, num in one.rules.most_common(3)
                    ),
                }
            )
    return rows
