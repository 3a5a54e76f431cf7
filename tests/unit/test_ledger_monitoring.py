"""What a monitor concludes from a log that grows, is rolled back, forks, alters or no longer gives entries."""

from collections.abc import Callable, Sequence

import pytest

from htfi.adapters.keys.ed25519 import signing_key, verify_signature
from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.checkpoint import Checkpoint, log_key, sign_checkpoint
from htfi.governance.ledger.merkle import Frontier, leaf_hashes
from htfi.governance.ledger.monitoring import Advance, MonitoredLog, advance
from htfi.governance.ledger.tiles import TILE_WIDTH, entries_of_bundle, entry_bundle, tile_path

SIGNER = signing_key("log.example/run", bytes(32))
KEY = log_key("log.example/run", SIGNER)
ENTRIES = [b"entry %d" % index for index in range(1_000)]


def signed(entries: Sequence[bytes]) -> str:
    frontier = Frontier()
    frontier.extend(leaf_hashes(entries))
    return str(sign_checkpoint(Checkpoint(KEY.name, len(entries), frontier.root()), SIGNER))


def published(
    entries: Sequence[bytes], deleted: Sequence[int] = (), keeps_parts: bool = True
) -> Callable[[str], bytes | None]:
    """The static files of a log; bundles in `deleted` are not given."""
    files: dict[str, bytes] = {}
    for index in range(-(-len(entries) // TILE_WIDTH)):
        tile = entries[index * TILE_WIDTH : (index + 1) * TILE_WIDTH]
        widths = range(1, len(tile) + 1) if keeps_parts else (len(tile),)
        for width in widths:
            if index not in deleted:
                files[tile_path("entries", index, width)] = entry_bundle(tile[:width])
            files[tile_path(0, index, width)] = b"".join(leaf_hashes(tile[:width]))
    return files.get


def look(known: MonitoredLog, entries: Sequence[bytes], shown: Sequence[bytes] | None = None) -> Advance:
    """A look at a log that signs `entries` and gives `shown`."""
    return advance(
        known,
        KEY,
        signed(entries),
        published(entries if shown is None else shown),
        verify_signature,
        lambda *_: None,
    )


@pytest.mark.parametrize("sizes", [(1, 2, 3), (255, 256, 257), (10, 700, 1_000), (1_000, 1_000, 1_000)])
def test_each_new_entry_is_taken_once_and_in_order(sizes: tuple[int, ...]) -> None:
    known = MonitoredLog("")
    taken: list[bytes] = []

    def take(first: int, entries: Sequence[bytes]) -> None:
        assert first == len(taken)
        taken.extend(entries)

    for size in sizes:
        found = advance(known, KEY, signed(ENTRIES[:size]), published(ENTRIES[:size]), verify_signature, take)
        known = found.known
        assert known.size == size == found.checkpoint.size
    assert taken == ENTRIES[: sizes[-1]]


def test_log_that_dropped_its_partial_tiles_is_read_by_the_full_ones() -> None:
    whole = published(ENTRIES[: 2 * TILE_WIDTH], keeps_parts=False)
    found = advance(MonitoredLog(""), KEY, signed(ENTRIES[:300]), whole, verify_signature, lambda *_: None)
    assert found.known.size == 300


def test_log_that_shows_fewer_entries_was_rolled_back() -> None:
    known = look(MonitoredLog(""), ENTRIES[:400]).known
    with pytest.raises(IntegrityError, match=r"rollback: .* shows 399 entries after 400"):
        look(known, ENTRIES[:399])


@pytest.mark.parametrize("place", [0, 299, 399])
def test_log_that_signs_another_past_is_a_fork(place: int) -> None:
    known = look(MonitoredLog(""), ENTRIES[:400]).known
    other = [*ENTRIES[:place], b"another", *ENTRIES[place + 1 :]]
    with pytest.raises(IntegrityError, match="fork"):
        look(known, other[:400])
    with pytest.raises(IntegrityError, match="fork"):
        look(known, other[:401])


def test_entry_that_is_not_the_signed_one_is_found() -> None:
    altered = [*ENTRIES[:7], b"another", *ENTRIES[8:]]
    with pytest.raises(IntegrityError, match="do not make the tree that it signed"):
        look(MonitoredLog(""), ENTRIES, altered)


def test_hashes_stand_for_a_bundle_that_is_no_longer_given() -> None:
    files = published(ENTRIES, deleted=[1])
    found = advance(MonitoredLog(""), KEY, signed(ENTRIES), files, verify_signature, lambda *_: None)
    assert (found.num_new, found.num_deleted) == (1_000, TILE_WIDTH)


def test_tiles_that_are_missing_or_cut_are_named() -> None:
    with pytest.raises(IntegrityError, match=r"gives neither tile/entries/002 nor tile/0/002"):
        look(MonitoredLog(""), ENTRIES, ENTRIES[:700])
    with pytest.raises(IntegrityError, match="cut short"):
        entries_of_bundle(entry_bundle(ENTRIES[:3])[:-1])


def test_checkpoint_of_another_key_is_refused() -> None:
    stranger = signing_key("log.example/run", bytes(31) + b"1")
    note = str(sign_checkpoint(Checkpoint(KEY.name, 0, Frontier().root()), stranger))
    with pytest.raises(IntegrityError, match="not signed by"):
        advance(MonitoredLog(""), KEY, note, published([]), verify_signature, lambda *_: None)
