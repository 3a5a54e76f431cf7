"""Names of readers as a person reads them, from the versions that a record holds."""

from collections.abc import Sequence

from htfi.narrative.merging import READER_SEPARATOR
from htfi.narrative.text import clean

HANDOVER = ", then "  # where one model went on with what another began
MAX_READER_CHARS = 40
_MAX_FULL_NAME_CHARS = 200


def reader_name(reader: str) -> str:
    """Who read, without digests."""
    return READER_SEPARATOR.join(
        HANDOVER.join(
            name
            for model in one.split(HANDOVER)
            if (name := clean(model.partition("@")[0], MAX_READER_CHARS))
        )
        for one in reader.split(READER_SEPARATOR)
    )


def reader_names(readers: Sequence[str]) -> dict[str, str]:
    """A name for each reader, without digests; with them where two would have the same."""
    short = {reader: reader_name(reader) or "a model" for reader in readers}
    shared = {name for name in short.values() if sum(other == name for other in short.values()) > 1}
    return {
        reader: clean(reader, _MAX_FULL_NAME_CHARS) if name in shared else name
        for reader, name in short.items()
    }
