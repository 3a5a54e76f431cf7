# ruff: noqa: INP001 - beside the scripts that use it
"""The pages of the documentation site, from README.md, docs/, the notebooks, the command line and the public names.

The pages of docs/ keep their places, so that their links to each other hold; a file elsewhere in the project that a
page links to becomes a page below `files/`. A link to what does not exist is an error.
"""

import posixpath
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from commands import command_pages
from diagrams import ROOT, with_drawings

NOTEBOOKS = ROOT / "examples" / "notebooks"
# Where the site has what is elsewhere in the project.
PLACES = {"README.md": "index.md", "CHANGELOG.md": "changes.md", "LICENSE": "files/LICENSE.md",
          "examples/notebooks": "tutorial.md", "docs/decisions": "decisions/README.md"}  # fmt: skip
# The page of each public name.
NAME_PAGES = {
    "forecast": ("Forecast", ("forecast", "ForecastResult", "Explanation")),
    "backtest": ("Backtest", ("backtest", "Backtest")),
    "scenario": ("Scenarios", ("scenario", "ScenarioResult")),
    "read": ("News", ("read", "NewsReading")),
    "run": ("Runs", ("open_run", "Run")),
    "ledger": ("Ledger", ("open_ledger", "Ledger", "LedgerVerification")),
    "writer": ("Writing", ("load_pair", "Writer", "Generation", "GenerationStream")),
    "marks": ("Marks in texts", ("make_mark_key", "verify_mark", "MarkVerification")),
    "scoring": ("Scores", ("scoring",)),
    "errors": ("Errors and warnings", ("HtfiError", "RowsSetAside", "EventsNotTaken")),
}
_LINK = re.compile(r"(?<!\\)(\]\()([^()\s]+)(\))")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".yml": "yaml",
    ".json": "json",
    ".sh": "sh",
    ".pyi": "python",
}
_COPIED = (".png", ".svg")  # as they are


class BrokenLink(Exception):
    """A page links to a file that does not exist."""


def write_pages(folder: Path, public_names: Iterable[str], notebooks: Mapping[str, str]) -> list[str]:
    """Write all pages into an empty folder: their paths. `notebooks` are pages by the name of their file.

    Raises: BrokenLink; ValueError where a public name has no page.
    """
    stager = _Stager(folder)
    stager.add("README.md")
    stager.add("CHANGELOG.md")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        stager.add(page.relative_to(ROOT).as_posix())
    for name, text in notebooks.items():
        stager.write(place_of(f"examples/notebooks/{name}"), text)
    for place, text in (*name_pages(public_names), *command_pages()):
        stager.write(place, text)
    stager.finish()
    shutil.copytree(ROOT / "docs" / "pictures", folder / "pictures", ignore=shutil.ignore_patterns("*.py"))
    for file in ("extra.css", "iframe-worker.js"):
        shutil.copyfile(Path(__file__).parent / file, folder / file)
    return sorted(stager.written)


def place_of(path: str) -> str:
    """Where the site has a file or folder of the project."""
    if path in PLACES:
        return PLACES[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/")
    if path.startswith("examples/notebooks/"):
        return f"notebooks/{Path(path).stem}.md"
    if (ROOT / path).is_dir():
        return f"files/{path}/README.md"
    return f"files/{path.removesuffix('.md')}.md"


class _Stager:
    """Writes pages, and those that they link to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked: list[str] = []
        self.written: set[str] = set()

    def write(self, place: str, text: str) -> None:
        file = self._folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.written.add(place)

    def add(self, path: str) -> None:
        """A file of the project as a page, at its place."""
        place, file = place_of(path), ROOT / path
        if place in self.written or place.startswith("notebooks/"):
            return
        if file.is_dir() and not (file / "README.md").exists():
            rows = [f"- [{one.name}]({one.name})" for one in sorted(file.iterdir()) if one.is_file()]
            text = f"# {path}\n\n" + "\n".join(rows) + "\n"
            self.write(place, self._linked(f"{path}/README.md", place, text))
        elif file.is_dir():
            self.add(f"{path}/README.md")
        elif file.suffix == ".md":
            text = self._linked(path, place, file.read_text(encoding="utf-8"))
            self.write(place, page_text(file, text, place))
        else:
            text = file.read_text(encoding="utf-8").rstrip()
            language = _LANGUAGES.get(file.suffix, "text")
            self.write(place, f"# {file.name}\n\n```{language}\n{text}\n```\n")

    def finish(self) -> None:
        """Add what pages link to, and what these link to."""
        while self._asked:
            self.add(self._asked.pop())

    def _linked(self, path: str, place: str, text: str) -> str:
        """The text of the page of `path` with the links of the site."""

        def link(found: re.Match[str]) -> str:
            before, target, after = found.groups()
            if re.match(r"[a-z]+:|#", target):
                return found.group()
            target, _, anchor = target.partition("#")
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not (ROOT / wanted).exists():
                raise BrokenLink(f"{path}: there is no {wanted}")
            if wanted.endswith(_COPIED):
                there = wanted.removeprefix("docs/")
            else:
                self._asked.append(wanted)
                there = place_of(wanted)
            here = posixpath.relpath(there, posixpath.dirname(place) or ".")
            return f"{before}{here}{'#' + anchor if anchor else ''}{after}"

        return outside_fences(text, lambda part: _LINK.sub(link, part))


def page_text(file: Path, text: str, place: str) -> str:
    """The text of a page as the site's parser reads it."""
    up = posixpath.relpath("pictures/diagrams", posixpath.dirname(place) or ".")
    text = with_drawings(file, text, up)
    text = text.replace("```python\n>>>", "```pycon\n>>>")
    if place == "index.md":
        text = f"---\nhide: [navigation]\n---\n{text}"
    return outside_fences(text, _separate_lists)


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text with all that is not a block of code changed."""
    parts, at = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), fence.group()]
        at = fence.end()
    return "".join([*parts, change(text[at:])])


def _separate_lists(text: str) -> str:
    """With a blank line before each list, which GitHub does without."""
    return re.sub(r"(?m)^(?!\s*(?:[-*]|\d+\.) |\s*$|#)(.+)\n(?=(?:-|1\.) )", r"\1\n\n", text)


def name_pages(public_names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """A page for each group of public names. Raises: ValueError where the groups and the names differ."""
    grouped = [name for _, names in NAME_PAGES.values() for name in names]
    if sorted(grouped) != sorted(public_names):
        wrong = sorted(set(grouped) ^ set(public_names))
        raise ValueError(f"NAME_PAGES in docs/site/pages.py and htfi.__all__ differ: {', '.join(wrong)}")
    rows = "\n".join(
        f"| [{title}]({page}.md) | {', '.join(f'[`{name}`][htfi.{name}]' for name in names)} |"
        for page, (title, names) in NAME_PAGES.items()
    )
    yield (
        "names/README.md",
        "# Python names\n\nAll public names of `import htfi`, each with an example that a test runs. What they have in "
        "common (tables, errors, times) is in [HTFI from Python](../library.md), what may change in "
        f"[the promise](../promise.md).\n\n| | |\n|---|---|\n{rows}\n",
    )
    for page, (title, names) in NAME_PAGES.items():
        yield f"names/{page}.md", f"# {title}\n\n" + "\n\n".join(f"::: htfi.{name}" for name in names) + "\n"
