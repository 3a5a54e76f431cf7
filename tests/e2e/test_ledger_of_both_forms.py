"""A ledger of JSON entries, as versions before record 2 wrote them, is continued in its form, and holds as a whole."""

from collections.abc import Sequence
from pathlib import Path

from htfi.pipeline.record.entry import decode_entry, encode_entry, entry_json
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


def forms(recorded: Sequence[bytes]) -> list[bool]:
    """Which of the entries are JSON."""
    return [entry.startswith(b"{") for entry in recorded]


def test_a_ledger_is_continued_in_the_form_of_its_last_entry(tmp_path, htfi):
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
    assert not any(forms(whole))

    prices.write_text("ts,symbol,close\n" + "".join(rows[:NUM_FIRST]))
    htfi(*words, str(folder))
    num_first = len(entries(folder))
    prices.write_text("ts,symbol,close\n" + "".join(rows))
    for first in (told[:num_first], [*told[:5], *whole[5:num_first]], [*whole[:5], *told[5:num_first]]):
        begin_again_with(first, folder)
        htfi(*words, str(folder))
        found = entries(folder)
        assert found[:num_first] == first
        assert forms(found[num_first:]) == [forms(first)[-1]] * (len(whole) - num_first)
        assert [entry_json(entry) for entry in found] == told
        assert "each as it was recorded" in htfi("ledger", "verify", str(folder), "--recompute")
        assert [encode_entry(decode_entry(entry)) for entry in found] == whole
