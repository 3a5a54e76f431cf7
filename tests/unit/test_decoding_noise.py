"""The shared noise: the same bits anywhere, fair to stated false-alarm rates, and what it chooses follows softmax.

Every seed is fixed, so a pass is a pass for good; the rates say how likely a fair generator would fail once.
"""

import math

import numpy as np
import pytest

from gumbel_noise import gumbel
from htfi.decoding.noise import (
    gumbel_bounds,
    gumbel_from_hashes,
    noise_hashes,
    noise_key,
    noise_keys,
    token_counters,
)
from htfi.decoding.sampling import AllowedTokens, SamplingParams, check_sampling_params, sample_tokens
from htfi.domain import portable_math as exact
from htfi.domain.errors import InvalidInput

PLACES = np.arange(200)
KNOWN = [
    ["0x1.575c9d760c1dbp+0", "-0x1.056daa4ac6702p+0", "0x1.a4083ae94df0cp-2"],
    ["-0x1.5343134945f6fp-7", "-0x1.1176ac8750c8ep-4", "0x1.ffcbb7ee69bd6p-1"],
]


def table(seed: int = 1, stream: int = 0, num_tokens: int = 500) -> np.ndarray:
    return gumbel(noise_keys(seed, np.full_like(PLACES, stream), PLACES), np.arange(num_tokens))  # [200, C]


def test_noise_is_known_to_the_last_bit():
    noise = gumbel(noise_keys(2024, np.array([0, 7]), np.array([0, 31])), np.array([0, 2559, 151_935]))
    assert [[x.hex() for x in row] for row in noise.tolist()] == KNOWN


def test_one_place_alone_has_the_key_it_has_among_many():
    streams, positions = np.array([0, 1, 0, 10_000]), np.array([0, 0, 1, 2**31])
    for seed in (0, 1, -1, 2**63, 2**64 + 1, 2**80):
        many = noise_keys(seed, streams, positions).tolist()
        assert many == [
            noise_key(seed, s, p) for s, p in zip(streams.tolist(), positions.tolist(), strict=True)
        ]
    assert noise_key(5, 0, 0) == noise_key(5 + 2**64, 0, 0)
    assert len({noise_key(s, t, p) for s in range(30) for t in range(30) for p in range(30)}) == 27_000


def test_the_logarithm_is_right_within_two_units_in_the_last_place():
    rng = np.random.Generator(np.random.PCG64(3))
    x = np.concatenate(
        [rng.random(20_000), 1.0 - rng.random(2000) * 1e-9, np.exp(rng.uniform(-40, 40, 5000))]
    )
    true = np.array([math.log(v) for v in x])
    assert np.all(
        np.abs(exact.log(x) - true) <= 2 * np.spacing(np.abs(true)) + 2.3e-16 * (np.abs(x - 1) < 0.5)
    )


def test_noise_is_gumbel_by_kolmogorov_and_smirnov():
    """False-alarm rate 1e-6 (asymptotic: D √n < 2.69)."""
    values = np.sort(table().ravel())
    law = np.exp(-np.exp(-values))
    n = len(values)
    distance = max(np.max(np.arange(1, n + 1) / n - law), np.max(law - np.arange(n) / n))
    assert distance * math.sqrt(n) < 2.69


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (table(1), table(2)),  # neighbouring seeds
        (table(1, 0), table(1, 1)),  # neighbouring streams
        (table()[:-1], table()[1:]),  # neighbouring positions
        (table()[:, :-1], table()[:, 1:]),  # neighbouring tokens
        (table(1, 1)[:-1], table(1, 0)[1:]),  # the next position of the stream before
        (table(1, 0, 200), table(1, 0, 200).T),  # position and token exchanged
        (table(1, 5), table(5, 1)),  # seed and stream exchanged
        (table()[:, :250], table()[:, 250:]),
    ],
)
def test_neighbours_are_independent(one: np.ndarray, other: np.ndarray):
    """Chi-square of an 8 × 8 table of joint eighths, 63 degrees of freedom; false-alarm rate 1e-6 (131.4)."""
    edges = -np.log(-np.log(np.arange(1, 8) / 8))
    off = ~np.eye(*one.shape, dtype=bool)  # a transposed table equals itself there
    cells = np.searchsorted(edges, one[off]) * 8 + np.searchsorted(edges, other[off])
    counts = np.bincount(cells, minlength=64)
    expected = counts.sum() / 64
    assert np.sum((counts - expected) ** 2 / expected) < 131.4


def test_every_bit_of_the_hash_is_fair():
    """52 bits, 100,000 draws: each within 5.5 standard errors; false-alarm rate 2e-6 over all."""
    bits = noise_hashes(noise_keys(9, np.zeros_like(PLACES), PLACES), token_counters(np.arange(500))).ravel()
    for place in range(52):
        share = np.mean((bits >> np.uint64(place)) & np.uint64(1))
        assert abs(share - 0.5) < 5.5 * 0.5 / math.sqrt(len(bits))


