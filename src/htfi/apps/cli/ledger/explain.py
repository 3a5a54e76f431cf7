"""`htfi ledger explain`: the forecast without each item of news, and which words carried the view."""

from pathlib import Path

import click
import msgspec
from msgspec import UNSET

from htfi.apps.cli.ledger.options import FOLDER, TARGET, reading_options
from htfi.domain.content_marking import FIELD, content_marking
from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.library.ledgers import decision_of, find_entry
from htfi.narrative.text import clean, quote
from htfi.pipeline.audit.attribution import ItemEffect
from htfi.wiring.ledger import open_ledger_readonly

_STATES = {
    True: "words' weights and digests of states: computed again to the bit",
    False: "words' weights and digests of states: not those that were recorded",
    None: "words' weights and digests of states: not recorded (narrative.trace was off)",
}
_NOT_READ = "words' weights and digests of states: none, as no model's reading is behind this decision"
_MAX_WORDS = 3  # named of each headline


@click.command("explain", short_help="The forecast without each item of news.")
@FOLDER
@click.argument("which", metavar="N|ID")
@click.option("--trace", is_flag=True, help="Also the words that carried the view, and the model's states.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@TARGET
@reading_options
def explain_command(folder: Path, which: str, trace: bool, as_json: bool, target: Path | None) -> None:
    """Explain one decision, given by number or id, from inside: for each item of news, the forecast without it; and
    which scheduled events widened or narrowed the next bar's band, by how much, as the decision recorded it.

    The model reads the other items again with the recorded seed, and the view is weighed as it was. With --trace each
    word of the headlines is left out in turn: its weight is how much likelier it made the recorded answer. Weights, and
    digests of attention and last hidden states, that narrative.trace recorded are compared with it.

    Exit status 1 where these differ.

    \b
    Examples:
      htfi ledger explain DIR SPX/1d@2008-10-10T20:15:00Z
      htfi ledger explain DIR 12 --trace
    """
    from htfi.wiring.explanation import explain_forecast

    log = open_ledger_readonly(folder)
    try:
        index, entry = find_entry(log, which)
        decision = decision_of(index, entry)
        found = explain_forecast(folder, log, index, decision, target, trace=trace)
    finally:
        log.close()
    if as_json:
        states = {"has_same_states": found.has_same_states} if trace else {}
        body = {
            **states,
            "id": decision.id,
            "quantiles": decision.forecast.quantiles,
            "known_events": None if decision.known_events is UNSET else decision.known_events,
            "items": found.effects,
            FIELD: content_marking(),
        }
        click.echo(msgspec.json.format(msgspec.json.encode(body), indent=2))
        return
    from htfi.apps.display.known_events import known_events_words
    from htfi.apps.display.tables import print_line

    if words := known_events_words(decision):
        print_line(f"{decision.id}: {words}")
    for line in effect_lines(decision, found.effects):
        print_line(line)
    if trace:
        print_line(_STATES[found.has_same_states] if found.was_read else _NOT_READ)
    if found.has_same_states is False:
        raise IntegrityError(f"{decision.id}: the model's states are not those that were recorded")


def effect_lines(decision: Decision, effects: list[ItemEffect]) -> list[str]:
    """The effects in lines, the largest change of the median or of the 90% band first."""
    if not effects:
        return [f"{decision.id}: no news was considered, so none changed the forecast"]
    ranked = sorted(effects, key=lambda one: -max(map(abs, _changes(decision, one))))
    horizon = decision.forecast.horizons[0]
    lines = [f"{decision.id}: its forecast for horizon {horizon} without each item of news"]
    for one in ranked:
        median, width = _changes(decision, one)
        lines.append(f"{clean(one.id, 80)}: median {1e4 * median:+.1f} bp, 90% band {1e4 * width:+.1f} bp")
        if one.headline:
            lines.append(f"  {quote(clean(one.headline, 160))}")
        strongest = sorted(one.words, key=lambda word: -word.nats)[:_MAX_WORDS]
        carried = [
            f"{clean(one.headline[word.begin : word.end], 40)} ({word.nats:+.2f} nats)"
            for word in strongest
            if word.nats > 0.0
        ]
        if carried:
            lines.append(f"  carried by: {', '.join(carried)}")
    return lines


def _changes(decision: Decision, one: ItemEffect) -> tuple[float, float]:
    """How the median and the width of the 90% band at the first horizon change without the item: log returns."""
    levels = decision.forecast.levels
    if 0.5 not in levels or not {0.05, 0.95} <= set(levels):
        raise InvalidInput(f"{decision.id}: its forecast has no median or no 90% band to compare")
    before, after = decision.forecast.quantiles[0], one.quantiles_without[0]
    low, middle, high = (levels.index(level) for level in (0.05, 0.5, 0.95))
    return after[middle] - before[middle], (after[high] - after[low]) - (before[high] - before[low])
