"""Readers of the same entries decode them once, as far as memory allows."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from htfi.adapters.stores import journal_check
from htfi.adapters.stores.journal_check import LedgerEntries
from htfi.domain.decision import Decision, Receipt
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.record import decoded_once
from htfi.pipeline.record.decoded_once import MAX_HELD, DecodedOnce
from htfi.pipeline.record.entry import decode_entry, encode_entry

Recorded = list[tuple[Receipt, bytes]]


@pytest.fixture
def recorded(make_decisions: Callable[[int], Sequence[Decision]]) -> Recorded:
    entries = [encode_entry(one) for one in make_decisions(6)]
    return [(Receipt(index, leaf_hash(entry).hex()), entry) for index, entry in enumerate(entries)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The entries that were decoded."""
    found: list[bytes] = []

    def decode(entry: bytes) -> Decision:
        found.append(entry)
        return decode_entry(entry)

    monkeypatch.setattr(decoded_once, "decode_entry", decode)
    return found


def test_a_second_reader_gets_what_the_first_had_decoded(recorded: Recorded, decoded: list[bytes]) -> None:
    decode = DecodedOnce(len(recorded))
    first = [decode(*one) for one in recorded]
    second = [decode(*one) for one in recorded]
    assert decoded == [entry for _, entry in recorded]
    assert first == second == [decode_entry(entry) for _, entry in recorded]


def test_another_entry_in_the_place_of_a_held_one_is_decoded(recorded: Recorded) -> None:
    decode = DecodedOnce(len(recorded))
    (receipt, entry), (_, other) = recorded[:2]
    decode(receipt, entry)
    assert decode(Receipt(receipt.index, leaf_hash(other).hex()), other) == decode_entry(other)


def test_of_a_long_ledger_nothing_is_held(recorded: Recorded, decoded: list[bytes]) -> None:
    decode = DecodedOnce(MAX_HELD + 1)
    for one in recorded * 2:
        decode(*one)
    assert len(decoded) == 2 * len(recorded)


def test_entries_beyond_the_bound_of_bytes_are_decoded_each_time(
    recorded: Recorded, decoded: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded_once, "MAX_HELD_BYTES", sum(len(entry) for _, entry in recorded[:4]))
    decode = DecodedOnce(len(recorded))
    for one in recorded * 2:
        decode(*one)
    assert decoded == [entry for _, entry in (*recorded, *recorded[4:])]


def test_what_a_run_held_itself_is_not_decoded(recorded: Recorded, decoded: list[bytes]) -> None:
    decode = DecodedOnce()
    told = [decode_entry(entry) for _, entry in recorded]
    for (receipt, entry), decision in zip(recorded, told, strict=True):
        decode.hold(receipt, entry, decision)
    assert [decode(*one) for one in recorded] == told
    assert not decoded


def test_a_run_that_gets_long_holds_nothing_any_more(recorded: Recorded, decoded: list[bytes]) -> None:
    decode = DecodedOnce()
    for receipt, entry in recorded:
        decode.hold(receipt, entry, decode_entry(entry))
    _, entry = recorded[0]
    decode.hold(Receipt(MAX_HELD, leaf_hash(entry).hex()), entry, decode_entry(entry))
    for one in recorded * 2:
        decode(*one)
    assert len(decoded) == 2 * len(recorded)


def _entries(recorded: Recorded, num_reads: list[int]) -> LedgerEntries:
    def stream() -> Iterator[tuple[bytes, bytes]]:
        num_reads.append(len(num_reads))
        yield from ((entry, leaf_hash(entry)) for _, entry in recorded)

    return LedgerEntries(len(recorded), stream, lambda index: recorded[index][1])


def test_entries_of_a_short_ledger_are_read_once_for_several_passes(recorded: Recorded) -> None:
    num_reads: list[int] = []
    held = _entries(recorded, num_reads).held()
    assert [list(held.entries()) for _ in range(3)] == [recorded] * 3
    assert len(num_reads) == 1


def test_a_pass_that_was_left_early_holds_nothing(recorded: Recorded) -> None:
    num_reads: list[int] = []
    held = _entries(recorded, num_reads).held()
    assert next(held.entries()) == recorded[0]
    assert list(held.entries()) == recorded
    assert len(num_reads) == 2


def test_entries_beyond_the_bound_of_bytes_are_read_in_each_pass(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_check, "MAX_HELD_BYTES", sum(len(entry) for _, entry in recorded) - 1)
    num_reads: list[int] = []
    held = _entries(recorded, num_reads).held()
    assert [list(held.entries()) for _ in range(2)] == [recorded] * 2
    assert len(num_reads) == 2
