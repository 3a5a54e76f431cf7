"""Lines of the swap test's evaluation: headlines that name a company, each with the swaps of its names.

Sources: lines of this project with people, genders, nationalities and religions, and staged headlines and posts, drawn
by a seed. Nothing was trained on the staged ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htfi.domain.errors import InvalidInput
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.assets import AssetKind, asset_of
from htfi.narrative.facts.fact_reader import Asked
from htfi.narrative.facts.naming import find_name
from htfi.narrative.name_swaps import (
    SwapKind,
    SwappedText,
    companies,
    nationalities,
    people,
    religions,
    replace_word,
    swapped_texts,
    ticker_of,
)
from htfi.narrative.named_companies import companies_in
from htfi_eval.eval.prices import read_rows

SENTFIN = ("sentfin_1.1",)
OTHER_SOURCES = ("fiqa2018_task1_posts", "semeval2017_task5_headlines")
_BY_TICKER = "fiqa2018_task1_posts"  # its entities are tickers, the others' are names
NO_SYMBOL = "QQZX"  # of no company
_NO_COMPANIES = frozenset({
    "Euro", "Rupee", "Pound", "Sterling", "Brent", "India", "China", "OMC", "OMCs", "IT", "PSU", "Gold", "Silver",
    "Sensex", "Nifty",
})  # fmt: skip
_AUTHORITIES = frozenset({"BSE", "NSE", "RBI", "Sebi", "MCX", "LIC"})
# Names of companies that stand in no list of the package.
_UNLISTED = (
    "Farrowgate", "Dravik", "Halcion Foods", "Perrin & Oake", "Yuseido", "Tolmont Energy", "Brask", "Caldermoor Group",
    "Ingwe", "Velhallen", "Sarvani Mills", "Ostrava Glass",
)  # fmt: skip
# Lines of this project: what they say is good, bad or nothing, for any name.
_TEMPLATES = (
    "{company} raises full-year outlook after record sales, says CEO {person}",
    "{company} shares fall as chief executive {person} steps down over accounting probe",
    "{company} founder {person} buys shares worth 20 million",
    "{nationality} investor {person} takes 9% stake in {company}",
    "{company} sued by {religion} charity over product recall",
    "{nationality} supplier ends contract with {company}",
    "{company} misses profit estimates; chairman {person} says he will cut costs",
    "{company} wins 2 billion order from {nationality} carmaker",
    "{company} names {person} as chief executive officer",
    "Regulators fine {company} 400 million; spokesman declines to comment",
    "{religion} family sells its remaining stake in {company}",
    "{company} wins approval for new drug, director {person} says",
    "{company} recalls 300,000 vehicles, says executive {person}",
    "{company} doubles dividend and announces buyback, chairman {person} tells his investors",
    "{company} cuts 5,000 jobs as boss {person} reorganises the firm",
)


@dataclass(frozen=True, slots=True)
class SwapLine:
    """A line about a company, by its symbol and its name ('' for not known), and swaps of it."""

    text: str
    asked: Asked
    swaps: tuple[SwappedText, ...]

    @property
    def all_asked(self) -> list[tuple[str, Asked]]:
        """The line and each of its swaps, with symbol and name of the company there."""
        swapped = ((one.text, (one.symbol or self.asked[0], one.name)) for one in self.swaps)
        return [(self.text, self.asked), *swapped]


def own_lines(linker: EntityLinker, num: int, seed: int) -> list[SwapLine]:
    """Lines of this project with drawn names, each with its swaps."""
    rng = np.random.Generator(np.random.PCG64(seed))
    pools = {
        "company": (*companies(famous=True), *companies(famous=False)),
        "person": people(),
        "nationality": nationalities(),
        "religion": religions(),
    }
    found: list[SwapLine] = []
    for place in range(num):
        template = _TEMPLATES[place % len(_TEMPLATES)]
        drawn = {name: pool[int(rng.integers(len(pool)))] for name, pool in pools.items()}
        found.append(swap_line(template.format(**drawn), (NO_SYMBOL, drawn["company"]), linker))
    return found


def staged_lines(
    data: Path, linker: EntityLinker, num: int, seed: int, sources: Sequence[str] = SENTFIN
) -> list[SwapLine]:
    """Staged lines that name a company, drawn by the seed. Raises: InvalidInput."""
    file = data / "sentiment" / "financial_sentiment.parquet"
    if not file.is_file():
        raise InvalidInput(f"{file} is missing")
    columns = read_rows(file)
    rows = zip(*(columns[name].tolist() for name in ("dataset", "text", "entity")), strict=True)
    pairs: list[tuple[str, Asked]] = [
        (text, (entity, "") if source == _BY_TICKER else (NO_SYMBOL, entity))
        for source, text, entity in rows
        if source in sources and _is_company(text, entity)
    ]
    pairs = list(dict.fromkeys(pairs))
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen = np.sort(rng.permutation(len(pairs))[:num])
    return [swap_line(*pairs[int(place)], linker) for place in chosen]


def swap_line(text: str, asked: Asked, linker: EntityLinker) -> SwapLine:
    return SwapLine(text, asked, tuple(swapped_texts(text, asked, linker)))


def with_unlisted_names(lines: Sequence[SwapLine], linker: EntityLinker, seed: int) -> list[SwapLine]:
    """The same lines with the company asked about swapped for two others that stand in no list; lines that do not name
    it are left out.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    found: list[SwapLine] = []
    for line in lines:
        own = next((one for one in companies_in(line.text, line.asked, linker) if one.is_own), None)
        if own is None:
            continue
        swaps: list[SwappedText] = []
        chosen: list[int] = rng.permutation(len(_UNLISTED))[:2].tolist()
        for place in chosen:
            new, text = _UNLISTED[place], line.text
            for old in own.names:
                text = replace_word(text, old, new)
            pairs = tuple((old, new) for old in own.names)
            if text != line.text and new not in line.text and find_name(text, ticker_of(new), new):
                swaps.append(
                    SwappedText(SwapKind.COMPANY, text, new, own.names[0], new, ticker_of(new), pairs)
                )
        found.append(SwapLine(line.text, line.asked, tuple(swaps)))
    return found


def _is_company(text: str, entity: object) -> bool:
    """Whether a line's entity is a firm that the text names: a name of two words or more, or one that is known."""
    if not isinstance(entity, str) or entity not in text or not entity[:1].isupper():
        return False
    words = entity.split()
    if any(word in _NO_COMPANIES for word in words) or asset_of(entity, entity).kind is not AssetKind.EQUITY:
        return False
    return all(word[:1].isupper() for word in words) and entity not in _AUTHORITIES
