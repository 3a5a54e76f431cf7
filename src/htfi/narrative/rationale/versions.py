"""The versions of the rationale's words: new decisions use `CURRENT`, recorded ones are verified with the version they
name.

Add a version by a module beside `version_7` and a line here, with a ledger of it under `tests/data/ledgers`.
"""

from collections.abc import Mapping

from htfi.domain.errors import InvalidInput
from htfi.narrative.rationale.phrasing import Phrasing
from htfi.narrative.rationale.version_4 import PhrasingV4
from htfi.narrative.rationale.version_5 import PhrasingV5
from htfi.narrative.rationale.version_6 import PhrasingV6
from htfi.narrative.rationale.version_7 import PhrasingV7

MODEL_KEY = "rationale"  # in `Decision.models`
CURRENT = PhrasingV7()
VERSION = CURRENT.version
PHRASINGS: Mapping[str, Phrasing] = {
    one.version: one for one in (PhrasingV4(), PhrasingV5(), PhrasingV6(), CURRENT)
}


def phrasing_of(models: Mapping[str, str]) -> Phrasing:
    """The words that a decision with these models was written with.

    Raises: InvalidInput where this program does not know the version.
    """
    version = models.get(MODEL_KEY, "")
    found = PHRASINGS.get(version)
    if found is None:
        raise InvalidInput(
            f"the rationale has version '{version[:40]}', this program knows {', '.join(PHRASINGS)}: update htfi"
        )
    return found
