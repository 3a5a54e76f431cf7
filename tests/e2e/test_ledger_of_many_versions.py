"""A ledger of entries of an earlier version, JSON or tables in bytes, is continued in it, and holds as a whole."""

from collections.abc import Sequence
from pathlib import Path

from htfi.pipeline.record.entry import (
    VERSION,
    decode_entry,
    encode_as,
    encode_entry,
    entry_json,
    entry_version,
)
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.run import LEDGER_ORIGIN

NUM_FIRST, NUM = 40, 70


def entries(folder: Path) -> list[bytes]:
    ledger = open_ledger_readonly(folder)
    try:
        return list(ledger.entries())
    finally:
        ledger.close()


def begin_again_with(recorded: Sequence[bytes], folder: Path) -> None:
    """Leave a run's folder as if these entries were all that it recorded."""
    for file in folder.iterdir():
        if file.name != "settings.json":
            file.unlink()
    ledger = open_ledger(folder, origin=LEDGER_ORIGIN)
    ledger.append(recorded)
    ledger.close()


def versions(recorded: Sequence[bytes]) -> list[int]:
    return [entry_version(entry) for entry in recorded]


def test_a_ledger_is_continued_in_the_version_of_its_last_entry(tmp_path, htfi):
    prices, folder, anew = tmp_path / "prices.csv", tmp_path / "run", tmp_path / "anew"
    rows = [
        f"2024-{1 + day // 28:02}-{1 + day % 28:02}T21:00:00Z,AAA,{100 + day % 7}\n" for day in range(NUM)
    ]
    words = ("run", str(prices), "--plain", "--no-report", "--out")
    prices.write_text("ts,symbol,close\n" + "".join(rows))
    htfi(*words, str(anew))
    whole = entries(anew)
    told = [entry_json(entry) for entry in whole]
    assert len(whole) > 20
    assert set(versions(whole)) == {VERSION}
    in_bytes = [encode_as(decode_entry(entry), 2) for entry in whole]

    prices.write_text("ts,symbol,close\n" + "".join(rows[:NUM_FIRST]))
    htfi(*words, str(folder))
    num_first = len(entries(folder))
    prices.write_text("ts,symbol,close\n" + "".join(rows))
    for first in (
        told[:num_first],
        [*told[:5], *whole[5:num_first]],
        [*whole[:5], *told[5:num_first]],
        [*whole[:5], *told[5:10], *in_bytes[10:num_first]],
    ):
        begin_again_with(first, folder)
        htfi(*words, str(folder))
        found = entries(folder)
        assert found[:num_first] == first
        assert versions(found[num_first:]) == versions(first)[-1:] * (len(whole) - num_first)
        assert [entry_json(entry) for entry in found] == told
        assert "each as it was recorded" in htfi("ledger", "verify", str(folder), "--recompute")
        assert [encode_entry(decode_entry(entry)) for entry in found] == whole
