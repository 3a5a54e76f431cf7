"""Counts have their noun in the right number."""

from htfi.domain.counts import counted


def test_one_is_singular_and_all_else_is_plural():
    assert counted(0, "view") == "0 views"
    assert counted(1, "view") == "1 view"
    assert counted(2_124, "view") == "2,124 views"


def test_an_irregular_plural_is_given():
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(2_124, "entry", "entries") == "2,124 entries"
