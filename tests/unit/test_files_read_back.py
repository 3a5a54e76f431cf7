"""Small files that are read back to go on: with any bit flipped they are what was written, or not believed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from htfi.adapters.feeds.web.history import EntryHistory, Validators
from htfi.adapters.keys.ed25519 import WitnessMemoryFile
from htfi.decoding.replay_buffer import RecordedPaths, from_line, to_line
from htfi.decoding.sampling import SamplingParams
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.files import add_checksum, altered_lines, checksum_holds
from htfi.governance.ports import WitnessedLog

SEEN = WitnessedLog("log.example+00000000+AQ==", "log.example\n3\nAAAA\n")


def flips(content: bytes, step: int = 1) -> Iterator[bytes]:
    num = 0
    for at in range(0, len(content), step):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        yield bytes(flipped)
        num += 1
    assert num > 10


def test_a_witness_remembers_what_it_saw_or_says_that_its_memory_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "w.state"
    memory = WitnessMemoryFile(path)
    memory.remember("log.example", SEEN)
    memory.close()
    num_refused = 0
    for content in flips(path.read_bytes()):
        path.write_bytes(content)
        try:
            memory = WitnessMemoryFile(path)
        except IntegrityError:
            num_refused += 1
        else:
            memory.close()
            assert memory.recall("log.example") == SEEN
    assert num_refused == len(path.read_bytes())
    path.write_bytes(b'{"log.example":{"log_key":"k","checkpoint":"c"}}\n')  # from before there was a digest
    memory = WitnessMemoryFile(path)
    assert memory.recall("log.example") == WitnessedLog("k", "c")
    memory.close()


def test_an_exchange_is_learnt_from_as_it_was_said_or_not_at_all() -> None:
    said = RecordedPaths((1, 2), ((3, 4), (5, 6)), 7, SamplingParams(), 0, "target@1", "tokenizer")
    line = to_line(said)
    assert from_line(line) == said
    num_refused = 0
    for changed in flips(line):
        try:
            assert from_line(changed) == said
        except InvalidInput:
            num_refused += 1
    assert num_refused > 0.95 * len(line)  # a few bits change neither number nor name


def test_what_a_web_source_knows_of_its_server_is_as_it_was_or_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "x.web.json"
    memory = EntryHistory(path, [], 100, "http://x/")
    memory.save('"etag"', "Mon", "http://x/", 90, [])
    whole = EntryHistory(path, [], 100, "http://x/").validators
    assert whole.etag == '"etag"'
    num_forgotten = 0
    for content in flips(path.read_bytes()):
        path.write_bytes(content)
        found = EntryHistory(path, [], 100, "http://x/").validators
        assert found in (whole, Validators())
        num_forgotten += found != whole
    assert num_forgotten > 0.95 * len(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: [told[0], told[2]],
        lambda told: [told[1], told[0], told[2]],
        lambda told: [told[0], told[0], *told[1:]],
        lambda told: [told[0].replace(b"a0", b"b0"), *told[1:]],
        lambda told: [told[0][:-1], *told[1:]],
    ],
)
def test_lines_lost_repeated_swapped_changed_or_joined_are_found(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    lines: list[bytes] = []
    for number in range(3):
        lines.append(add_checksum(b'{"row":"a%d"}' % number, sum(map(len, lines))) + b"\n")
    path = tmp_path / "lines"
    path.write_bytes(b"".join(lines))
    num_bytes = path.stat().st_size
    assert list(altered_lines(path, num_bytes)) == []
    path.write_bytes(b"".join(change(lines)))
    assert next(altered_lines(path, num_bytes)) in (1, 2, 3)
    assert checksum_holds(b'{"row":"from before there were sums"}', 5)
