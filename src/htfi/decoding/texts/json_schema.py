"""JSON schemas as languages of characters. A keyword that is not kept is refused by name: none is ignored.

Documents are written without white space but for one optional space after ':' and ','. Properties come in the order
of the schema; those that are not required may be left out.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from htfi.decoding.texts.language import Choice, Later, Letter, Part, Repeat, Sequence, one_of, text
from htfi.domain.errors import InvalidInput

MAX_DEPTH = 32
MAX_PARTS = 1_024
_ANY_DEPTH = 6  # of objects and arrays in a document without a schema
_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$schema", "$id", "$comment", "$defs", "definitions")
)  # fmt: skip
_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_KEPT = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "minItems", "maxItems"),
    "string": ("minLength", "maxLength"),
}
_MAX_COUNT = 1_024  # of items or characters that a schema may bound

_DIGIT, _FIRST_DIGIT = one_of("0123456789"), one_of("123456789")
_SIGN = Repeat(one_of("-"), 0, 1)
_INTEGER = Sequence(_SIGN, Choice(one_of("0"), Sequence(_FIRST_DIGIT, Repeat(_DIGIT, 0, 14))))
_NUMBER = Sequence(
    _INTEGER,
    Repeat(Sequence(one_of("."), Repeat(_DIGIT, 1, 15)), 0, 1),
    Repeat(Sequence(one_of("eE"), Repeat(one_of("+-"), 0, 1), Repeat(_DIGIT, 1, 2)), 0, 1),
)
_ESCAPE = Sequence(one_of("\\"), one_of('"\\/bfnrt'))
_QUOTE, _SPACE = one_of('"'), Repeat(one_of(" "), 0, 1)
_PLAIN = Letter(lambda one: one >= " " and one not in '"\\')
_WHOLE = Letter(
    lambda one: one >= " " and one not in '"\\\ufffd'
)  # no part of a character: it would be counted as one
_STRING = Sequence(_QUOTE, Repeat(Choice(_PLAIN, _ESCAPE)), _QUOTE)
_BOOLEAN, _NULL = Choice(text("true"), text("false")), text("null")
_COLON, _COMMA = Sequence(one_of(":"), _SPACE), Sequence(one_of(","), _SPACE)
_SCALARS = {
    "string": _STRING,
    "integer": _INTEGER,
    "number": _NUMBER,
    "boolean": _BOOLEAN,
    "null": _NULL,
}


def any_object() -> Part:
    """A JSON object of any content, to a depth of a few levels."""
    return _object_of_any(_ANY_DEPTH)


def language_of(schema: object) -> Part:
    """The documents that a schema allows, as far as they are written here. Raises: InvalidInput."""
    return _Reader(schema).part(schema, "$", 0)


@cache
def _any_value(depth: int) -> Part:
    scalars = (_STRING, _NUMBER, _BOOLEAN, _NULL)
    if depth <= 0:
        return Choice(*scalars)
    return Choice(*scalars, Later(lambda: _object_of_any(depth)), Later(lambda: _array_of_any(depth)))


@cache
def _object_of_any(depth: int) -> Part:
    member = Sequence(_STRING, _COLON, Later(lambda: _any_value(depth - 1)))
    return Sequence(one_of("{"), Repeat(_separated(member, 1, None), 0, 1), one_of("}"))


@cache
def _array_of_any(depth: int) -> Part:
    return Sequence(
        one_of("["), Repeat(_separated(Later(lambda: _any_value(depth - 1)), 1, None), 0, 1), one_of("]")
    )


def _separated(item: Part, least: int, most: int | None) -> Part:
    """At least one item, with commas between."""
    return Sequence(
        item, Repeat(Sequence(_COMMA, item), max(least - 1, 0), None if most is None else most - 1)
    )


class _Reader:
    """Reads one schema; `$ref` names its own definitions only."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._open: list[str] = []  # references under way
        self._num = 0

    def part(self, schema: object, where: str, depth: int) -> Part:
        self._num += 1
        if depth > MAX_DEPTH or self._num > MAX_PARTS:
            raise InvalidInput(
                f"JSON schema at {where}: deeper than {MAX_DEPTH} levels or more than {MAX_PARTS} parts"
            )
        if schema is True:
            return _any_value(_ANY_DEPTH)
        if not isinstance(schema, dict):
            raise InvalidInput(f"JSON schema at {where}: write an object")
        rules = {
            key: value
            for key, value in cast("dict[str, Any]", schema).items()
            if key not in _ANNOTATIONS and value is not None
        }
        for keyword, read in (
            ("$ref", self._reference),
            ("anyOf", self._any_of),
            ("const", self._constant),
            ("enum", self._options),
        ):
            if keyword in rules:
                self._refuse_others(
                    rules, (keyword, "type") if keyword in ("const", "enum") else (keyword,), where
                )
                return read(rules, where, depth)
        return self._typed(rules, where, depth)

    def _refuse_others(self, rules: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
        for keyword in rules:
            if keyword not in known:
                raise InvalidInput(f"JSON schema keyword '{keyword}' at {where} is not supported here")

    def _reference(self, rules: Mapping[str, Any], where: str, depth: int) -> Part:
        name = rules["$ref"]
        found: Any = self._root
        if not isinstance(name, str) or not name.startswith("#/"):
            raise InvalidInput(
                f"JSON schema at {where}: $ref must name a definition of this schema, '#/$defs/…'"
            )
        for step in name[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            found = cast("dict[str, Any]", found).get(step) if isinstance(found, dict) else None
        if found is None:
            raise InvalidInput(f"JSON schema at {where}: $ref {name!r} names nothing")
        if name in self._open:
            raise InvalidInput(
                f"JSON schema at {where}: $ref {name!r} holds itself, which is not supported here"
            )
        self._open.append(name)
        part = self.part(found, where, depth + 1)
        self._open.pop()
        return part

    def _any_of(self, rules: Mapping[str, Any], where: str, depth: int) -> Part:
        options = rules["anyOf"]
        if not isinstance(options, list) or not options:
            raise InvalidInput(f"JSON schema at {where}: anyOf must be a list of schemas")
        each = cast("list[object]", options)
        return Choice(*(self.part(one, f"{where}.anyOf[{k}]", depth + 1) for k, one in enumerate(each)))

    def _constant(self, rules: Mapping[str, Any], where: str, depth: int) -> Part:
        del depth
        return self._values([rules["const"]], rules, where)

    def _options(self, rules: Mapping[str, Any], where: str, depth: int) -> Part:
        del depth
        options = rules["enum"]
        if not isinstance(options, list) or not options:
            raise InvalidInput(f"JSON schema at {where}: enum must be a list of values")
        return self._values(cast("list[object]", options), rules, where)

    def _values(self, values: list[object], rules: Mapping[str, Any], where: str) -> Part:
        types = self._types(rules.get("type", list(_TYPES)), where)
        kept = [value for value in values if any(_is_of(value, kind) for kind in types)]
        if not kept:
            raise InvalidInput(
                f"JSON schema at {where}: none of the values is of the type {', '.join(types)}"
            )
        return Choice(*map(_written, kept))

    def _typed(self, rules: Mapping[str, Any], where: str, depth: int) -> Part:
        if not rules:
            return _any_value(_ANY_DEPTH)
        if "type" not in rules:
            keyword = next(iter(rules))
            raise InvalidInput(f"JSON schema at {where}: '{keyword}' needs a 'type' beside it")
        types = self._types(rules["type"], where)
        known = ("type", *(keyword for kind in types for keyword in _KEPT.get(kind, ())))
        self._refuse_others(rules, known, where)
        return Choice(*(self._of_type(kind, rules, where, depth) for kind in types))

    def _types(self, stated: object, where: str) -> list[str]:
        types = cast("list[object]", stated) if isinstance(stated, list) else [stated]
        for kind in types:
            if kind not in _TYPES:
                raise InvalidInput(f"JSON schema at {where}: type {kind!r} is none of {', '.join(_TYPES)}")
        if not types:
            raise InvalidInput(f"JSON schema at {where}: type is an empty list")
        return cast("list[str]", types)

    def _of_type(self, kind: str, rules: Mapping[str, Any], where: str, depth: int) -> Part:
        if kind == "object":
            return self._object(rules, where, depth)
        if kind == "array":
            least, most = _bounds(rules, "minItems", "maxItems", where)
            item = self.part(rules.get("items", True), f"{where}.items", depth + 1)
            inner = _separated(item, max(least, 1), most) if most != 0 else Sequence()
            return Sequence(one_of("["), inner if least > 0 else Repeat(inner, 0, 1), one_of("]"))
        if kind == "string" and ("minLength" in rules or "maxLength" in rules):
            least, most = _bounds(rules, "minLength", "maxLength", where)
            return Sequence(_QUOTE, Repeat(Choice(_WHOLE, _ESCAPE), least, most), _QUOTE)
        return _SCALARS[kind]

    def _object(self, rules: Mapping[str, Any], where: str, depth: int) -> Part:
        found, required = rules.get("properties", {}), rules.get("required", [])
        if not isinstance(found, dict) or not isinstance(required, list):
            raise InvalidInput(
                f"JSON schema at {where}: properties must be an object, required a list of names"
            )
        properties = cast("dict[str, object]", found)
        names = frozenset(name for name in cast("list[object]", required) if isinstance(name, str))
        unknown = sorted(names - properties.keys())
        if unknown:
            raise InvalidInput(f"JSON schema at {where}: required names '{unknown[0]}', which is no property")
        others = rules.get("additionalProperties", not properties)
        if not isinstance(others, bool):
            raise InvalidInput(
                f"JSON schema keyword 'additionalProperties' at {where} is supported as true or false only"
            )
        if not properties:
            return _object_of_any(_ANY_DEPTH) if others else text("{}")
        # Others are allowed, and none is written: every document that is written keeps to the schema.
        members: list[Part] = [
            Sequence(
                _written(name),
                _COLON,
                self.part(schema, f"{where}.{name}", depth + 1),
            )
            for name, schema in properties.items()
        ]
        needs = [name in names for name in properties]
        return Sequence(one_of("{"), _members(members, needs), one_of("}"))


def _written(value: object) -> Part:
    """A value of JSON. A character that few vocabularies have whole may come escaped."""
    words = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Sequence(
        *(text(one) if one.isascii() else Choice(text(one), text(json.dumps(one)[1:-1])) for one in words)
    )


def _members(members: list[Part], needs: list[bool]) -> Part:
    """Members in order, with commas between those that are there."""
    after: Part = Sequence()  # of the members behind, each with a comma before
    first: Part = Sequence()  # of the members from here, none before
    for member, needed in zip(reversed(members), reversed(needs), strict=True):
        chosen = Sequence(member, after)
        later = Sequence(_COMMA, member, after)
        first = chosen if needed else Choice(chosen, first)
        after = later if needed else Choice(later, after)
    return first


def _bounds(rules: Mapping[str, Any], low: str, high: str, where: str) -> tuple[int, int | None]:
    least, most = rules.get(low, 0), rules.get(high)
    for keyword, value in ((low, least), (high, 0 if most is None else most)):
        if type(value) is not int or not 0 <= value <= _MAX_COUNT:
            raise InvalidInput(f"JSON schema at {where}: {keyword} must be a count from 0 to {_MAX_COUNT:,}")
    if most is not None and most < least:
        raise InvalidInput(f"JSON schema at {where}: {high} {most} is less than {low} {least}")
    return least, most


def _is_of(value: object, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            return (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)
