"""The listing of the public names and commands, docs/api.txt: `python tests/public_names.py` writes it anew.

It is written as a stub, read by griffe from the sources without importing them; the commands follow from their parser.
What programs could rely on and no longer can is a break: it is refused until CHANGELOG.md announces it.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import griffe

from htfi.apps.cli.main import cli

ROOT = Path(__file__).parents[1]
LISTING = ROOT / "docs" / "api.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
HEAD = "# The public names and commands of htfi (docs/promise.md). Written by `make api`.\n"
_MADE_BY_FUNCTIONS = (
    "__init__",
    "__repr__",
    "__reduce__",
)  # results are made by htfi; printing is for people
_ELSEWHERE = ("bench", "eval")  # commands of another distribution
_ANNOUNCING = r"(?m)^### (?:Changed|Removed)\n(.*?)(?=^##|\Z)"


def names_listing(folder: Path = ROOT / "src") -> str:
    """The stub of all public names, in order of the alphabet."""
    module = griffe.load("htfi", search_paths=[folder], allow_inspection=False)
    found = {name: one.target_path for name, one in module.members.items() if one.is_alias}
    names = sorted(
        name for name, path in found.items() if path.startswith("htfi.") and path.endswith(f".{name}")
    )
    return "\n".join(line for name in names for line in _stub(module[name].final_target))


def _stub(one: griffe.Object) -> Iterator[str]:
    """The lines of a function, or of a class or module with its members."""
    if isinstance(one, griffe.Function):
        yield f"def {one.signature()}: ..."
        return
    if isinstance(one, griffe.Module):  # as a class of its functions
        yield f"class {one.name}:"
        for name, member in one.members.items():
            if isinstance(member, griffe.Function) and not name.startswith("_"):
                yield f"    def {member.signature()}: ..."
        return
    assert isinstance(one, griffe.Class)
    bases = ", ".join(str(base) for base in one.bases)
    yield f"class {one.name}{f'({bases})' if bases else ''}:"
    num = 0
    for name, member in one.members.items():
        if name in _MADE_BY_FUNCTIONS or (name.startswith("_") and not re.fullmatch(r"__\w+__", name)):
            continue
        if member.is_attribute and name.startswith("_"):
            continue
        num += 1
        if isinstance(member, griffe.Function):
            yield f"    {'async ' if 'async' in member.labels else ''}def {member.signature()}: ..."
        else:
            yield f"    {name}: {member.annotation or 'Any'}"
    if not num:
        yield "    ..."


def commands_listing() -> str:
    """A line for each command: its path, arguments and options."""
    return "\n".join(f"# {line}" for line in sorted(_commands(cli, click.Context(cli, info_name="htfi"))))


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden and name not in _ELSEWHERE:
                yield from _commands(below, click.Context(below, parent=context, info_name=name))
        return
    words = [
        one.make_metavar(context)
        if isinstance(one, click.Argument)
        else "/".join((*one.opts, *one.secondary_opts))
        for one in command.params
        if not getattr(one, "hidden", False)
    ]
    yield " ".join([context.command_path, *words])


def listing() -> str:
    """What docs/api.txt should hold."""
    return f"{HEAD}\n{names_listing()}\n\n# Commands\n{commands_listing()}\n"


def breaks(before: str, now: str) -> dict[str, str]:
    """What of an earlier listing no longer holds: the name of each, and in one line what is different."""
    trees = [griffe.visit("htfi", filepath=Path("htfi.py"), code=text) for text in (before, now)]
    found: dict[str, str] = {}
    for one in griffe.find_breaking_changes(*trees):
        words = one.explain(griffe.ExplanationStyle.ONE_LINE).partition(": ")[2]
        found[one.obj.path] = re.sub(r"\s+", " ", words)
    old, new = (_options(text) for text in (before, now))
    for command, options in old.items():
        gone = sorted(options - new.get(command, set()))
        if command not in new:
            found[command] = "command was removed"
        elif gone:
            found[command] = f"without {', '.join(gone)}"
    return found


def _options(text: str) -> dict[str, set[str]]:
    """The arguments and options of each command of a listing."""
    found: dict[str, set[str]] = {}
    for line in re.findall(r"^# (htfi .*)$", text.partition("# Commands\n")[2], re.MULTILINE):
        words = line.split(" ")
        path = [word for word in words if re.fullmatch(r"[a-z]+(?:-[a-z]+)*", word)]
        found[" ".join(path)] = set(words) - set(path)
    return found


def unannounced(found: dict[str, str], changelog: str) -> list[str]:
    """A line for each break that the top section of CHANGELOG.md does not name under Changed or Removed."""
    top = changelog.partition("\n## [")[2].partition("\n## [")[0]
    said = "".join(re.findall(_ANNOUNCING, top, re.DOTALL))
    return [
        f"{name}: {words}; this breaks programs. Keep it with @deprecated, or name `{name}` in CHANGELOG.md under "
        "Changed or Removed, and run `make api`"
        for name, words in found.items()
        if f"`{name}" not in said
    ]


def main() -> None:
    """Write the listing, unless that would hide a break."""
    now = listing()
    found = breaks(LISTING.read_text(encoding="utf-8"), now) if LISTING.exists() else {}
    lines = unannounced(found, CHANGELOG.read_text(encoding="utf-8"))
    if lines:
        sys.exit("\n".join(lines))
    LISTING.write_text(now, encoding="utf-8")


if __name__ == "__main__":
    main()
