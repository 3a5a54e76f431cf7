"""Questions to a model with neutral names and tickers, so that its view does not depend on who is named."""

from collections.abc import Iterable

from msgspec.structs import replace

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.assets import AssetKind, asset_of
from htfi.narrative.name_swaps import ticker_of
from htfi.narrative.neutral_names import NEUTRAL_VERSION, neutral_companies, neutral_texts
from htfi.narrative.question import Question

_NEUTRAL = f"+{NEUTRAL_VERSION.partition('/')[0]}/"  # of every version


def neutral_question(question: Question, name: str, linker: EntityLinker) -> Question:
    """The question with neutral names in its headlines and neutral tickers; `name` is what its symbol is called."""
    tickers: dict[str, str] = {}
    asked_as = neutral_ticker(question.symbol)
    if asked_as:
        tickers[question.symbol] = asked_as
    others = [ticker_of(one) for one in neutral_companies()[1:]]
    for symbol in (symbol for item in question.items for symbol in item.symbols):
        if symbol not in tickers and neutral_ticker(symbol):
            tickers[symbol] = others[(len(tickers) - 1) % len(others)]
    items = tuple(
        replace(
            item,
            headline=_neutral_headline(item.headline, (question.symbol, name), linker),
            symbols=tuple(tickers.get(symbol, symbol) for symbol in item.symbols),
        )
        for item in question.items
    )
    return replace(question, items=items, asked_as=asked_as, name="")


def neutral_ticker(symbol: str) -> str:
    """What a prompt with neutral names calls the symbol that is asked about; '' for one that is of no company."""
    return ticker_of(neutral_companies()[0]) if asset_of(symbol).kind is AssetKind.EQUITY else ""


def has_neutral_names(readers: Iterable[str]) -> bool:
    """Whether facts that these readers read, and the prompt beside them, have neutral names."""
    return any(_NEUTRAL in reader for reader in readers)


def _neutral_headline(headline: str, asked: tuple[str, str], linker: EntityLinker) -> str:
    found = neutral_texts(headline, asked, linker)
    return found[0].text if found else headline
