"""The replay buffer: what was said comes back as it was, the oldest goes first, a crash costs one line at most."""

import errno
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.adapters.stores.replay_buffer import (
    CURRENT_FILE,
    PREVIOUS_FILE,
    ReplayBufferFile,
    read_replay_buffer,
)
from htfi.decoding.replay_buffer import (
    RecordedAnswer,
    RecordedPaths,
    from_line,
    is_holdout,
    news_key,
    to_line,
)
from htfi.decoding.sampling import SamplingParams
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    PlainText,
    ScaledMoves,
)

SAID = RecordedAnswer(
    GenerationRequest(
        (
            ControlToken("news"),
            PlainText(' a "quoted"\nline é'),
            ScaledMoves((0.1, -2.7182818284590451, 3.0)),
        ),
        (
            FixedField((ControlToken("view"),)),
            ChoiceField("way", ((ControlToken("up"),), (PlainText("down"), ControlToken("x")))),
            FreeTextField("words", 7, ControlToken("end"), (ControlToken("symbol"),)),
        ),
        seed=2**63 + 5,
        temperature=0.7,
        top_k=5,
        shared=2,
        kind="view",
        max_draft=3,
    ),
    (5, 6, 7),
    "target@0123456789ab",
    "ab" * 32,
)
DRAWN = RecordedPaths(
    (1, 2, 3), ((4, 5), (6, 7)), 9, SamplingParams(1.0, 3, 0.9), 2, "target@0123456789ab", "ab" * 32
)


def numbered(number: int) -> RecordedAnswer:
    return msgspec.structs.replace(SAID, tokens=(number,))


def numbers(folder: Path) -> list[int]:
    return [
        exchange.tokens[0]
        for exchange in read_replay_buffer(folder)[0]
        if isinstance(exchange, RecordedAnswer)
    ]


@pytest.mark.parametrize("exchange", [SAID, DRAWN])
def test_an_exchange_comes_back_from_its_line_as_it_was(exchange: RecordedAnswer | RecordedPaths) -> None:
    line = to_line(exchange)
    assert line.count(b"\n") == 1
    assert from_line(line) == exchange


@given(st.data())
def test_a_line_cut_anywhere_or_of_other_content_is_refused(data: st.DataObject) -> None:
    line = to_line(data.draw(st.sampled_from([SAID, DRAWN])))
    cut = data.draw(st.integers(0, len(line) - 2))
    with pytest.raises(InvalidInput, match="replay buffer"):
        from_line(line[:cut])
    with pytest.raises(InvalidInput):
        from_line(data.draw(st.binary(max_size=40)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt": [{"what": 1}]},
        {"form": [{"name": "way"}]},
        {"form": [{"segments": "view"}]},
        {"form": 7},
        {"seed": "x"},
        {"prompt": None},
    ],
)
def test_a_request_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    whole = msgspec.json.decode(to_line(SAID))
    whole["request"].update(wrong)
    with pytest.raises(InvalidInput):
        from_line(msgspec.json.encode(whole))


def test_paths_of_no_or_of_different_lengths_are_refused() -> None:
    for bins in ((), ((),), ((1,), (1, 2))):
        with pytest.raises(InvalidInput):
            from_line(to_line(msgspec.structs.replace(DRAWN, bins=bins)))


def test_the_oldest_are_dropped_and_the_bound_holds(tmp_path: Path) -> None:
    bound = 20 * len(to_line(numbered(1000)))
    writer = ReplayBufferFile(tmp_path / "buffer", bound)
    for number in range(1000, 1100):
        assert writer.add(numbered(number))
        assert sum(file.stat().st_size for file in (tmp_path / "buffer").iterdir()) <= bound
    writer.close()
    kept = numbers(tmp_path / "buffer")
    assert kept == list(range(kept[0], 1100))
    assert 10 <= len(kept) <= 20


def test_a_line_that_a_crash_cut_short_is_skipped_and_what_comes_after_is_read(tmp_path: Path) -> None:
    writer = ReplayBufferFile(tmp_path)
    writer.add(numbered(1))
    writer.close()
    with (tmp_path / CURRENT_FILE).open("ab") as file:
        file.write(to_line(numbered(2))[:-40])
    assert numbers(tmp_path) == [1]
    writer = ReplayBufferFile(tmp_path)
    writer.add(numbered(3))
    writer.close()
    assert numbers(tmp_path) == [1, 3]
    assert read_replay_buffer(tmp_path)[1] == 1


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    for number in range(6):
        writer = ReplayBufferFile(tmp_path, 6 * len(to_line(numbered(0))))
        writer.add(numbered(number))
        writer.close()
    assert numbers(tmp_path) == list(range(6))
    assert (tmp_path / PREVIOUS_FILE).is_file()


def test_a_disk_that_fails_loses_the_line_and_says_so_but_never_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = ReplayBufferFile(tmp_path)
    monkeypatch.setattr(os, "write", full)
    assert not writer.add(SAID)
    assert not writer.add(SAID)
    assert writer.num_lost == 2
    assert "No space left" in writer.last_error


def test_folders_that_cannot_be_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DependencyUnavailable, match=r"cannot be written: .*; name another folder"):
        ReplayBufferFile(tmp_path / "file" / "buffer")
    with pytest.raises(InvalidInput, match="holds no replay buffer"):
        read_replay_buffer(tmp_path)


def test_a_fifth_of_the_news_is_held_back_and_questions_on_the_same_news_go_together() -> None:
    keys = [news_key([*range(number, number + 20), 7], 20) for number in range(5_000)]
    share = sum(map(is_holdout, keys)) / len(keys)
    assert abs(share - 0.2) < 0.03  # 5 standard errors
    assert news_key([*range(20), 1, 2], 20) == news_key([*range(20), 3], 20)
    assert news_key([1, 2, 3], 2) != news_key([1, 2, 4], 2)  # a beginning that everyone shares
