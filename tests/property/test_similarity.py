"""The likeness of one text to several at once is its likeness to each."""

from hypothesis import given
from hypothesis import strategies as st

from htfi.narrative.sanitising.duplicates import jaccard_estimate, jaccard_estimates, minhash_signature

TEXTS = st.lists(st.sampled_from(["rates", "rise", "fall", "bank", "cut", "profit"]), max_size=6)


@given(TEXTS, st.lists(TEXTS, max_size=6))
def test_several_likenesses_are_those_one_by_one(text: list[str], others: list[list[str]]) -> None:
    one, signed = minhash_signature(text), [minhash_signature(other) for other in others]
    assert jaccard_estimates(one, signed) == [jaccard_estimate(one, other) for other in signed]


def test_a_text_is_like_itself_and_unlike_one_without_words() -> None:
    one = minhash_signature(["rates", "rise"])
    assert jaccard_estimates(one, [one, b""]) == [1.0, 0.0]
    assert jaccard_estimates(b"", [one, b""]) == [0.0, 0.0]
