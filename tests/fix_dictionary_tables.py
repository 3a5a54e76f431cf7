"""Writes the tables of `execution/fix/dictionaries` from the folder of QuickFIX's dictionaries that is its argument.

`tables` is what the test compares the shipped tables with, so that no line in them is written by hand.
"""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path

APPLICATION_TYPES = ("D", "F", "G", "q", "r", "8", "9", "j", "AE", "AR", "V", "W", "X", "Y", "d", "h")
SESSION_TYPES = ("A", "0", "1", "2", "3", "4", "5")
NOTICE = """\
# Facts of the FIX standard (messages, fields, types, values), read from QuickFIX's dictionaries, which are
# Copyright (c) 2001-2020 Oren Miller, QuickFIX Software License 1.0: see the file LICENSE in this folder.
# Written by tests/fix_dictionary_tables.py. `11!` is required, `@Parties` a component, `453(448 447)` a group.
"""


def table_of(
    name: str, application: Path, transport: Path | None = None, types: tuple[str, ...] = APPLICATION_TYPES
) -> str:
    """One dictionary as TOML: that of FIX 4.x, or of FIXT with an application version."""
    roots = [ET.parse(application).getroot()]
    if transport is not None:
        roots.insert(0, ET.parse(transport).getroot())
    numbers = {
        field.get("name", ""): int(field.get("number", "0"))
        for root in roots
        for field in root.iterfind("fields/field")
    }
    messages: dict[str, ET.Element] = {}
    components: dict[str, ET.Element] = {}
    for root in roots:
        for message in root.iterfind("messages/message"):
            messages.setdefault(message.get("msgtype", ""), message)
        for component in root.iterfind("components/component"):
            if len(component) or component.get("name", "") not in components:
                components[component.get("name", "")] = component
    kept = [messages[kind] for kind in (*SESSION_TYPES, *types) if kind in messages]
    header, trailer = roots[0].find("header"), roots[0].find("trailer")
    assert header is not None
    assert trailer is not None
    used = _components_used([header, trailer, *kept], components)
    tags = {
        tag
        for each in (header, trailer, *kept, *(components[one] for one in used))
        for tag in _tags(each, numbers)
    }
    lines = [
        NOTICE,
        f'name = "{name}"',
        f'header = "{_members(header, numbers)}"',
        f'trailer = "{_members(trailer, numbers)}"',
    ]
    lines.append(f'types = "{" ".join(sorted(messages))}" # every MsgType (35) of the version')
    lines.append(f'tags = "{_ranges(numbers.values())}" # every tag of the version')
    session = {int(field.get("number", "0")) for field in roots[0].iterfind("fields/field")}
    lines.append(f'session_tags = "{_ranges(session)}" # those that session messages know')
    lines.append("\n[messages]")
    lines += [
        f'{message.get("msgtype")} = "{_members(message, numbers)}" # {message.get("name")}'
        for message in kept
    ]
    lines.append("\n[components]")
    lines += [f'{one} = "{_members(components[one], numbers)}"' for one in sorted(used)]
    lines.append("\n[fields] # type, then the values it may have")
    described: dict[int, str] = {}
    for root in roots:
        for field in root.iterfind("fields/field"):
            values = " ".join(value.get("enum", "") for value in field.iterfind("value"))
            described.setdefault(int(field.get("number", "0")), f"{field.get('type')} {values}".strip())
    lines += [f'{tag} = "{described[tag]}"' for tag in sorted(tags)]
    return "\n".join(lines) + "\n"


def _members(element: ET.Element, numbers: dict[str, int]) -> str:
    parts: list[str] = []
    for child in element:
        name, required = child.get("name", ""), "!" if child.get("required") == "Y" else ""
        if child.tag == "component":
            parts.append(f"@{name}{required}")
        elif child.tag == "group":
            parts.append(f"{numbers[name]}{required}({_members(child, numbers)})")
        else:
            parts.append(f"{numbers[name]}{required}")
    return " ".join(parts)


def _tags(element: ET.Element, numbers: dict[str, int]) -> Iterator[int]:
    for child in element.iter():
        if child.tag in ("field", "group"):
            yield numbers[child.get("name", "")]


def _components_used(elements: Iterable[ET.Element], components: dict[str, ET.Element]) -> set[str]:
    used: set[str] = set()
    waiting = list(elements)
    while waiting:
        for child in waiting.pop().iter("component"):
            name = child.get("name", "")
            if name not in used and name in components:
                used.add(name)
                waiting.append(components[name])
    return used


def _ranges(tags: Iterable[int]) -> str:
    parts: list[tuple[int, int]] = []
    for tag in sorted(set(tags)):
        if parts and tag == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], tag)
        else:
            parts.append((tag, tag))
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def tables(spec: Path) -> dict[str, str]:
    """The shipped tables by file name."""
    return {
        "FIX44.toml": table_of("FIX.4.4", spec / "FIX44.xml"),
        "FIX50SP2.toml": table_of("FIX.5.0SP2", spec / "FIX50SP2.xml", spec / "FIXT11.xml"),
    }


if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "src/htfi/execution/fix/dictionaries"
    for file_name, text in tables(Path(sys.argv[1])).items():
        (folder / file_name).write_text(text)
