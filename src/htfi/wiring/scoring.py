"""Composes the scorer of news: encoder, the heads that stand on it, linker. The desk and the bench ask for it."""

from collections.abc import Iterable, Mapping

from htfi import models
from htfi.narrative.encoding.config import EncodingConfig
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.encoding.linking import Linker
from htfi.narrative.encoding.scorer import Scorer
from htfi.narrative.ports import TextEncoder
from htfi.wiring.encoder import open_encoder
from htfi.wiring.heads import open_heads


def open_scorer(config: EncodingConfig, names: Mapping[str, Iterable[str]] | None = None) -> Scorer:
    """A scorer that has read nothing yet; `names` are what the run's symbols are called.

    Raises: IntegrityError, InvalidInput, where the encoder or the heads are not what they should be.
    """
    encoder = open_encoder(config)
    return Scorer(config, encoder, heads_for(encoder), Linker(names or {}))


def heads_for(encoder: TextEncoder | None) -> Heads | None:
    """The shipped heads, where they stand on this encoder; None for another, whose points they cannot read.

    Raises: IntegrityError, InvalidInput.
    """
    if encoder is None or models.HEADS not in models.DIGESTS:
        return None
    heads = open_heads()
    return heads if _weights(heads.encoder) == _weights(encoder.version) else None


def _weights(version: str) -> str:
    """Name and digest alone: heads read what another precision of the same weights says."""
    return version.partition(":")[0]
