"""Text of a file from its bytes: UTF-8, or UTF-16 with or without its mark. Readers of calendars and feeds call it."""

import codecs

from htfi.domain.errors import InvalidInput

UTF8 = "utf-8-sig"
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD_BYTES = 4096
_MOST = 0.4  # of the bytes at even or at odd places: letters of UTF-16 that ASCII has too


def encoding_of(data: bytes) -> str:
    """'utf-16' of a file that begins with its mark, '-le' or '-be' behind it where every second byte of its beginning
    is mostly NUL; else UTF8."""
    if data.startswith(_MARKS):  # as spreadsheets and terminals save
        return "utf-16"
    head = data[:_HEAD_BYTES]
    for encoding, first in (("utf-16-be", 0), ("utf-16-le", 1)):
        high, low = head[first::2], head[1 - first :: 2]
        if high.count(0) > _MOST * len(high) and low.count(0) < (1 - _MOST) * high.count(0):
            return encoding
    return UTF8


def decoded(data: bytes, where: str) -> str:
    """The text of a file. Raises: InvalidInput, with the place of the byte that is none."""
    encoding = encoding_of(data)
    shown = "UTF-8" if encoding == UTF8 else "UTF-16"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where}: not {shown} at byte {error.start}: save it as UTF-8") from error
