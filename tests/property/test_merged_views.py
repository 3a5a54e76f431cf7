"""Whatever readings come together: numbers stay in bounds, follow from the parts, and lie between what was said."""

import math

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from htfi.domain.news_view import CalibratedEffect, NewsView, ViewPart
from htfi.narrative.merging import merge_views, part_weight, rederive, to_part, unmerged

NOW = 1_000_000_000_000
share = st.floats(0.0, 1.0)
parts = st.builds(
    ViewPart,
    reader=st.sampled_from(["encoder", "draft", "target"]),
    direction=st.sampled_from([-1.0, 0.0, 1.0]),
    size_sigmas=st.floats(0.0, 7.0),
    volatility_multiplier=st.floats(0.5, 4.0),
    confidence=share,
    cited=st.just(("n1",)),
    as_of_ns=st.integers(0, 2 * NOW),
    half_life_ns=st.integers(1, NOW),
    trust=share,
    cause=st.sampled_from(["", "legal"]),
    calibrated_effects=st.sampled_from([(), (CalibratedEffect(1, 0.2, 1.1), CalibratedEffect(5, -0.3, 0.9))]),
)


def read_from(part: ViewPart) -> NewsView:
    return NewsView(
        direction=part.direction,
        size_sigmas=part.size_sigmas,
        volatility_multiplier=part.volatility_multiplier,
        confidence=part.confidence,
        cited=part.cited,
        as_of_ns=part.as_of_ns,
        half_life_ns=part.half_life_ns,
        cause=part.cause,
        words="so it is",
        reader=part.reader,
        calibrated_effects=part.calibrated_effects,
    )


@given(parts, share, st.lists(parts, max_size=6))
def test_a_merged_view_follows_from_its_parts_and_gives_back_what_was_read(
    first: ViewPart, trust: float, noted: list[ViewPart]
) -> None:
    read = read_from(first)
    merged = merge_views(read, trust, noted, NOW)
    assert merged is not None
    assert rederive(merged) == merged
    assert unmerged(merged) == read
    for value in (merged.size_sigmas, merged.volatility_multiplier, merged.confidence):
        assert math.isfinite(value)
    assert 0.0 <= merged.confidence <= 1.0


@given(parts, share, st.lists(parts, min_size=1, max_size=6))
def test_the_expected_move_is_the_sum_of_what_each_part_is_still_worth(
    first: ViewPart, trust: float, noted: list[ViewPart]
) -> None:
    merged = merge_views(read_from(first), trust, noted, NOW)
    assert merged is not None
    told = [to_part(read_from(first), trust), *noted]
    net = sum(part_weight(part, NOW) * part.direction * part.size_sigmas for part in told)
    move = merged.direction * merged.size_sigmas * merged.confidence
    assert math.isclose(move, net, rel_tol=1e-4, abs_tol=1e-3)


@given(st.lists(parts, min_size=2, max_size=6))
def test_less_trust_in_every_part_never_moves_further(noted: list[ViewPart]) -> None:
    whole = merge_views(None, 1.0, noted, NOW)
    less = merge_views(None, 1.0, [replace(part, trust=0.5 * part.trust) for part in noted], NOW)
    assert whole is not None
    assert less is not None
    assert less.size_sigmas * less.confidence <= whole.size_sigmas * whole.confidence + 1e-3
