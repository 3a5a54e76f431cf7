"""Builds the news desk of a run: sanitiser, encoder with its heads, linker, suspicion. The engine asks for it."""

from htfi.narrative.desk import Desk, forget_nothing
from htfi.narrative.encoding.linking import Linker
from htfi.narrative.encoding.scorer import Scorer
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.secure import Secure
from htfi.wiring.caching import OpenCache
from htfi.wiring.encoder import open_encoder
from htfi.wiring.heads import open_heads
from htfi.wiring.settings import Settings


def open_desk(settings: Settings, cache: OpenCache | None = None, *, has_frontier: bool = False) -> Desk:
    """A desk without history; `has_frontier` where a frontier model reads in depth.

    Its encoder asks `cache` first, and the desk tells it what to forget.

    Raises: InvalidInput, IntegrityError, where the encoder that is configured is not what it should be.
    """
    encoder = open_encoder(settings.encoding)
    heads = open_heads() if encoder is not None else None
    cached = None if cache is None or encoder is None else cache.encoding(encoder, heads, settings.narrative)
    scorer = Scorer(settings.encoding, cached or encoder, cached.heads if cached else heads, Linker({}))
    return Desk(
        settings.narrative,
        settings.routing,
        Sanitiser(settings.sanitiser),
        scorer if cache is None else cache.scoring(scorer, cached),
        Secure(settings.secure),
        has_frontier=has_frontier,
        forget=forget_nothing if cache is None else cache.tiers.forget,
    )
