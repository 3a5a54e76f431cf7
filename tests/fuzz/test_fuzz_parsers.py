"""No bytes crash a parser of feeds, nor make it take much time or memory."""

import importlib.util
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parser_targets import SEEDS, TARGETS, WORDS

from examples import examples
from growth import assert_in_proportion

_EDITS = st.lists(
    st.tuples(
        st.integers(0, 1 << 16), st.integers(0, 64), st.one_of(st.sampled_from(WORDS), st.binary(max_size=8))
    ),
    max_size=8,
)


def edited(seed: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """The seed with pieces taken out and others put in."""
    for at, num_bytes, put in edits:
        at %= len(seed) + 1
        seed = seed[:at] + put + seed[at + num_bytes :]
    return seed


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_bytes_crash_a_parser(name: str, data: st.DataObject) -> None:
    document = data.draw(
        st.one_of(
            st.builds(edited, st.sampled_from(SEEDS[name]), _EDITS),
            st.binary(max_size=200),
            st.lists(st.sampled_from(WORDS)).map(b"".join),
        )
    )
    TARGETS[name](document)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    "word", [b"<a>", b"<item><title>", b'"', b"[", b"{", b"&", b"\n", b"a,", b"<!--", b"9", b"*a"]
)
def test_one_thing_repeated_costs_time_and_memory_in_proportion(name: str, word: bytes) -> None:
    document = SEEDS[name][0][:200] + word * (60_000 // len(word))
    assert_in_proportion(lambda num: TARGETS[name](document[:num]), 6_000, 60_000)
    tracemalloc.start()
    TARGETS[name](document)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 300 * len(document)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("name", TARGETS)
def test_coverage_guided_fuzzing_finds_nothing(name: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(Path(__file__).with_name("fuzz_parsers.py")),
        name,
        "-max_total_time=10",
        "-seed=7",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
