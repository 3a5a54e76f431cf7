"""A pattern of names that shares their beginnings matches what the names one by one match, the longest first."""

import re

from hypothesis import given
from hypothesis import strategies as st

from htfi.narrative.patterns import one_of

NAMES = st.lists(st.text("ab .", min_size=1, max_size=5), min_size=1, max_size=8)


@given(NAMES, st.text("ab .", max_size=12), st.sampled_from(["", r"(?!\w)", "b"]))
def test_shared_beginnings_change_no_match(names: list[str], text: str, behind: str) -> None:
    longest_first = sorted(set(names), key=lambda name: (-len(name), name))
    plain = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))}){behind}")
    shared = re.compile(one_of(names) + behind)
    assert [one.span() for one in shared.finditer(text)] == [one.span() for one in plain.finditer(text)]


def test_what_names_begin_with_stands_once() -> None:
    assert one_of(["bank", "bank of a", "bear"]) == r"b(?:ank(?:\ of\ a)?|ear)"
