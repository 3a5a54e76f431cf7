"""The news in quarantine of a run's folder, for people: what is held back and why, and the word that lets it out."""

from pathlib import Path
from typing import NamedTuple

from htfi.adapters.stores.held_news import HELD_NEWS, read_held
from htfi.adapters.stores.releases import ask_release, read_releases
from htfi.domain.errors import InvalidInput
from htfi.narrative.text import clean
from htfi.pipeline.releases import MAX_WORDS, Entered, Held, Release
from htfi.wiring.ledger import DATABASE, is_going_on


class Kept(NamedTuple):
    """An item in quarantine with what became of it: who asked to release it, and where that took effect."""

    held: Held
    release: Release | None
    entered: Entered | None

    @property
    def status(self) -> str:
        if self.release is None:
            return "held"
        return "released" if self.entered else "asked"


def list_kept(folder: Path, source: str | None = None, rule: str | None = None) -> list[Kept]:
    """Items held back in a run, in order, those of a source or with a finding of a rule only where one is named.

    Raises: InvalidInput where the folder is no run's, IntegrityError, DependencyUnavailable.
    """
    demand_run(folder)
    asked, entered = read_releases(folder)
    said = [*asked, *(one.release for one in entered)]
    by_number = {one.number: one for one in said if isinstance(one, Release)}
    places = {one.release.number: one for one in entered}
    return [
        Kept(held, by_number.get(held.number), places.get(held.number))
        for held in read_held(folder / HELD_NEWS)
        if (source is None or held.item.source == source)
        and (rule is None or any(one.rule == rule for one in held.screened.findings))
    ]


def find_kept(folder: Path, which: str) -> Kept:
    """The item of that id or number. Raises: InvalidInput where there is none or more than one, and as `list_kept`."""
    kept = list_kept(folder)
    found = [one for one in kept if which in (one.held.item.id, one.held.screened.item.id)]
    if not found and which.isdecimal():
        found = [one for one in kept if one.held.number == int(which[:18])]
    if not found:
        raise InvalidInput(
            f"no item in quarantine of {folder} is called '{clean(which, 60)}': `htfi quarantine list {folder}` "
            "lists them"
        )
    if len(found) > 1:
        numbers = ", ".join(str(one.held.number) for one in found[:8])
        raise InvalidInput(
            f"{len(found)} items are called '{clean(which, 60)}': name one by its number: {numbers}"
        )
    return found[0]


def release(folder: Path, which: str, by: str, why: str) -> tuple[Kept, bool]:
    """Let an item out on a named person's word; with it whether a run is going on, which picks it up within seconds.

    Raises: InvalidInput where it is released already, or name or reason are missing, and as `find_kept`.
    """
    kept = find_kept(folder, which)
    held = kept.held
    told = Release(
        held.number,
        held.item.id,
        held.screened.digest,
        _words(by, "--by: a name"),
        _words(why, "--why: a reason"),
    )
    ask_release(folder, told)
    return kept._replace(release=told), is_going_on(folder)


def demand_run(folder: Path) -> None:
    """Raises: InvalidInput where the folder is not that of a run."""
    if not (folder / DATABASE).is_file() and not (folder / HELD_NEWS).is_file():
        raise InvalidInput(f"{folder} is no folder of a run: name one that `htfi run --out` made")


def _words(text: str, what: str) -> str:
    words = clean(text, MAX_WORDS)
    if not any(char.isalnum() for char in words):
        raise InvalidInput(f"{what} is needed, so that the record tells who let it out and why")
    return words
