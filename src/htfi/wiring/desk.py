"""Builds the news desk of a run: sanitiser, encoder with its heads, linker, suspicion. The engine asks for it."""

from htfi.narrative.desk import Desk
from htfi.narrative.encoding.linking import Linker
from htfi.narrative.encoding.scorer import Scorer
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.secure import Secure
from htfi.wiring.encoder import open_encoder
from htfi.wiring.settings import Settings


def open_desk(settings: Settings, *, has_frontier: bool = False) -> Desk:
    """A desk without history; `has_frontier` where a frontier model reads in depth.

    Raises: InvalidInput, IntegrityError, where the encoder that is configured is not what it should be.
    """
    encoder = open_encoder(settings.encoding)
    scorer = Scorer(settings.encoding, encoder, None, Linker({}))
    return Desk(
        settings.narrative,
        settings.routing,
        Sanitiser(settings.sanitiser),
        scorer,
        Secure(settings.secure),
        has_frontier=has_frontier,
    )