def test_bounds_hold_the_noise():
    row_keys = noise_keys(4, np.zeros_like(PLACES), PLACES)
    ends = np.concatenate(
        [np.arange(300), 2 ** np.arange(53) - 1, 2 ** np.arange(52), 2**52 - 1 - np.arange(300)]
    )
    bits = np.append(noise_hashes(row_keys, token_counters(np.arange(500))).ravel(), ends.astype(np.uint64))
    low, high = gumbel_bounds(bits)
    noise = gumbel_from_hashes(bits)
    assert np.max((high - low)[noise > 1.0]) < 0.02
    assert np.all(low <= noise)
    assert np.all(noise <= high)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_what_is_chosen_follows_softmax(temperature: float):
    """Chi-square over 8 admitted tokens of 20, 7 degrees of freedom, 50,000 draws; false-alarm rate 1e-6 (41.5)."""
    rng = np.random.Generator(np.random.PCG64(5))
    logits = rng.standard_normal(20).astype(np.float32) * 2
    ids = np.array([1, 2, 3, 7, 11, 12, 18, 19])
    places = np.arange(50_000)
    rows = np.broadcast_to(logits, (len(places), 20))
    drawn = sample_tokens(
        rows, AllowedTokens.of(ids), SamplingParams(temperature), noise_keys(6, np.zeros_like(places), places)
    )
    law = np.exp(logits[ids].astype(float) / temperature)
    expected = law / law.sum() * len(places)
    counts = np.array([np.count_nonzero(drawn == token) for token in ids])
    assert counts.sum() == len(places)
    assert np.sum((counts - expected) ** 2 / expected) < 41.5


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0, 1e6])
def test_the_screened_choice_is_the_argmax_over_all(scale: float):
    rng = np.random.Generator(np.random.PCG64(7))
    logits = (rng.standard_normal((200, 300)) * scale).astype(np.float32)
    ids = np.flatnonzero(rng.random(300) < 0.7)
    row_keys = noise_keys(8, np.zeros_like(PLACES), PLACES)
    for temperature in (0.3, 1.0):
        full = logits[:, ids].astype(np.float64) / temperature + gumbel(row_keys, ids)
        assert np.array_equal(
            sample_tokens(logits, AllowedTokens.of(ids), SamplingParams(temperature), row_keys),
            ids[full.argmax(axis=1)],
        )


def test_equal_logits_at_temperature_zero_go_to_the_lowest_admitted_id():
    logits = np.array([[9.0, 1.0, 3.0, 3.0, 2.0]], np.float32)
    assert sample_tokens(
        logits,
        AllowedTokens.of(np.array([1, 2, 3, 4])),
        SamplingParams(),
        noise_keys(0, np.array([0]), np.array([0])),
    ) == [2]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_logit_that_is_no_number_gives_no_token_and_leaves_other_rows(temperature: float):
    logits = np.zeros((3, 6), np.float32)
    logits[1, 4] = np.nan
    logits[:, 2] = 50.0
    row_keys = noise_keys(0, np.arange(3), np.zeros(3, np.int64))
    assert sample_tokens(
        logits, AllowedTokens.of(np.arange(6)), SamplingParams(temperature), row_keys
    ).tolist() == [2, -1, 2]


def test_a_row_without_numbers_does_not_hide_a_close_race_in_another():
    """Flat logits make races that the table cannot decide; one row NaN and one such race count as two candidates."""
    ids = np.arange(400)
    logits = np.zeros((2, 400), np.float32)
    logits[0] = np.nan
    for place in range(100):
        row_keys = noise_keys(3, np.array([0, 1]), np.array([place, place]))
        best = int(np.argmax(gumbel(row_keys[1:], ids)))
        assert sample_tokens(logits, AllowedTokens.of(ids), SamplingParams(1.0), row_keys).tolist() == [
            -1,
            best,
        ]


@pytest.mark.parametrize(("top_k", "top_p"), [(1, 1.0), (3, 1.0), (0, 0.6), (5, 0.9), (0, 1e-9), (200, 1.0)])
def test_top_k_and_top_p_keep_the_likeliest_and_the_noise_decides_among_them(top_k: int, top_p: float):
    rng = np.random.Generator(np.random.PCG64(9))
    logits = (rng.standard_normal((64, 40)) * 2).astype(np.float32)
    ids = np.flatnonzero(rng.random(40) < 0.8)
    row_keys = noise_keys(4, np.zeros(64, np.int64), np.arange(64))
    sampling = SamplingParams(0.7, top_k, top_p)
    drawn = sample_tokens(logits, AllowedTokens.of(ids), sampling, row_keys)
    noise = gumbel(row_keys, ids)
    for row in range(64):
        scores = logits[row, ids].astype(np.float64) / 0.7
        order = sorted(range(len(ids)), key=lambda at: (-scores[at], at))
        order = order[: top_k or len(order)]
        weights = np.exp(scores[order] - scores[order[0]])
        reached = np.cumsum(weights) / weights.sum()
        stays = order[: int(np.searchsorted(reached, top_p)) + 1]
        assert drawn[row] == ids[max(stays, key=lambda at: scores[at] + noise[row, at])]


def test_truncation_leaves_a_row_that_is_no_number_without_a_token():
    logits = np.zeros((2, 6), np.float32)
    logits[1, 4] = np.nan
    logits[0, 2] = 50.0
    row_keys = noise_keys(0, np.arange(2), np.zeros(2, np.int64))
    assert sample_tokens(
        logits, AllowedTokens.of(np.arange(6)), SamplingParams(1.0, 3, 0.9), row_keys
    ).tolist() == [2, -1]


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(-1.0), SamplingParams(1.0, -1), SamplingParams(1.0, 0, 0.0), SamplingParams(1.0, 0, 1.5)],
)
def test_a_law_out_of_range_is_refused(sampling: SamplingParams):
    with pytest.raises(InvalidInput, match=r"temperature|top_k|top_p"):
        check_sampling_params(sampling)
