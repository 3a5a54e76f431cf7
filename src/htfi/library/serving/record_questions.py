"""Questions on a run's record, and on news, that take long: answered by the worker, as Python's API answers them."""

from pathlib import Path
from typing import Any

import msgspec

from htfi.domain.errors import InvalidInput

MAX_TEXT_CHARS = 60_000
MAX_ASSETS = 32


class VerificationQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the ledger holds; with `recompute` also whether every decision follows from its record."""

    recompute: bool = False


class EffectsQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each item of news did to the forecast of an entry."""

    index: int


class HeadlineQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a text is understood to say, and what that means for the assets in `on`, which are called `names`."""

    text: str
    on: list[str] = msgspec.field(default_factory=list[str])
    names: list[str] = msgspec.field(default_factory=list[str])
    body: str = ""
    source: str = ""


class VerificationAnswer(msgspec.Struct, frozen=True):
    """What was verified; `problem` where the record does not hold."""

    holds: bool
    problem: str
    num_entries: int
    num_deleted: int
    num_checkpoints: int
    root: str
    log_key: str
    files: list[str]


def answer_verification(folder: Path, body: VerificationQuestion) -> VerificationAnswer:
    """Raises: InvalidInput where there is no ledger."""
    import htfi
    from htfi.domain.errors import IntegrityError

    try:
        with htfi.open_ledger(folder) as ledger:
            found = ledger.verify(recompute=body.recompute)
    except IntegrityError as error:
        return VerificationAnswer(False, str(error), 0, 0, 0, "", "", [])
    return VerificationAnswer(
        True,
        "",
        found.num_entries,
        found.num_deleted,
        found.num_checkpoints,
        found.root,
        found.key,
        list(found.files),
    )


def answer_effects(folder: Path, body: EffectsQuestion) -> dict[str, Any]:
    """What `htfi ledger explain --json` prints, with the forecast's levels and horizons. Raises: InvalidInput."""
    from contextlib import closing

    from htfi.library.ledgers import decision_of
    from htfi.wiring.explanation import explain_forecast
    from htfi.wiring.ledger import open_ledger_readonly

    with closing(open_ledger_readonly(folder)) as log:
        decision = decision_of(body.index, log.entry(body.index))
        found = explain_forecast(folder, log, body.index, decision, trace=False)
    return {
        "horizons": decision.forecast.horizons,
        "levels": decision.forecast.levels,
        "quantiles": decision.forecast.quantiles,
        "items": found.effects,
    }


def answer_headline(body: HeadlineQuestion) -> list[dict[str, Any]]:
    """A line of `htfi news --json` for each asset, with its symbol. Raises: InvalidInput."""
    import htfi
    from htfi.library.news_lines import as_line

    if len(body.text) > MAX_TEXT_CHARS or len(body.body) > MAX_TEXT_CHARS:
        raise InvalidInput(f"a text of more than {MAX_TEXT_CHARS:,} characters: shorten it")
    if len(body.on) > MAX_ASSETS:
        raise InvalidInput(f"{len(body.on)} assets are more than {MAX_ASSETS}: ask about fewer at once")
    found = htfi.read(
        body.text, on=body.on, names=body.names, body=body.body, source=body.source, views=False
    )
    return [{"symbol": one.item.symbol, **as_line(one)} for one in found.understandings]
