"""Says in one line that chronos-forecasting is missing, before anything imports it."""

from importlib.util import find_spec

from htfi.domain.errors import MissingExtra


def require_chronos() -> None:
    """Raises: MissingExtra, when chronos-forecasting or torch cannot be imported."""
    for library in ("chronos", "torch"):
        try:
            found = find_spec(library) is not None
        except ValueError:  # barred from import
            found = False
        if not found:
            raise MissingExtra(
                "forecasting.foundation needs chronos-forecasting, an optional library: pip install 'htfi[foundation]'"
            )
