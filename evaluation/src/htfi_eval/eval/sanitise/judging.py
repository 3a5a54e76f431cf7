"""Sends honest items and attacks through the sanitiser and counts verdicts. `htfi eval sanitise` calls it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.sanitise.data import AttackData
from htfi_train.simulation.attacks import disguises as tricks
from htfi_train.simulation.attacks import floods, injections, pumps
from htfi_train.simulation.rng import Rng

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
class VerdictCounts:
    """Verdicts on items of one class. `undone`: texts restored exactly, of `num`; None if not measured."""

    name: str
    origin: str
    num: int = 0
    num_caught: int = 0
    num_held: int = 0
    num_undone: int | None = None
    rules: Counter[str] = field(default_factory=lambda: Counter[str]())
    parts: "dict[str, VerdictCounts]" = field(default_factory=lambda: dict[str, VerdictCounts]())

    @property
    def caught(self) -> float:
        return self.num_caught / self.num if self.num else 0.0

    @property
    def undone(self) -> float | None:
        return None if self.num_undone is None else self.num_undone / max(self.num, 1)

    def count(self, screened: ScreenedItem, is_known: bool = False) -> None:
        """`is_known`: an earlier item counted once, as is right for a repetition."""
        self.num += 1
        is_caught = screened.verdict is not Screening.PASS
        self.num_caught += is_caught or is_known
        self.num_held += screened.verdict is Screening.QUARANTINE
        if is_caught:
            self.rules.update({one.rule for one in screened.findings if one.strength >= 0.5})


def false_alarms(items: Sequence[News], progress: ProgressCallback) -> VerdictCounts:
    """Honest agency items in order of time through one sanitiser."""
    sanitiser = Sanitiser()
    tally = VerdictCounts("Reuters headlines and leads", "honest")
    for number, item in enumerate(items):
        tally.count(sanitiser.screen(item))
        sanitiser.take_incidents()
        sanitiser.take_invalidated()
        if number % 500 == 0:
            progress(number, len(items))
    progress(len(items), len(items))
    return tally


def other_texts(name: str, texts: Iterable[str]) -> VerdictCounts:
    """Texts of another style, one at a time."""
    tally = VerdictCounts(name, "honest")
    for number, text in enumerate(texts):
        tally.count(_alone(text, number))
    return tally


def staged_attacks(data: AttackData) -> list[VerdictCounts]:
    """Injections by kind, pumps, and the other texts of the same sets."""
    injected = VerdictCounts("staged injections", "staged")
    for kind, texts in data.injections.items():
        part = injected.parts[kind] = VerdictCounts(kind, "staged")
        for number, text in enumerate(texts):
            screened = _alone(text, number)
            part.count(screened)
            injected.count(screened)
    return [injected, _all("staged pump messages", "staged", data.pumps)]


def harmless_texts(data: AttackData) -> list[VerdictCounts]:
    """The texts of the staged sets that are no attacks: reported, not counted."""
    return [
        _all("the inspected half of the injections", "seen", data.seen_injections),
        _all("questions to chatbots, same data set", "beside", data.harmless),
        _all("other posts of pump channels", "beside", data.other_posts),
    ]


def generated_attacks(
    items: Sequence[News], num: int, seed: int, progress: ProgressCallback
) -> list[VerdictCounts]:
    """Attacks made from the agency's own headlines and leads, one at a time."""
    step = max(1, len(items) // num)
    texts = [
        item.headline if place % 2 or not item.body else item.body for place, item in enumerate(items[::step])
    ]
    honest = [_text(_alone(text, place)) for place, text in enumerate(texts)]
    found = [_disguised(texts, honest, seed), _hiding(texts, honest, seed)]
    progress(1, 3)
    found += [_splitting(texts, honest, seed), _encoding(texts, seed), _planting(texts, seed)]
    progress(2, 3)
    found += _flooding(items[::step], seed)
    progress(3, 3)
    return found


def _disguised(texts: Sequence[str], honest: Sequence[str], seed: int) -> VerdictCounts:
    tally = VerdictCounts("homoglyph", "generated", num_undone=0)
    for turn, (name, trick) in enumerate(tricks.DISGUISES.items()):
        rng = Rng(seed, _SEEDS["homoglyph"], turn)
        part = tally.parts[name] = VerdictCounts(name, "generated", num_undone=0)
        for place, text in enumerate(texts):
            _count_undone((tally, part), _alone(trick(rng, text), place), honest[place])
    return tally


def _hiding(texts: Sequence[str], honest: Sequence[str], seed: int) -> VerdictCounts:
    tally = VerdictCounts("hidden text", "generated", num_undone=0)
    for turn, name in enumerate(tricks.HIDDEN):
        rng = Rng(seed, _SEEDS["hidden text"], turn)
        part = tally.parts[name] = VerdictCounts(name, "generated", num_undone=0)
        for place, text in enumerate(texts):
            attack = tricks.hide_order(rng, text, _order(rng), name)
            _count_undone((tally, part), _alone(attack, place), honest[place])
    return tally


def _splitting(texts: Sequence[str], honest: Sequence[str], seed: int) -> VerdictCounts:
    rng = Rng(seed, _SEEDS["split words"])
    tally = VerdictCounts("split words", "generated", num_undone=0)
    for place, text in enumerate(texts):
        attack = tricks.with_separators(rng, text)
        if attack != text:
            _count_undone((tally,), _alone(attack, place), honest[place])
    return tally


def _encoding(texts: Sequence[str], seed: int) -> VerdictCounts:
    tally = VerdictCounts("encoded instruction", "generated")
    for turn, name in enumerate(tricks.ENCODINGS):
        rng = Rng(seed, _SEEDS["encoded instruction"], turn)
        part = tally.parts[name] = VerdictCounts(name, "generated")
        for place, text in enumerate(texts):
            screened = _alone(tricks.encode_order(rng, text, _order(rng), name), place)
            tally.count(screened)
            part.count(screened)
    return tally


def _planting(texts: Sequence[str], seed: int) -> VerdictCounts:
    """Instructions and pump messages of the training grammar, after an honest text."""
    tally = VerdictCounts("planted order or pump", "training grammar")
    rng = Rng(seed, _SEEDS["planted order"])
    for turn, (name, module) in enumerate((("order", injections), ("pump", pumps))):
        part = tally.parts[name] = VerdictCounts(name, "training grammar")
        for place, text in enumerate(texts):
            screened = _alone(f"{text} {module.draw(rng)}", place * 2 + turn)
            tally.count(screened)
            part.count(screened)
    return tally


def _flooding(items: Sequence[News], seed: int) -> list[VerdictCounts]:
    """Each flood on its own day, among honest items before and after it."""
    found: list[VerdictCounts] = []
    for turn, (name, flood) in enumerate(floods.FLOODS.items()):
        rng = Rng(seed, _SEEDS["floods"], turn)
        tally = VerdictCounts(name, "generated")
        sanitiser = Sanitiser(SanitiserConfig())
        for place, item in enumerate(items):
            at_ns = _START_NS + place * 86_400 * 10**9
            sanitiser.screen(_item(items[place - 1].headline, place, at_ns - 10**9, "headlines"))
            seen: set[str] = set()
            sent = flood(rng, item.headline, (item.symbols or (_PROBE,))[0], at_ns)
            for attack in sent:
                screened = sanitiser.screen(attack)
                if seen or len(sent) == 1:  # the first of many is not a repetition
                    tally.count(screened, is_known=screened.cluster in seen)
                seen.add(screened.cluster)
            sanitiser.take_incidents()
            sanitiser.take_invalidated()
        found.append(tally)
    return found


def _count_undone(tallies: Iterable[VerdictCounts], screened: ScreenedItem, honest: str) -> None:
    for tally in tallies:
        tally.count(screened)
        tally.num_undone = (tally.num_undone or 0) + (_text(screened) == honest)


def _all(name: str, origin: str, texts: Iterable[str]) -> VerdictCounts:
    tally = VerdictCounts(name, origin)
    for number, text in enumerate(texts):
        tally.count(_alone(text, number))
    return tally


def _order(rng: Rng) -> str:
    return injections.draw(rng, rng.choice(("override", "role", "leak", "reading")))


def _alone(text: str, number: int) -> ScreenedItem:
    """A single item from an unknown source."""
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


def _text(screened: ScreenedItem) -> str:
    return screened.item.body or screened.item.headline


def rows_of(tallies: Iterable[VerdictCounts]) -> list[dict[str, Any]]:
    """A row per class, followed by one per part."""
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
                    "stopped": f"{one.caught:.2%}",
                    "held": f"{one.num_held / max(one.num, 1):.1%}",
                    "restored": "" if one.undone is None else f"{one.undone:.2%}",
                    "by": ", ".join(
                        f"{rule} {num / max(one.num, 1):.0%}" for rule, num in one.rules.most_common(3)
                    ),
                }
            )
    return rows
