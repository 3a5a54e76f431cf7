"""Read an entry of a run's ledger without HTFI: python read_record.py RUN/ledger.db 12 (docs/record.md)."""

import sqlite3
import struct
import sys

FIELDS = ("symbol", "interval", "as_of_ns", "last_price", "inputs", "settings_digest", "plan", "regime", "features",
          "view", "circumstances", "verdict", "amends", "news_context", "trigger", "news_trigger")  # fmt: skip


def value(data, at):
    """A MessagePack value at an offset, and the offset behind it."""
    code, at = data[at], at + 1
    if code < 0x80 or code >= 0xE0:
        return (code if code < 0x80 else code - 256), at
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    if code in (0xCA, 0xCB) or 0xCC <= code <= 0xD3:
        form = {0xCA: ">f", 0xCB: ">d"}.get(code) or ">" + "BHIQbhiq"[code - 0xCC]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if code & 0xF0 == 0x90 or code & 0xE0 == 0xA0:
        num, is_array = (code & 0x0F, True) if code & 0xF0 == 0x90 else (code & 0x1F, False)
    else:
        size = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4}[code]
        num, is_array, at = int.from_bytes(data[at : at + size], "big"), code >= 0xDC, at + size
    if not is_array:
        raw = data[at : at + num]
        return (raw if code in (0xC4, 0xC5, 0xC6) else raw.decode()), at + num
    items = []
    for _ in range(num):
        item, at = value(data, at)
        items.append(item)
    return items, at


def rows(data, width):
    """A table of whole numbers, `width` in each row."""
    at, found = 0, []
    while at < len(data):
        size, mirrored, row, last = data[at] & 15, data[at] & 16, [], 0
        at += 1
        for _ in range((width + 1) // 2 if mirrored else width):
            coded, at = int.from_bytes(data[at : at + size], "little"), at + size
            last += coded >> 1 if coded % 2 == 0 else -(coded >> 1) - 1
            row.append(last)
        found.append([-tick for tick in reversed(row[width % 2 :])] + row if mirrored else row)
    return found


def number(packed):
    """A field that is a float: thousandths, or the float itself."""
    return packed / 1000 if isinstance(packed, int) else packed


database = sqlite3.connect(sys.argv[1])
(entry,) = database.execute("SELECT body FROM entries WHERE idx = ?", (sys.argv[2],)).fetchone()
(version, models, fields, forecast, rationale, name), _ = value(entry, 0)
print(dict(zip(FIELDS, fields, strict=False)))
horizons, levels, _, _, table, *_ = forecast
if isinstance(table, bytes):
    quantiles = [[tick / 1e10 for tick in row] for row in rows(table, len(levels))]
else:
    quantiles = [[number(one) for one in row] for row in table]
for horizon, row in zip(horizons, quantiles, strict=True):
    told = (f"{100 * number(level):g}% {100 * one:+.4f}%" for level, one in zip(levels, row, strict=True))
    print(f"{horizon} bars ahead: {', '.join(told)}")
