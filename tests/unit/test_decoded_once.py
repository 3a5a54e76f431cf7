"""Readers of the same entries decode them once, as far as memory allows."""

from collections.abc import Callable, Sequence

import pytest

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
