"""The secure mode of a run's folder, for people: what is suspected by the record, and the word that ends it."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from htfi.adapters.stores.releases import ask_clearing, read_releases
from htfi.domain.decision import find_decision
from htfi.domain.errors import InvalidInput
from htfi.narrative.text import clean
from htfi.pipeline.releases import MAX_WORDS, Clearing
from htfi.wiring.ledger import is_going_on, open_ledger_readonly
from htfi.wiring.quarantine import demand_run

MAX_SYMBOL_CHARS = 64

Tell = Callable[[int, int], None]


class Suspected(NamedTuple):
    """A symbol that the secure mode stood for at its newest decision, and how many decisions were made in it."""

    symbol: str
    as_of_ns: int
    why: str
    num_decisions: int


class Said(NamedTuple):
    """A person's word that suspicion is to end, and when it took effect in the run's own time; None: not yet."""

    clearing: Clearing
    at_ns: int | None


class Status(NamedTuple):
    """What is suspected now, by the ledger; what was and is no more; what people have said."""

    now: list[Suspected]
    before: list[Suspected]
    said: list[Said]


def read_status(folder: Path, tell: Tell) -> Status:
    """What a run's ledger says of suspicion. Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
    demand_run(folder)
    newest: dict[str, Suspected] = {}
    stands: dict[str, bool] = {}
    log = open_ledger_readonly(folder)
    try:
        size = log.size
        for done, entry in enumerate(log.entries(0, size), 1):
            decision = find_decision(entry)
            if decision is not None and not decision.amends:
                why = decision.hearing.suspicion if decision.hearing is not None else ""
                stands[decision.symbol] = bool(why)
                if why:
                    num = newest[decision.symbol].num_decisions if decision.symbol in newest else 0
                    newest[decision.symbol] = Suspected(decision.symbol, decision.as_of_ns, why, num + 1)
            tell(done, size)
    finally:
        log.close()
    asked, entered = read_releases(folder)
    places = {one.release.number: one.at_ns for one in entered}
    words = {
        one.number: one for one in (*asked, *(each.release for each in entered)) if isinstance(one, Clearing)
    }
    return Status(
        now=[one for symbol, one in newest.items() if stands[symbol]],
        before=[one for symbol, one in newest.items() if not stands[symbol]],
        said=[Said(words[number], places.get(number)) for number in sorted(words, reverse=True)],
    )


def clear(folder: Path, by: str, why: str, symbol: str = "") -> tuple[Clearing, bool]:
    """Write down a named person's word that suspicion is to end, of a symbol or of everything; with it whether a run is
    going on, which takes it in within seconds.

    Raises: InvalidInput where name or reason are missing, DependencyUnavailable.
    """
    demand_run(folder)
    name = clean(symbol, MAX_SYMBOL_CHARS)
    if name != symbol:
        raise InvalidInput(f"--symbol: '{name}' is no symbol of a series")
    clearing = ask_clearing(folder, _words(by, "--by: a name"), _words(why, "--why: a reason"), name)
    return clearing, is_going_on(folder)


def _words(text: str, what: str) -> str:
    words = clean(text, MAX_WORDS)
    if not any(char.isalnum() for char in words):
        raise InvalidInput(f"{what} is needed, so that the record tells who ended suspicion and why")
    return words
