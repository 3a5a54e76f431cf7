"""Read an entry of version 2 to 4 of a ledger without HTFI: python read_record.py RUN/ledger.db 12 (docs/record.md)."""

import sqlite3
import struct
import sys
from io import BytesIO
from pathlib import Path

FIELDS = ("symbol", "interval", "as_of_ns", "last_price", "inputs", "settings_digest", "plan", "regime", "features",
          "view", "circumstances", "verdict", "amends", "news_context", "trigger", "news_trigger",
          "governance", "known_events")  # fmt: skip
NUMBERS = dict(zip(range(0xCB, 0xD4), (">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"), strict=True))
SIZES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4}  # of a length, in bytes


def value(data):
    """The next MessagePack value: nil, boolean, number, text, bytes or a list of such."""
    code = data.read(1)[0]
    if code < 0x80 or code >= 0xE0:
        return code if code < 0x80 else code - 0x100
    if code in NUMBERS:
        return struct.unpack(NUMBERS[code], data.read(struct.calcsize(NUMBERS[code])))[0]
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code]
    short = {0x90: code & 0x0F, 0xA0: code & 0x1F, 0xB0: code & 0x1F}.get(code & 0xF0)
    num = int.from_bytes(data.read(SIZES[code]), "big") if short is None else short
    if code & 0xF0 == 0x90 or code in (0xDC, 0xDD):
        return [value(data) for _ in range(num)]
    return data.read(num) if code in (0xC4, 0xC5, 0xC6) else data.read(num).decode()


def rows(table, width, version):
    """The rows of a table of whole numbers, `width` in each; of a mirrored one the half that is stored gives all."""
    bits, left, at = int.from_bytes(table, "little"), 8 * len(table), 0

    def take(num):
        nonlocal at
        at += num
        return bits >> (at - num) & ((1 << num) - 1)

    while left - at >= (14 if version > 2 else 1):
        if version > 2:
            is_mirrored, is_rising, first_size, size = take(1), take(1), take(6), take(6)
        else:
            mode, is_rising = take(8), False
            is_mirrored, first_size, size = mode & 16, 8 * (mode & 15), 8 * (mode & 15)
        row = [0]
        for place in range((width + 1) // 2 if is_mirrored else width):
            coded = take(size if place else first_size)
            signed = coded >> 1 if coded % 2 == 0 else -(coded >> 1) - 1
            row.append(row[-1] + (coded if is_rising and place else signed))
        middle = row[1] if version > 3 and width % 2 else 0
        yield [2 * middle - tick for tick in row[: width % 2 : -1]] + row[1:] if is_mirrored else row[1:]


query = "SELECT body FROM entries WHERE idx = ?"
path = Path(sys.argv[1]).absolute().as_uri()
found = sqlite3.connect(f"{path}?mode=ro", uri=True).execute(query, sys.argv[2:]).fetchone()
if found is None or found[0][:2] not in (b"\x96\x02", b"\x96\x03", b"\x96\x04"):
    sys.exit(
        f"{sys.argv[1]}: "
        + ("no entry " + sys.argv[2] if found is None else "another version: JSON, or newer")
    )
(entry,) = found
version, models, fields, (horizons, levels, _, _, table, *_), rationale, name = value(BytesIO(entry))
print(dict(zip(FIELDS, fields, strict=False)))
whole = isinstance(table, bytes)  # else floats, as those of any field: thousandths, or the number itself
levels = [one / 1e3 if isinstance(one, int) else one for one in levels]
for horizon, row in zip(horizons, rows(table, len(levels), version) if whole else table, strict=True):
    returns = [one / 1e10 if whole else one / 1e3 if isinstance(one, int) else one for one in row]
    told = (f"{100 * level:g}% {100 * one:+.4f}%" for level, one in zip(levels, returns, strict=True))
    print(f"{horizon} bars ahead: {', '.join(told)}")
