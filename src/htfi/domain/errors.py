"""The one error tree, and what raises MissingExtra before an optional library is imported.

At the command line a person sees `str(error)` as a single line.
"""

from importlib.util import find_spec


class HtfiError(Exception):
    """All errors that this package raises on purpose. The message says what, where and what to do.

    Examples:
        >>> import htfi
        >>> try:
        ...     htfi.read("")
        ... except htfi.HtfiError as error:
        ...     print(error)
        there is no text to read: give a headline
    """


class InvalidInput(HtfiError):
    """Data, settings or arguments from outside cannot be used as they are."""


class ShapeMismatch(InvalidInput):
    """Arrays do not have the shapes that the docstring states."""


class MissingZone(InvalidInput):
    """A time of day without a zone, where none is stated for it."""


class IntegrityError(HtfiError):
    """A record, digest, signature or proof does not hold. The order path stops."""


class UnreadableEntry(IntegrityError):
    """An entry of a ledger, as it was recorded, is no decision of this version."""

    def __init__(self, index: int, reason: Exception) -> None:
        super().__init__(f"entry {index} is not a decision of this version: {reason}")


class DependencyUnavailable(HtfiError):
    """A disk, file, network peer or service cannot be used now."""


class LedgerUnavailable(DependencyUnavailable):
    """A decision could not be made durable, so it is not released either."""


class AccessDenied(HtfiError):
    """Who asks may not do this. Nothing was done."""


class NotFound(HtfiError):
    """What somebody asks for by its name is not there."""


class ServiceBusy(HtfiError):
    """More is asked than a service answers at once."""


class TooLong(HtfiError):
    """An answer took longer than it may."""


class MissingExtra(HtfiError):
    """An optional library is needed: the message names the extra to install."""


def require_extra(what: str, extra: str, *modules: str) -> None:
    """Raises: MissingExtra, when a module of the extra cannot be imported; `what` begins the sentence."""
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise MissingExtra(f"{what} needs {' and '.join(missing)}: pip install 'htfi[{extra}]'")


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # its parent is missing, or it is barred from import
        return False
