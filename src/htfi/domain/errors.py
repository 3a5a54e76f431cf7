"""The one error tree. At the command line a person sees `str(error)` as a single line."""


class HtfiError(Exception):
    """All errors that this package raises on purpose. The message says what, where and what to do."""


class InvalidInput(HtfiError):
    """Data, settings or arguments from outside cannot be used as they are."""


class ShapeMismatch(InvalidInput):
    """Arrays do not have the shapes that the docstring states."""


class IntegrityError(HtfiError):
    """A record, digest, signature or proof does not hold. The order path stops."""


class DependencyUnavailable(HtfiError):
    """A disk, file, network peer or service cannot be used now."""


class LedgerUnavailable(DependencyUnavailable):
    """A decision could not be made durable, so it is not released either."""


class MissingExtra(HtfiError):
    """An optional library is needed: the message names the extra to install."""
