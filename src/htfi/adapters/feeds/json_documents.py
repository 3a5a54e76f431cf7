"""Files of one JSON document, as APIs answer and as frames are saved, as lines of JSON. The reader of text files calls
it.

`[{…}, {…}]`, `{"ticker": "AAPL", "results": [{…}]}` or `[[1609754400000, "1.0", …]]`: rows are the items of the one
list; what stands beside it, such as a ticker, belongs to every row that does not state its own.
"""

from typing import Any, cast

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.bare_columns import name_columns

_SAMPLED = 200  # rows of cells without names
_BOM = b"\xef\xbb\xbf"


def may_be_document(first_line: bytes, *, is_whole: bool) -> bool:
    """Whether a file that begins with this line, and ends with it where `is_whole`, may be one document."""
    text = first_line.removeprefix(_BOM).strip()
    if text.startswith(b"["):
        return True
    if not text.startswith(b"{"):
        return False
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return not is_whole
    return is_whole and _only_list(found) is not None


def document_lines(content: bytes, where: str) -> bytes | None:
    """The rows of a document, a line each; None where the content is no document.

    Raises: InvalidInput, where its rows are cells whose meaning is open.
    """
    try:
        found = msgspec.json.decode(content.removeprefix(_BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    rows = cast("list[Any]", found) if isinstance(found, list) else _only_list(found)
    if rows is None:
        return None
    if rows and all(isinstance(row, list) for row in rows):
        rows = _named(cast("list[list[Any]]", rows), where)
    common: dict[str, Any] = {}
    if isinstance(found, dict):
        stated = cast("dict[str, Any]", found)
        common = {name: value for name, value in stated.items() if name in ("ticker", "symbol")}
    encode = msgspec.json.encode
    lines = (
        encode({**common, **cast("dict[str, Any]", row)} if isinstance(row, dict) else row) for row in rows
    )
    return b"".join(b"%b\n" % line for line in lines)


def _only_list(found: Any) -> list[Any] | None:
    """The one list of rows in an object; None where there is none, or several."""
    if not isinstance(found, dict):
        return None
    lists = [
        cast("list[Any]", value)
        for value in cast("dict[str, Any]", found).values()
        if isinstance(value, list) and value and isinstance(value[0], dict | list)
    ]
    return lists[0] if len(lists) == 1 else None


def _named(rows: list[list[Any]], where: str) -> list[dict[str, Any]]:
    sample = [[str(cell) for cell in row] for row in rows[:_SAMPLED] if len(row) == len(rows[0])]
    names = name_columns(sample)
    if names is None:
        raise InvalidInput(
            f"{where}: its rows are lists of cells without names: write each as an object, such as "
            '{"ts": "2024-01-02", "close": 1.5}'
        )
    return [dict(zip(names, row, strict=False)) for row in rows]
