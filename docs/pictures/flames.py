# ruff: noqa: INP001 - a script that stands alone
"""Draws a flame graph as SVG from the folded stacks of `py-spy record --format raw`.

python docs/pictures/flames.py FOLDED SVG [--under FUNCTION] [--title TEXT]

`--under` keeps what ran inside one function, which becomes the widest bar.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

WIDTH, BAR, CHAR = 1200, 18, 6.6  # pixels
MIN_SHARE = 0.004  # of all samples: narrower bars are left out
_FRAME = re.compile(r"(?P<function>.+?) \((?P<file>[^()]*?)(?::\d+)?\)$")
_OWN = re.compile(r"(?:.*/)?(htfi(?:_eval)?)/")
COLOURS = {"own": "#f2a65a", "other": "#d9d4c7"}


@dataclass(slots=True)
class Frame:
    """A function as it was called from the frames below it: samples in it and in what it called."""

    name: str
    is_own: bool = True
    num: int = 0
    calls: dict[str, "Frame"] = field(default_factory=dict)


def read_stacks(lines: Sequence[str], under: str) -> Frame:
    """The tree of all stacks, from `under` on."""
    root = Frame("all")
    for line in lines:
        stack, _, num = line.rpartition(" ")
        frames = [_named(frame) for frame in stack.split(";")]
        if under:
            place = next((k for k, (name, _) in enumerate(frames) if f".{name}".endswith(f".{under}")), None)
            if place is None:
                continue
            frames = frames[place:]
        root.num += int(num)
        at = root
        for name, is_own in frames:
            at = at.calls.setdefault(name, Frame(name, is_own))
            at.num += int(num)
    return root


def _named(frame: str) -> tuple[str, bool]:
    """`module.function`, and whether it is ours."""
    found = _FRAME.match(frame)
    if found is None:
        return frame, False
    file = found["file"]
    own = _OWN.match(file)
    module = re.sub(r"\.(pyx?|so|c)$", "", file[own.end() :] if own else Path(file).name).replace("/", ".")
    return f"{module}.{found['function']}", own is not None


def bars(frame: Frame, left: float, depth: int, total: int) -> Iterator[tuple[int, str]]:
    """Every frame wide enough, with its depth."""
    scale = WIDTH / total
    for one in sorted(frame.calls.values(), key=lambda called: called.name):
        if one.num < MIN_SHARE * total:
            continue
        width = one.num * scale
        share = f"{one.num / total:.1%}"
        shown = escape(one.name[: max(int(width / CHAR) - 1, 0)])
        colour = COLOURS["own" if one.is_own else "other"]
        yield (
            depth,
            f'<g transform="translate({left:.1f},@{depth}@)"><title>{escape(one.name)}, {share}</title>'
            f'<rect width="{max(width - 0.5, 0.5):.1f}" height="{BAR - 1}" fill="{colour}"/>'
            + (f'<text x="3" y="13">{shown}</text>' if len(shown) > 2 else "")
            + "</g>",
        )
        yield from bars(one, left, depth + 1, total)
        left += width


def draw(root: Frame, title: str) -> str:
    """The page's picture: callers below, what they call above; widths are shares of the samples."""
    found = list(bars(root, 0.0, 0, root.num))
    height = (1 + max(depth for depth, _ in found)) * BAR
    body = "".join(
        re.sub(r"@(\d+)@", lambda at: f"{24 + height - (int(at[1]) + 1) * BAR}", bar) for _, bar in found
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 28}" font-family="monospace" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/><text x="3" y="15" font-size="13">'
        f"{escape(title)}, {root.num:,} samples</text>{body}</svg>\n"
    )


def main() -> None:
    """Raises: SystemExit where no stack is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folded", type=Path)
    parser.add_argument("svg", type=Path)
    parser.add_argument("--under", default="")
    parser.add_argument("--title", default="")
    asked = parser.parse_args()
    root = read_stacks(asked.folded.read_text(encoding="utf-8").splitlines(), asked.under)
    if not root.num:
        raise SystemExit(f"{asked.folded}: no stack holds a function '{asked.under}'")
    asked.svg.write_text(draw(root, asked.title or asked.under or asked.folded.stem), encoding="utf-8")


if __name__ == "__main__":
    main()
