"""The data dictionary of a FIX version: which fields a message has, which are required, their types, values and groups.

The tables are in `dictionaries/`; tests compare them with QuickFIX's.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from importlib import resources

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.execution.fix.timestamps import parse_timestamp

SESSION_TYPES = frozenset("A012345")  # the session's own messages


class Section(IntEnum):
    HEADER = 0
    BODY = 1
    TRAILER = 2


class Group(msgspec.Struct, frozen=True):
    """A repeating group: its fields in order; each entry begins with the first."""

    members: "dict[int, FieldRule]"
    first: int
    required: frozenset[int]


class FieldRule(msgspec.Struct, frozen=True):
    """What a field of a message may be. `values` empty: any of the type."""

    section: Section
    is_format: Callable[[str], object]
    values: frozenset[str]
    is_list: bool  # of values between spaces
    group: Group | None = None


class MessageRule(msgspec.Struct, frozen=True):
    """The fields of a message type with those of header and trailer, and the required ones."""

    fields: dict[int, FieldRule]
    required: frozenset[int]


class Dictionary(msgspec.Struct, frozen=True):
    """One version. `messages` has the types that are checked in full; of other `types` only the header is."""

    name: str
    types: frozenset[str]
    tags: frozenset[int]
    session_tags: frozenset[int]  # those that the session's own messages know: of FIXT, where there is one
    messages: dict[str, MessageRule]
    header: MessageRule
    header_tags: frozenset[int]
    data_lengths: dict[int, int]  # LENGTH field → the data field that follows it
    fields: dict[int, tuple[str, frozenset[str]]]


def _pattern(text: str) -> Callable[[str], object]:
    return re.compile(text, re.ASCII).fullmatch


_INT = _pattern(r"-?\d{1,18}")
_COUNT = _pattern(r"\d{1,9}")
_SEQUENCE = _pattern(r"\d{1,18}")
_FLOAT = _pattern(r"-?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})")
_TEXT = _pattern(r"[ -~]+")  # text beyond ASCII has fields of its own, Encoded…
_DATE = _pattern(r"\d{4}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_TIME = r"([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)(\.(\d{3}|\d{6}|\d{9}))?)?"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)?"
_NUMBERS = dict.fromkeys(("FLOAT", "QTY", "PRICE", "PRICEOFFSET", "AMT", "PERCENTAGE"), _FLOAT)
_FORMATS: dict[str, Callable[[str], object]] = {
    **_NUMBERS,
    "INT": _INT,
    "LENGTH": _COUNT,
    "NUMINGROUP": _COUNT,
    "SEQNUM": _SEQUENCE,
    "TAGNUM": _COUNT,
    "CHAR": _pattern(r"[ -~]"),
    "BOOLEAN": _pattern(r"[YN]"),
    "UTCTIMESTAMP": lambda text: parse_timestamp(text) is not None,
    "UTCDATEONLY": _DATE,
    "LOCALMKTDATE": _DATE,
    "UTCTIMEONLY": _pattern(_TIME),
    "LOCALMKTTIME": _pattern(_TIME),
    "TZTIMEONLY": _pattern(_TIME + _ZONE),
    "TZTIMESTAMP": _pattern(r"\d{8}-" + _TIME + _ZONE),
    "MONTHYEAR": _pattern(r"\d{4}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]|w[1-5])?"),
    "CURRENCY": _pattern(r"[A-Za-z0-9]{3}"),
    "COUNTRY": _pattern(r"[A-Z]{2}"),
    "DATA": lambda _: True,
    "XMLDATA": lambda _: True,
}
_LIST_TYPES = ("MULTIPLEVALUESTRING", "MULTIPLECHARVALUE", "MULTIPLESTRINGVALUE")


@cache
def load_dictionary(name: str) -> Dictionary:
    """The shipped dictionary `FIX44` or `FIX50SP2`, the second with FIXT.1.1. Raises: InvalidInput."""
    file = resources.files("htfi.execution.fix") / "dictionaries" / f"{name}.toml"
    if not file.is_file():
        raise InvalidInput(f"there is no FIX dictionary {name!r}: give FIX44 or FIX50SP2")
    return parse_dictionary(file.read_text())


def parse_dictionary(text: str) -> Dictionary:
    """A dictionary of the text of a table."""
    table = tomllib.loads(text)
    reader = _Reader(table["fields"], table["components"])
    header, required_header = reader.members(table["header"], Section.HEADER)
    trailer, required_trailer = reader.members(table["trailer"], Section.TRAILER)
    around = header | trailer
    required = required_header | required_trailer
    messages: dict[str, MessageRule] = {}
    for kind, members in table["messages"].items():
        body, required_body = reader.members(members, Section.BODY)
        messages[kind] = MessageRule(body | around, required | required_body)
    return Dictionary(
        name=table["name"],
        types=frozenset(table["types"].split()),
        tags=_tags(table["tags"]),
        session_tags=_tags(table["session_tags"]),
        messages=messages,
        header=MessageRule(around, required),
        header_tags=frozenset(header),
        data_lengths=reader.data_lengths,
        fields=reader.kinds,
    )


def _tags(ranges: str) -> frozenset[int]:
    tags: set[int] = set()
    for part in ranges.split():
        low, _, high = part.partition("-")
        tags.update(range(int(low), int(high or low) + 1))
    return frozenset(tags)


class _Reader:
    """Reads members such as `11! @Parties 453(448 447)`."""

    def __init__(self, fields: Mapping[str, str], components: Mapping[str, str]) -> None:
        self.kinds = {int(tag): _kind(text) for tag, text in fields.items()}
        self.data_lengths: dict[int, int] = {}
        self._components = components
        self._read: dict[tuple[str, Section], tuple[dict[int, FieldRule], frozenset[int]]] = {}
        self._rules: dict[tuple[int, Section], FieldRule] = {}

    def members(self, text: str, section: Section) -> tuple[dict[int, FieldRule], frozenset[int]]:
        key = (text, section)
        if key not in self._read:
            tokens = re.findall(r"[()]|[^\s()]+", text)
            fields, required, _ = self._parse(tokens, 0, section)
            self._read[key] = (fields, required)
        return self._read[key]

    def _parse(
        self, tokens: list[str], at: int, section: Section
    ) -> tuple[dict[int, FieldRule], frozenset[int], int]:
        fields: dict[int, FieldRule] = {}
        required: set[int] = set()
        previous = 0
        while at < len(tokens) and tokens[at] != ")":
            token = tokens[at]
            is_required = token.endswith("!")
            token = token.rstrip("!")
            at += 1
            if token.startswith("@"):
                inner, inner_required = self.members(self._components[token[1:]], section)
                fields |= inner
                required |= inner_required if is_required else frozenset()
                continue
            tag = int(token)
            rule = self._rule(tag, section)
            if self.kinds[tag][0] in ("DATA", "XMLDATA") and self.kinds.get(previous, ("",))[0] == "LENGTH":
                self.data_lengths[previous] = tag
            previous = tag
            if at < len(tokens) and tokens[at] == "(":
                inner, inner_required, at = self._parse(tokens, at + 1, section)
                at += 1
                first = next(iter(inner), 0)
                rule = msgspec.structs.replace(rule, group=Group(inner, first, inner_required))
            fields[tag] = rule
            if is_required:
                required.add(tag)
        return fields, frozenset(required), at

    def _rule(self, tag: int, section: Section) -> FieldRule:
        key = (tag, section)
        if key not in self._rules:
            kind, values = self.kinds[tag]
            form = _FORMATS.get(kind, _TEXT)
            self._rules[key] = FieldRule(section, form, values, kind in _LIST_TYPES)
        return self._rules[key]


def _kind(text: str) -> tuple[str, frozenset[str]]:
    kind, *values = text.split()
    return kind, frozenset(values)
