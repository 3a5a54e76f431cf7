"""Writes the words that each filtered pattern needs and begins with: `python tests/needed_words.py > FILE`.

FILE is src/htfi/narrative/needed_words.json, to be written anew where patterns, `needed_words` or `start_words` have
changed.
"""

import gc
import json
import sys
from importlib import import_module
from pkgutil import walk_packages

import htfi.narrative
from htfi.narrative.facts.regions import find_regions
from htfi.narrative.pattern_starts import start_words
from htfi.narrative.patterns import FilteredPattern, pattern_name
from htfi.narrative.prefilter import needed_words


def _package_patterns() -> list[FilteredPattern]:
    """Every filtered pattern in memory once all modules are imported and the names of regions are looked for."""
    for found in walk_packages(htfi.narrative.__path__, "htfi.narrative."):
        import_module(found.name)
    find_regions("Fed")
    return [one for one in gc.get_objects() if isinstance(one, FilteredPattern)]


def _lines() -> str:
    words = {
        pattern_name(one): (
            [" ".join(sorted(words)) for words in needed_words(one.text, one.flags)],
            None if (starts := start_words(one.text, one.flags)) is None else " ".join(sorted(starts)),
        )
        for one in _package_patterns()
    }
    rows = [f"{json.dumps(name)}: {json.dumps(words[name], ensure_ascii=False)}" for name in sorted(words)]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    sys.stdout.write(_lines())
