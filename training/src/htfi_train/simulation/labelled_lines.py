"""Labelled lines for heads on text, from templates that people write: `htfi models heads` learns from them.

A file of templates has lines `labels | text`. Of `<x//y>` the line of the first label takes x, that of the second y,
so that lines that differ in what matters alone stand side by side. `[x|y]` is a choice, `{slot}` a word of the slots,
`{hi}` and `{lo}` two figures of which the first is the larger; a slot `=name` is drawn once a line; the slot
`frames` holds what may stand about a line. `## name` opens a register, `#` is a remark, and the first
line says what is learnt from the file.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htfi.domain.errors import InvalidInput

Slots = Mapping[str, tuple[str, ...]]

_BRANCH = re.compile(r"<([^<>]*)>")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(@?[a-z0-9]+(?::[\d-]+)?)\}")
_HEADER = re.compile(r"#! (?P<head>[a-z]+): (?P<labels>[^;]+); (?P<slots>[\w.-]+); (?P<num>\d+) lines?")
_MAX_EXPANSIONS = 40
_FRAMED_SHARE = 0.15  # of lines stand in a frame that says nothing of their label: a link, a source, a tag
_MAX_ATTEMPTS = 6  # per line that is asked for, before a template counts as exhausted


@dataclass(frozen=True, slots=True)
class LineTemplate:
    """One template: its labels by letter, its text, its register and where it stands."""

    labels: str
    text: str
    register: str
    place: str


@dataclass(frozen=True, slots=True)
class TemplateCorpus:
    """A file of templates: the head that learns from it, its labels by letter, and how many lines a template gives."""

    head: str
    labels: Mapping[str, str]
    slots: Slots
    templates: tuple[LineTemplate, ...]
    per_template: int
    digest: str  # SHA-256 (hex) of templates and slots


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """One line to learn from. `family` numbers its template, so that no template stands on both sides of a split."""

    label: str
    register: str
    text: str
    family: int


def read_corpus(file: Path) -> TemplateCorpus:
    """A file that begins `#! head: letter = label, …; slots file; N lines`. Raises: InvalidInput."""
    stated = _HEADER.fullmatch(_lines(file)[0] if _lines(file) else "")
    if stated is None:
        raise InvalidInput(f"{file}: must begin '#! head: a = label, b = label; slots.txt; 8 lines'")
    pairs = [part.partition("=") for part in stated["labels"].split(",")]
    labels = {letter.strip(): label.strip() for letter, _, label in pairs}
    if len(labels) != len(pairs) or not all(len(letter) == 1 and label for letter, label in labels.items()):
        raise InvalidInput(f"{file}: labels are 'letter = label', each letter once")
    slots_file = file.parent / stated["slots"].strip()
    digest = hashlib.sha256(_bytes(file) + _bytes(slots_file)).hexdigest()
    templates = read_templates(file, "".join(labels))
    return TemplateCorpus(
        stated["head"], labels, read_slots(slots_file), tuple(templates), int(stated["num"]), digest
    )


def read_slots(file: Path) -> Slots:
    """`name: one | other` by line. Raises: InvalidInput."""
    slots: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(_lines(file), 1):
        if not line or line.startswith("#"):
            continue
        name, colon, words = line.partition(":")
        options = tuple(word.strip() for word in words.split(" | "))
        if not colon or not all(options):
            raise InvalidInput(f"{file}:{number}: a slot is 'name: one | other'")
        slots[name.strip()] = options
    return slots


def read_templates(file: Path, labels: str) -> list[LineTemplate]:
    """The templates of a file whose labels are among the letters `labels`. Raises: InvalidInput."""
    found: list[LineTemplate] = []
    register = ""
    for number, line in enumerate(_lines(file), 1):
        if line.startswith("## "):
            register = line[3:].partition(":")[0].strip()
        elif line and not line.startswith("#"):
            stated, bar, text = line.partition(" | ")
            stated = stated.strip()
            if not bar or not stated or set(stated) - set(labels) or not text.strip():
                raise InvalidInput(f"{file}:{number}: a template is 'labels | text', labels among {labels}")
            for branch in _BRANCH.findall(text):
                if len(branch.split("//")) > len(stated):
                    raise InvalidInput(f"{file}:{number}: <{branch}> has more parts than labels")
            found.append(LineTemplate(stated, text.strip(), register, f"{file.name}:{number}"))
    return found


def draw_lines(
    templates: Sequence[LineTemplate], slots: Slots, per_template: int, seed: int
) -> list[LabelledLine]:
    """Up to `per_template` lines per template and label, none twice; the same seed gives the same lines.

    Raises: InvalidInput, for a template that names no slot.
    """
    found: list[LabelledLine] = []
    seen: set[str] = set()
    for family, template in enumerate(templates):
        rng = np.random.Generator(np.random.PCG64([seed, family]))
        for at, letter in enumerate(template.labels):
            num = 0
            for _ in range(per_template * _MAX_ATTEMPTS):
                text = _line(template, at, slots, rng)
                if text in seen:
                    continue
                seen.add(text)
                found.append(LabelledLine(letter, template.register, text, family))
                num += 1
                if num == per_template or not re.search(r"[\[{]", template.text):
                    break
    return found


def _line(template: LineTemplate, at: int, slots: Slots, rng: np.random.Generator) -> str:
    figures = _figures(rng)
    text = template.text
    if "frames" in slots and rng.random() < _FRAMED_SHARE:
        text = _choose(slots["frames"], rng).replace("{line}", text)
    for _ in range(_MAX_EXPANSIONS):
        before = text
        # Inside out: a slot within a branch is drawn first, a branch within a choice is taken before the choice.
        text = _SLOT.sub(lambda match: _slot_value(match[1], template, slots, figures, rng), text)
        text = _BRANCH.sub(lambda match: _part_text(match[1].split("//"), at), text)
        text = _CHOICE.sub(lambda match: _choose(match[1].split("|"), rng), text, count=1)
        if text == before:
            break
    if re.search(r"[{}<>\[\]]", text):
        raise InvalidInput(f"{template.place}: something is left open in '{text[:80]}'")
    return re.sub(r"\s+", " ", text).strip()


def _part_text(parts: Sequence[str], at: int) -> str:
    return parts[min(at, len(parts) - 1)]


def _choose(options: Sequence[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


def _figures(rng: np.random.Generator) -> dict[str, str]:
    low = math.exp(rng.uniform(math.log(1.2), math.log(900)))
    high = low * rng.uniform(1.04, 1.9)
    digits = 1 if low < 100 or rng.random() < 0.4 else 0
    if f"{low:.{digits}f}" == f"{high:.{digits}f}":
        high = low + 1
    return {
        "lo": f"{low:.{digits}f}",
        "hi": f"{high:.{digits}f}",
        "lo0": f"{20 + low:.0f}",
        "hi0": f"{21 + high:.0f}",
    }


def _slot_value(
    asked: str, template: LineTemplate, slots: Slots, figures: dict[str, str], rng: np.random.Generator
) -> str:
    name, _, span = asked.partition(":")
    if name in figures:
        return figures[name]
    if name == "n":
        first, _, last = span.partition("-")
        return str(int(rng.integers(int(first), int(last) + 1)))
    if name == "p":
        return _percentage(rng)
    if name == "x":
        return f"{math.exp(rng.uniform(0, 7)):.{int(rng.integers(0, 3))}f}"
    if name == "year":
        return str(int(rng.integers(1998, 2026)))
    if name == "tickbare":
        return _choose(slots["tick"], rng).lstrip("$")
    if name not in slots and "=" + name not in slots:
        raise InvalidInput(f"{template.place}: no slot '{name}'")
    if "=" + name in slots:
        return figures.setdefault(name, _choose(slots["=" + name], rng))
    return _choose(slots[name], rng)


def _percentage(rng: np.random.Generator) -> str:
    digits = int(rng.integers(0, 3))
    mark = _choose(("%", "%", " %", " percent", " per cent", " pct"), rng)
    return f"{math.exp(rng.uniform(-0.5, 4)):.{digits}f}{mark}"


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in _bytes(file).decode().splitlines()]
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: is not UTF-8: {error}") from error


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from error
