"""Readers' views of the right news, and of wrong news that must be worth nothing. `narrative` compares them.

Three ways to be wrong: others' words under the true tags, another's news altogether, and news of another time.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.domain.decision import NewsView
from htfi.domain.events import News
from htfi.narrative.question import Question, shown_items
from htfi.narrative.readers import ModelReader
from htfi_eval.eval.narrative.moments import NewsMoments

Tell = Callable[[int, int], None]
Generator = np.random.Generator
Whole = NDArray[np.int64]

_BATCH = 64
_DEADLINE_MS = 60_000.0


def read_views(questions: Sequence[Question], reader: ModelReader, tell: Tell) -> list[NewsView]:
    """The reader's views, asked as a run asks."""
    views: list[NewsView] = []
    for begin in range(0, len(questions), _BATCH):
        views += reader.read(questions[begin : begin + _BATCH], _DEADLINE_MS)
        tell(len(views), len(questions))
    return views


def mislabelled(questions: Sequence[Question]) -> list[Question]:
    """Others' headlines under the true tags and ages, where another question has as many items; else no news.

    What is still gained was not read in the words: it is that there are news, of whom and since when.
    """
    by_size: dict[int, list[int]] = {}
    for place, question in enumerate(questions):
        by_size.setdefault(len(shown_items(question)), []).append(place)
    found = [replace(question, items=()) for question in questions]
    for size, places in by_size.items():
        away = len(places) // 2  # by half of them: neighbours may tell of one event
        if not size or not away:
            continue
        for place, other in zip(places, [*places[away:], *places[:away]], strict=True):
            items = tuple(
                replace(item, headline=instead.headline, body=instead.body)
                for item, instead in zip(
                    shown_items(questions[place]), shown_items(questions[other]), strict=True
                )
            )
            found[place] = replace(questions[place], items=items)
    return found


def with_news_of(questions: Sequence[Question], others: Sequence[int]) -> list[Question]:
    """Each question with the news, tags and ages of the question at its place in `others`; −1: without news."""
    return [
        replace(question, items=() if other < 0 else _moved(question, questions[other]))
        for question, other in zip(questions, others, strict=True)
    ]


def from_other_cluster(moments: NewsMoments, dice: Generator) -> list[int]:
    """For each moment one of another cluster, each used once; −1 where none is left."""
    found: list[int] = dice.permutation(len(moments)).tolist()
    num, cluster = len(moments), moments.cluster.tolist()
    for place in range(num):
        for step in range(1, num):
            if cluster[place] != cluster[found[place]]:
                break
            other = (place + step) % num
            found[place], found[other] = found[other], found[place]
    return [other if cluster[place] != cluster[other] else -1 for place, other in enumerate(found)]


def at_another_time(group: Whole, instant: Whole) -> list[int]:
    """For each moment one of its group [n] half the group's instants [n] away, going round; −1: it has but one."""
    found = np.full(len(group), -1)
    for one in np.unique(group).tolist():
        mine = np.flatnonzero(group == one)
        instants: list[int] = np.unique(instant[mine]).tolist()
        if len(instants) < 2:
            continue
        at = {when: mine[instant[mine] == when] for when in instants}
        away = len(instants) // 2
        for when, other in zip(instants, [*instants[away:], *instants[:away]], strict=True):
            found[at[when]] = at[other][np.arange(len(at[when])) % len(at[other])]
    return found.tolist()


def permuted(views: Sequence[NewsView], dice: Generator) -> list[NewsView]:
    """A narrator that says what such narrators say, and of anything: the views of other moments, signs by coin."""
    coins: list[float] = dice.choice((-1.0, 1.0), len(views)).tolist()
    places: list[int] = dice.permutation(len(views)).tolist()
    return [
        replace(views[place], direction=views[place].direction * coin)
        for place, coin in zip(places, coins, strict=True)
    ]


def _moved(question: Question, other: Question) -> tuple[News, ...]:
    """The other's items at the same ages in bars."""
    items: list[News] = []
    for item in shown_items(other):
        age_bars = (other.as_of_ns - item.available_at_ns) / max(other.bar_ns, 1)
        at_ns = question.as_of_ns - round(age_bars * question.bar_ns)
        items.append(replace(item, available_at_ns=at_ns, event_time_ns=at_ns))
    return tuple(items)
