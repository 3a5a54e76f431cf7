"""The footer of a Parquet file: what the file holds, and another footer that names fewer row groups and columns.

arro3 reads whole files. A file whose footer names only what is wanted is read as if it held nothing else: its pages
stay where they are. Source: https://github.com/apache/parquet-format, parquet.thrift.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from htfi.arrow import thrift
from htfi.arrow.failures import DamagedFile
from htfi.arrow.thrift import Field, MalformedThrift, Struct

MAGIC = b"PAR1"
TAIL_BYTES = 8  # the footer's length and the magic
ARROW_SCHEMA = "ARROW:schema"
_MAX_DEPTH = 32  # of nested columns
_NUM_TYPES, _NUM_CODECS, _NUM_REPETITIONS, _NUM_CONVERTED, _NUM_LOGICAL = 8, 8, 3, 22, 20
_ENCODINGS = frozenset({0, *range(2, 10)})

# Fields of parquet.thrift.
_VERSION, _SCHEMA, _NUM_ROWS, _GROUPS, _NOTES, _CREATED_BY, _ENCRYPTION = 1, 2, 3, 4, 5, 6, 8
_REPETITION, _NAME, _NUM_CHILDREN, _CONVERTED, _LOGICAL = 3, 4, 5, 6, 10  # SchemaElement
_CHUNKS, _TOTAL_BYTES, _GROUP_ROWS = 1, 2, 3  # RowGroup
_CHUNK_FILE, _CHUNK_OFFSET, _CHUNK = 1, 2, 3  # ColumnChunk
_TYPE, _CHUNK_ENCODINGS, _CODEC, _COMPRESSED_BYTES, _DATA_PAGE, _DICTIONARY_PAGE = (
    1,
    2,
    4,
    7,
    9,
    11,
)  # ColumnMetaData
_KEPT_OF_CHUNK = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    9,
    11,
)  # type, encodings, path, codec, counts and places: no statistics


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are stored together."""

    num_rows: int
    num_bytes: int  # before compression
    chunks: tuple[Struct, ...]  # a ColumnChunk for each leaf


