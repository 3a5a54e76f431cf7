"""Builds the news desk of a run: sanitiser, encoder with its heads, linker, suspicion. The engine asks for it."""

from functools import cache

from htfi.narrative.desk import Desk, forget_nothing
from htfi.narrative.encoding.linking import Linker
from htfi.narrative.encoding.scorer import Scorer
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.secure import Secure
from htfi.wiring.caching import OpenCache
from htfi.wiring.encoder import missing_line, open_encoder
from htfi.wiring.scoring import heads_for
from htfi.wiring.settings import Settings
from htfi.wiring.speculation import tell

_tell_once = cache(tell)


def open_desk(settings: Settings, context: OpenCache | None = None, *, has_frontier: bool = False) -> Desk:
    """A desk without history; `has_frontier` where a frontier model reads in depth.

    Its encoder asks `context` first, and the desk tells it what to forget.

    Raises: InvalidInput, IntegrityError, where the encoder that is configured is not what it should be.
    """
    encoder = open_encoder(settings.encoding)
    heads = heads_for(encoder)
    if encoder is None and settings.encoding.model != "none":
        _tell_once(missing_line())
    cached = (
        None if context is None or encoder is None else context.encoding(encoder, heads, settings.narrative)
    )
    linker = Linker({symbol: [name] for symbol, name in settings.narrative.names.items()})
    scorer = Scorer(settings.encoding, cached or encoder, cached.heads if cached else heads, linker)
    return Desk(
        settings.narrative,
        settings.routing,
        Sanitiser(settings.sanitiser),
        scorer if context is None else context.scoring(scorer, cached),
        Secure(settings.secure),
        has_frontier=has_frontier,
        forget=forget_nothing if context is None else context.tiers.forget,
    )
