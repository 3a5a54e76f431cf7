"""Gives simulated stories the facts of their items, as noisy as they are in practice.

The reader of facts has learnt from the lines of `corpora/facts`, so on these it is surer and more often right than on
news: at the rate that is missing, what it says of them is exchanged for what it wrongly says of a line held back from
it. Some stories have no facts, as when the reader is not there.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from htfi.domain.news import ItemReading
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.reading import read_for, reading_record, stronger_share
from htfi.narrative.facts.record import NewsFacts
from htfi_train.facts.lines import FactLine
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.stories import Story

# Of lines that it learnt from, the reader misreads the tone of 7%, of those held back 20%.
_EXTRA_ERRORS = 0.15
_UNKNOWN_STORIES, _UNKNOWN_ITEMS = 0.08, 0.02
_BATCH = 64  # items
_CHUNK = 24  # stories


class StoryFacts:
    """Reads the items of stories. Noise follows from the seed and the story."""

    def __init__(self, reader: FactReader, held_back: Sequence[FactLine] = ()) -> None:
        """`held_back` are lines that the reader did not learn from: what it misreads of them is the noise."""
        self._reader = reader
        read = self._facts([line.text for line in held_back])
        self._misread = [
            facts for facts, line in zip(read, held_back, strict=True) if not _is_right(facts, line)
        ]

    def of_stories(self, stories: Iterable[Story]) -> Iterator[Story]:
        """The stories with their readings, without noise: as the reader gives them."""
        source = iter(stories)
        while chunk := list(islice(source, _CHUNK)):
            yield from self._with_readings(chunk, None)

    def noisy(self, stories: Sequence[Story], rng: Rng) -> list[Story]:
        """The stories with readings, of which some are missing, and those of lines wrong as often as of other text."""
        return self._with_readings(stories, rng)

    def _with_readings(self, stories: Sequence[Story], rng: Rng | None) -> list[Story]:
        known = [
            story for story in stories if story.items and (rng is None or not rng.chance(_UNKNOWN_STORIES))
        ]
        facts = iter(self._facts([item.headline for story in known for item in story.items]))
        read: dict[int, tuple[ItemReading | None, ...]] = {}
        for story in known:
            found = [next(facts) for _ in story.items]
            read[id(story)] = tuple(self._reading(story, place, one, rng) for place, one in enumerate(found))
        return [replace(story, readings=read.get(id(story), ())) for story in stories]

    def _reading(self, story: Story, place: int, facts: NewsFacts, rng: Rng | None) -> ItemReading | None:
        if rng is not None:
            if rng.chance(_UNKNOWN_ITEMS):
                return None
            if place in story.from_lines and self._misread and rng.chance(_EXTRA_ERRORS):
                facts = _misread_as(facts, rng.choice(self._misread))
        return reading_record(facts, read_for(facts, story.symbol, story.name))

    def _facts(self, texts: Sequence[str]) -> list[NewsFacts]:
        return [
            facts
            for begin in range(0, len(texts), _BATCH)
            for facts in self._reader.read(texts[begin : begin + _BATCH])
        ]


def _is_right(facts: NewsFacts, line: FactLine) -> bool:
    return (
        _side(facts.tone, facts.neutral) == line.tone and _side(facts.axis, facts.axis_neutral) == line.axis
    )


def _side(score: float, neutral: float) -> str:
    return "0" if neutral >= stronger_share(score, neutral) else "+" if score > 0.0 else "-"


def _misread_as(facts: NewsFacts, other: NewsFacts) -> NewsFacts:
    """The facts with the sides, and where it is not clear the kind, of another text."""
    parties = tuple(replace(party, effect=other.tone) for party in facts.parties)
    unclear = other if other.event_confidence < facts.event_confidence else facts
    return replace(
        facts,
        tone=other.tone,
        neutral=other.neutral,
        axis=other.axis,
        axis_neutral=other.axis_neutral,
        event=unclear.event,
        event_confidence=unclear.event_confidence,
        parties=parties,
    )
