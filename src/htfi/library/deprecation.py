"""`deprecated`: a public name that still works, and says since when, until when, and what to use instead."""

import functools
import warnings
from collections.abc import Callable
from datetime import date
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def deprecated(
    name: str, *, since: str, until: date, instead: str
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Each call of the function warns (`DeprecationWarning`, at the caller's line) and goes on.

    `name` is the public name, `since` the version that deprecates it, `until` the day before which no release removes
    it, `instead` what to use. An old name is a function of its own that calls the new one (docs/promise.md).
    """
    words = (
        f"{name} is deprecated since {since} and may be removed from {until.isoformat()} on: use {instead}"
    )

    def wrap(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def warned(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            warnings.warn(words, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warned

    return wrap
