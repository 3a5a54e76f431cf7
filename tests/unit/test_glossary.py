"""The glossary: its words stand where it says, a class name means one thing, retired words name nothing."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from sure_checks import statements
from syntax_nodes import no_collections

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "src/htfi", ROOT / "evaluation/src/htfi_eval", ROOT / "training/src/htfi_train")
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^\| ([^|]+) \| [^|]+ \| `([\w/.]+):(\w+)` \|", re.M)
# Parts of names, singular; `most_common` and the like are Python's own.
RETIRED = frozenset(
    [
        "told",
        "tell",
        "heard",
        "hear",
        "weather",
        "desk",
        "docket",
        "pursuit",
        "room",
        "house",
        "stem",
        "spoken",
        "purse",
        "course",
        "author",
        "pupil",
        "lesson",
        "dice",
    ]
)
ALLOWED = frozenset({"has_room", "make_room", "truncate_to_room"})  # space in a buffer, as everybody says


@cache
def definitions() -> list[tuple[Path, str, bool]]:
    """(module, name, is a class at module level) of all that is defined; modules are named too."""
    found: list[tuple[Path, str, bool]] = []
    with no_collections():
        for path in [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found.append((path, path.stem, False))
            for node in statements(tree):
                if isinstance(node, ast.ClassDef):
                    found.append((path, node.name, node in tree.body))
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.append((path, node.name, False))
    assert len(found) > 5_000, "the packages are where this test looks for them"
    return found


def words(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, name, is_class in definitions():
        if is_class:
            places[name].append(str(path.relative_to(ROOT)))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


def test_each_word_of_the_glossary_stands_where_it_says() -> None:
    entries = ENTRY.findall(GLOSSARY)
    assert len(entries) > 40
    defined = {(str(path), name) for path, name, _ in definitions()}
    missing = [
        (word, file, name)
        for word, file, name in entries
        if (str(ROOT / "src/htfi" / file), name) not in defined
    ]
    assert not missing


def test_a_word_has_one_entry() -> None:
    named = [word.strip() for word, _, _ in ENTRY.findall(GLOSSARY)]
    assert len(named) == len(set(named)) > 40


def test_retired_words_name_nothing() -> None:
    used = sorted(
        f"{path.relative_to(ROOT)}: {name}"
        for path, name, _ in definitions()
        if words(name) & RETIRED and name.strip("_") not in ALLOWED
    )
    assert not used


def test_bounds_begin_with_max_and_min() -> None:
    pattern = re.compile(r"^_?(MOST|LEAST)_[A-Z_]+\b", re.M)
    assert pattern.match("_MOST_LINES = 3"), "the pattern finds what the names were"
    found = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in package.rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert not found
