"""News that `htfi bench narrative` reads: staged Reuters items where there are, else headlines of the simulated market.

No item comes twice, in any run: what is measured has not been seen.
"""

from dataclasses import dataclass
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from htfi.domain.events import News
from htfi.simulation.stories import FIRST_EVALUATION_SEED, stories_of_market

REUTERS = Path("text_price") / "reuters_news_2006_2013.parquet"
_NS_PER_ITEM = 10**9


@dataclass(frozen=True, slots=True)
class NewsTexts:
    """Headlines and leads, each pair once; `source` says where they come from."""

    source: str
    pairs: list[tuple[str, str]]


def load_news_texts(data: Path | None, num: int, seed: int) -> NewsTexts:
    """`num` texts at most, drawn from the staged items, else from the simulated market."""
    file = None if data is None else data / REUTERS
    if file is None or not file.is_file():
        return NewsTexts("headlines of the simulated market", _simulated(num))
    parquet: Any = import_module("pyarrow.parquet")  # which ships no types
    rows: dict[str, list[str | None]] = parquet.read_table(file, columns=["headline", "lead"]).to_pydict()
    unique = [
        (headline, lead or "")
        for headline, lead in dict(zip(rows["headline"], rows["lead"], strict=True)).items()
        if headline
    ]
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(unique))[:num]
    return NewsTexts("Reuters 2006–2013, headline and lead", [unique[at] for at in order.tolist()])


def as_news(pairs: list[tuple[str, str]], first: int) -> list[News]:
    """Items a second apart; `first` numbers the first of them."""
    return [
        News(
            available_at_ns=(first + at) * _NS_PER_ITEM,
            event_time_ns=(first + at) * _NS_PER_ITEM,
            source="bench",
            row=first + at,
            id=f"bench:{first + at}",
            headline=headline,
            body=lead,
        )
        for at, (headline, lead) in enumerate(pairs)
    ]


def _simulated(num: int) -> list[tuple[str, str]]:
    found: dict[str, None] = {}
    for number in count():
        for story in stories_of_market(FIRST_EVALUATION_SEED + 99, number):
            found.update(dict.fromkeys(item.headline for item in story.items))
        if len(found) >= num:
            break
    return [(headline, "") for headline in islice(found, num)]
