"""Says in one line that torch is missing. Wiring asks before it imports what needs torch."""

from importlib.util import find_spec

from htfi.domain.errors import MissingExtra


def require_torch(what: str) -> None:
    """Raises: MissingExtra, when torch cannot be imported; `what` begins the sentence."""
    try:
        found = find_spec("torch") is not None
    except ValueError:  # torch is barred from import
        found = False
    if not found:
        raise MissingExtra(f"{what} needs torch, an optional library: pip install 'htfi[train]'")