@dataclass(frozen=True, slots=True)
class _TopColumn:
    """A column of the table: its part of the schema, and its leaves."""

    name: str
    elements: tuple[Struct, ...]
    first_leaf: int
    num_leaves: int


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """What a Parquet file holds. `notes` are its key-value metadata."""

    num_rows: int
    groups: tuple[RowGroup, ...]
    notes: Mapping[str, str]
    _columns: tuple[_TopColumn, ...]
    _version: Field
    _root: Struct
    _created_by: Field | None

    @property
    def names(self) -> list[str]:
        return [column.name for column in self._columns]

    @classmethod
    def parse(cls, data: bytes, num_bytes_before: int) -> "ParquetFooter":
        """Of the bytes of a footer that stands behind so many bytes of pages. Raises: DamagedFile."""
        try:
            return cls._parse(data, num_bytes_before)
        except (MalformedThrift, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise DamagedFile(f"its footer cannot be read: {error}") from error

    @classmethod
    def _parse(cls, data: bytes, num_bytes_before: int) -> "ParquetFooter":
        fields = thrift.parse(data)
        if _ENCRYPTION in fields:
            raise DamagedFile("it is encrypted")
        elements: list[Struct] = thrift.structs(fields[_SCHEMA])
        for element in elements:
            _check_element(element)
        columns = _top_columns(elements)
        num_leaves = sum(column.num_leaves for column in columns)
        groups = tuple(
            _row_group(group, num_leaves, num_bytes_before)
            for group in thrift.structs(fields[_GROUPS])
            if thrift.whole(group[_GROUP_ROWS])  # one without rows may have no pages
        )
        num_rows = sum(group.num_rows for group in groups)
        if num_rows != thrift.whole(fields[_NUM_ROWS]):
            raise DamagedFile("its row groups hold other rows than its footer counts")
        notes: dict[str, str] = {}
        for note in thrift.structs(fields[_NOTES]) if _NOTES in fields else ():
            notes[thrift.text(note[1])] = thrift.text(note[2]) if 2 in note else ""
        created_by = fields.get(_CREATED_BY)
        if created_by is not None:
            thrift.text(created_by)
        thrift.whole(fields[_VERSION])
        return cls(num_rows, groups, notes, columns, fields[_VERSION], elements[0], created_by)

    def selected(
        self, first_group: int, names: Sequence[str] | None, notes: Mapping[str, str]
    ) -> tuple[bytes, list[int]]:
        """A footer of the row groups from one on and of these columns; and which columns those are.

        All columns where no names are given. `notes` take the place of the file's.
        """
        places = [n for n, column in enumerate(self._columns) if names is None or column.name in names]
        columns = [self._columns[place] for place in places]
        root = {**self._root, _NUM_CHILDREN: Field(thrift.I32, len(columns))}
        schema = [root, *(element for column in columns for element in column.elements)]
        leaves = [
            leaf
            for column in columns
            for leaf in range(column.first_leaf, column.first_leaf + column.num_leaves)
        ]
        groups = [
            {
                _CHUNKS: Field(thrift.LIST, (thrift.STRUCT, [group.chunks[leaf] for leaf in leaves])),
                _TOTAL_BYTES: Field(thrift.I64, group.num_bytes),
                _GROUP_ROWS: Field(thrift.I64, group.num_rows),
            }
            for group in self.groups[first_group:]
        ]
        fields: Struct = {
            _VERSION: self._version,
            _SCHEMA: Field(thrift.LIST, (thrift.STRUCT, schema)),
            _NUM_ROWS: Field(thrift.I64, sum(group.num_rows for group in self.groups[first_group:])),
            _GROUPS: Field(thrift.LIST, (thrift.STRUCT, groups)),
        }
        if notes:
            pairs = [
                {1: Field(thrift.BINARY, key.encode()), 2: Field(thrift.BINARY, value.encode())}
                for key, value in notes.items()
            ]
            fields[_NOTES] = Field(thrift.LIST, (thrift.STRUCT, pairs))
        if self._created_by is not None:
            fields[_CREATED_BY] = self._created_by
        return thrift.dump(fields), places


def _top_columns(elements: Sequence[Struct]) -> tuple[_TopColumn, ...]:
    """The columns of a schema, which lists a tree depth first."""
    columns: list[_TopColumn] = []
    at, num_leaves = 1, 0
    for _ in range(thrift.whole(elements[0].get(_NUM_CHILDREN, Field(thrift.I32, 0))) if elements else 0):
        end, leaves = _end_of_branch(elements, at, 0)
        name = thrift.text(elements[at][_NAME])
        columns.append(_TopColumn(name, tuple(elements[at:end]), num_leaves, leaves))
        at, num_leaves = end, num_leaves + leaves
    if at != len(elements):
        raise DamagedFile("its schema is not whole")
    return tuple(columns)


def _end_of_branch(elements: Sequence[Struct], at: int, depth: int) -> tuple[int, int]:
    """Where the next branch begins, and how many leaves this one has."""
    if at >= len(elements) or depth > _MAX_DEPTH:
        raise DamagedFile("its schema is not whole")
    num_children = thrift.whole(elements[at].get(_NUM_CHILDREN, Field(thrift.I32, 0)))
    if num_children == 0:
        return at + 1, 1
    end, leaves = at + 1, 0
    for _ in range(num_children):
        end, more = _end_of_branch(elements, end, depth + 1)
        leaves += more
    return end, leaves


def _check_element(element: Struct) -> None:
    """Refuse what arro3 would panic at. Raises: DamagedFile, MalformedThrift."""
    bounds = {_TYPE: _NUM_TYPES, _REPETITION: _NUM_REPETITIONS, _CONVERTED: _NUM_CONVERTED}
    if any(field in element and thrift.whole(element[field]) >= bound for field, bound in bounds.items()):
        raise DamagedFile("a column is of an unknown type")
    if _LOGICAL in element:
        logical = thrift.struct(element[_LOGICAL])
        if len(logical) != 1 or next(iter(logical)) >= _NUM_LOGICAL:
            raise DamagedFile("a column is of an unknown type")
    thrift.check_texts(element)


def _row_group(group: Struct, num_leaves: int, num_bytes_before: int) -> RowGroup:
    chunks = [_chunk(chunk, num_bytes_before) for chunk in thrift.structs(group[_CHUNKS])]
    if len(chunks) != num_leaves:
        raise DamagedFile("a row group has other columns than its schema")
    num_rows = thrift.whole(group[_GROUP_ROWS])
    return RowGroup(num_rows, thrift.whole(group[_TOTAL_BYTES]), tuple(chunks))


def _chunk(chunk: Struct, num_bytes_before: int) -> Struct:
    """A chunk with what reading it takes, and its places inside the file."""
    if _CHUNK_FILE in chunk:
        raise DamagedFile("its columns lie in other files")
    about = thrift.struct(chunk[_CHUNK])
    begin, num_bytes = thrift.whole(about[_DATA_PAGE]), thrift.whole(about[_COMPRESSED_BYTES])
    if _DICTIONARY_PAGE in about:
        begin = min(begin, thrift.whole(about[_DICTIONARY_PAGE]))
    if thrift.whole(about[_TYPE]) >= _NUM_TYPES or thrift.whole(about[_CODEC]) >= _NUM_CODECS:
        raise DamagedFile("a column is of an unknown type")
    if not set(thrift.elements(about[_CHUNK_ENCODINGS])) <= _ENCODINGS:
        raise DamagedFile("a column is of an unknown encoding")
    if begin < len(MAGIC) or begin + num_bytes > num_bytes_before:
        raise DamagedFile("a column lies outside of it")
    kept = {field: about[field] for field in _KEPT_OF_CHUNK if field in about}
    thrift.check_texts(kept)
    return {_CHUNK_OFFSET: Field(thrift.I64, 0), _CHUNK: Field(thrift.STRUCT, kept)}
