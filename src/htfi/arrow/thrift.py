"""Thrift's compact protocol, as far as Parquet's footers use it. Source: Thrift, thrift-compact-protocol.md."""

from typing import Any, NamedTuple, cast

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_MAX_DEPTH = 64
_MAX_BITS = 64
_WHOLE = (I16, I32, I64)


class MalformedThrift(Exception):
    """The bytes are no struct of the compact protocol, or a field has another type than asked for."""


class Field(NamedTuple):
    """A value with its type. A list's value is the type of its elements and the elements."""

    kind: int
    value: Any


Struct = dict[int, Field]


def parse(data: bytes) -> Struct:
    """The struct at the beginning of the bytes. Raises: MalformedThrift."""
    try:
        return _Parser(data).struct(0)
    except IndexError as error:
        raise MalformedThrift("it ends too early") from error


def dump(fields: Struct) -> bytes:
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def whole(field: Field) -> int:
    """A number that is not negative. Raises: MalformedThrift."""
    if field.kind not in _WHOLE or field.value < 0:
        raise MalformedThrift("a count is not a count")
    return field.value


def text(field: Field) -> str:
    """Raises: MalformedThrift, UnicodeDecodeError."""
    if field.kind != BINARY:
        raise MalformedThrift("a text is not a text")
    return field.value.decode()


def struct(field: Field) -> Struct:
    """Raises: MalformedThrift."""
    if field.kind != STRUCT:
        raise MalformedThrift("a part is of another type")
    return field.value


def structs(field: Field) -> list[Struct]:
    """Raises: MalformedThrift."""
    if field.kind != LIST or (field.value[1] and field.value[0] != STRUCT):
        raise MalformedThrift("a list is of another type")
    return field.value[1]


def elements(field: Field) -> list[int]:
    """A list of whole numbers. Raises: MalformedThrift."""
    if field.kind != LIST or (field.value[1] and field.value[0] not in _WHOLE):
        raise MalformedThrift("a list is of another type")
    return field.value[1]


def check_texts(fields: Struct) -> None:
    """Raises: UnicodeDecodeError where a text anywhere in a struct is no valid Unicode."""
    for kind, value in fields.values():
        _check_texts(kind, value)


def _check_texts(kind: int, value: Any) -> None:
    if kind == BINARY:
        value.decode()
    elif kind == STRUCT:
        check_texts(value)
    elif kind == LIST:
        of, elements = cast("tuple[int, list[Any]]", value)
        for element in elements if of in (BINARY, STRUCT, LIST) else ():
            _check_texts(of, element)


class _Parser:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise MalformedThrift("it is nested too deep")
        fields: Struct = {}
        name = 0
        while (head := self._byte()) != 0:
            kind, step = head & 15, head >> 4
            name = name + step if step else self._zigzag()
            value = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
            fields[name] = Field(kind, value)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _WHOLE:
            return self._zigzag()
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            head = self._byte()
            num, of = head >> 4, head & 15
            if num == 15:
                num = self._varint()
            if num > len(self._data) - self._at:  # an element takes a byte at least
                raise IndexError
            return of, [self._element(of, depth) for _ in range(num)]
        if kind == I8:
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        raise MalformedThrift(f"it holds a field of the unknown type {kind}")

    def _element(self, kind: int, depth: int) -> Any:
        return self._byte() if kind in (TRUE, FALSE) else self._value(kind, depth + 1)

    def _byte(self) -> int:
        found = self._data[self._at]
        self._at += 1
        return found

    def _bytes(self, num: int) -> bytes:
        end = self._at + num
        if end > len(self._data):
            raise IndexError
        found = self._data[self._at : end]
        self._at = end
        return found

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
            if shift > _MAX_BITS:
                raise MalformedThrift("a number is too long")

    def _zigzag(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)


def _write_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for name, (kind, value) in sorted(fields.items()):
        step = name - before
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _write_zigzag(out, name)
        before = name
        if kind not in (TRUE, FALSE):
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _WHOLE:
        _write_zigzag(out, value)
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        of, elements = cast("tuple[int, list[Any]]", value)
        if len(elements) < 15:
            out.append(len(elements) << 4 | of)
        else:
            out.append(15 << 4 | of)
            _write_varint(out, len(elements))
        for element in elements:
            if of in (TRUE, FALSE):
                out.append(element)
            else:
                _write_value(out, of, element)
    elif kind == I8:
        out.append(value)
    else:  # DOUBLE
        out += value


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_zigzag(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
