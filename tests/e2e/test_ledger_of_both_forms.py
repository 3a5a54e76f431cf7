"""A ledger that was begun as JSON is continued in the compact form, and holds as a whole."""

from pathlib import Path

from htfi.pipeline.record.entry import decode_entry, entry_json
from htfi.wiring.ledger import open_ledger_readonly

NUM_FIRST, NUM = 40, 70


def entries(folder: Path) -> list[bytes]:
    ledger = open_ledger_readonly(folder)
    try:
        return list(ledger.entries())
    finally:
        ledger.close()


def test_a_ledger_of_json_is_continued_in_the_compact_form(tmp_path, htfi):
    prices, folder, anew = tmp_path / "prices.csv", tmp_path / "run", tmp_path / "anew"
    rows = [
        f"2024-{1 + day // 28:02}-{1 + day % 28:02}T21:00:00Z,AAA,{100 + day % 7}\n" for day in range(NUM)
    ]
    words = ("run", str(prices), "--plain", "--no-report", "--out")
    prices.write_text("ts,symbol,close\n" + "".join(rows[:NUM_FIRST]))
    htfi(*words, str(folder))
    first = entries(folder)
    assert all(entry.startswith(b"{") for entry in first)

    prices.write_text("ts,symbol,close\n" + "".join(rows))
    (folder / "state.bin").unlink()  # so that all that is recorded is made again, and compared
    htfi(*words, str(folder), "--compact")
    found = entries(folder)
    assert found[: len(first)] == first
    assert len(found) > len(first)
    assert not any(entry.startswith(b"{") for entry in found[len(first) :])
    assert "each as it was recorded" in htfi("ledger", "verify", str(folder), "--recompute")

    htfi(*words, str(anew), "--compact")
    assert [entry_json(entry) for entry in entries(anew)] == [entry_json(entry) for entry in found]
    assert [decode_entry(entry) for entry in entries(anew)] == [decode_entry(entry) for entry in found]
