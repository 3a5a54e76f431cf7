"""Novelty: what was read of the same symbols is less new, less so with age; the state goes on to the same numbers."""

import json

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.scorer import NoveltyIndex

HOUR = 3_600 * 10**9


def point(seed: int, size: int = 32) -> np.ndarray:
    drawn = np.random.Generator(np.random.PCG64(seed)).standard_normal(size).astype(np.float32)
    return drawn / np.sqrt((drawn * drawn).sum())


def test_the_same_again_is_not_new_and_grows_new_with_age() -> None:
    novelty = NoveltyIndex(32, 8, HOUR)
    assert novelty.measure(point(1), ["A"], 0) == 1000
    assert novelty.measure(point(1), ["A"], 0) == 0
    assert novelty.measure(point(1), ["A"], HOUR) == 500
    assert novelty.measure(point(1), ["A"], 100 * HOUR) == 1000


def test_only_items_of_the_same_symbols_count() -> None:
    novelty = NoveltyIndex(32, 8, HOUR)
    novelty.measure(point(1), ["A", "B"], 0)
    assert novelty.measure(point(1), ["C"], 0) == 1000
    assert novelty.measure(point(1), [], 0) == 1000  # of the whole market
    assert novelty.measure(point(1), ["Z", "B"], 0) == 0
    assert novelty.measure(point(1), [], 0) == 0


def test_what_is_pushed_out_of_the_ring_is_forgotten() -> None:
    novelty = NoveltyIndex(32, 3, HOUR)
    for seed in range(4):
        novelty.measure(point(seed), ["A"], 0)
    assert novelty.measure(point(3), ["A"], 0) == 0
    assert novelty.measure(point(0), ["A"], 0) > 300
    assert len(novelty.state()["symbols"]) == 3


@pytest.mark.parametrize("num_read", [0, 1, 5, 40])
def test_the_state_goes_on_to_the_same_numbers(num_read: int) -> None:
    first = NoveltyIndex(32, 16, HOUR)
    for seed in range(num_read):
        first.measure(point(seed % 11), [f"S{seed % 3}"], seed * HOUR // 7)
    again = NoveltyIndex(32, 16, HOUR)
    again.restore(json.loads(json.dumps(first.state())))
    assert again.state() == first.state()
    for seed in range(20):
        at = (num_read + seed) * HOUR // 7
        assert again.measure(point(seed), ["S1"], at) == first.measure(point(seed), ["S1"], at)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"points": "???", "read_ns": [], "symbols": []},
        {"points": "AAAA", "read_ns": [1], "symbols": [["A"]]},
        {"points": "", "read_ns": [1], "symbols": [["A"]]},
        {"points": "", "read_ns": ["x"], "symbols": [[]]},
    ],
)
def test_a_state_that_is_none_is_refused_in_one_line(state: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="novelty"):
        NoveltyIndex(32, 4, HOUR).restore(state)


def test_points_that_are_no_numbers_are_new_and_do_no_harm() -> None:
    novelty = NoveltyIndex(32, 4, HOUR)
    wild = np.full(32, np.nan, np.float32)
    assert novelty.measure(wild, ["A"], 0) == 1000
    assert novelty.measure(point(1), ["A"], 0) == 1000
    assert novelty.measure(point(1), ["A"], 0) == 0


@pytest.mark.parametrize("size", [32, 20])
def test_compiled_code_and_numpy_give_the_same_novelties(size: int) -> None:
    def read() -> tuple[list[int], dict[str, object]]:
        novelty = NoveltyIndex(size, 16, HOUR)
        found: list[int] = []
        for seed in range(60):
            drawn = point(seed % 13, size) * np.float32((seed % 5 + 1) / 3)
            if seed % 9 == 8:
                drawn[:4] = np.nan, np.inf, -np.inf, 1e30
            if seed == 30:
                drawn[:] = 0.0
            symbols = [f"S{seed % 3}", "T"][: seed % 4]
            found.append(novelty.measure(drawn, symbols, (seed - 3 * (seed % 7)) * HOUR // 5))
        return found, novelty.state()

    if compiled.novelty is None:
        pytest.skip("built without a C compiler")
    found = read()
    with pytest.MonkeyPatch().context() as missing:
        missing.setattr(compiled, "novelty", None)
        assert found == read()
    assert len(set(found[0])) > 10
