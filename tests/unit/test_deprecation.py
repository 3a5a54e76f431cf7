"""A deprecated name works, and warns at the line that calls it."""

import inspect
import warnings
from datetime import date

import pytest

from htfi.library.deprecation import deprecated


@deprecated("htfi.grasp", since="0.3.0", until=date(2027, 6, 1), instead="htfi.read")
def grasp(text: str, *, on: str = "") -> tuple[str, str]:
    """What a text says."""
    return text, on


def test_a_deprecated_function_gives_what_it_gave_and_says_what_to_use_until_when():
    with pytest.warns(DeprecationWarning, match="since") as shown:
        assert grasp("a", on="b") == ("a", "b")
    (one,) = shown
    assert str(one.message) == (
        "htfi.grasp is deprecated since 0.3.0 and may be removed from 2027-06-01 on: use htfi.read"
    )
    assert one.filename == __file__


def test_it_keeps_its_name_words_and_signature():
    assert (grasp.__name__, grasp.__doc__) == ("grasp", "What a text says.")
    assert list(inspect.signature(grasp).parameters) == ["text", "on"]


def test_its_definition_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapped = deprecated("htfi.a", since="1", until=date(2030, 1, 1), instead="htfi.b")(len)
    with pytest.warns(DeprecationWarning, match=r"htfi\.a is deprecated since 1"):
        assert wrapped([1, 2]) == 2
