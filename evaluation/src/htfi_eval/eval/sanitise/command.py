"""`htfi eval sanitise`: what the sanitiser finds of staged and generated attacks, what it undoes, and false alarms."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from htfi_eval.eval.charts.page import Evaluation

NUM_GENERATED = 300  # honest texts that each kind of attack is made from

_EPILOG = """\b
Examples:
  htfi eval sanitise                                     all staged headlines: some minutes
  htfi eval sanitise --items 10000 --texts 100           a quick look
  htfi eval sanitise --no-leverage --html build/sanitise.html
"""


@click.command("sanitise", short_help="Attacks on the news: found, undone, false alarms.", epilog=_EPILOG)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the staged data.")
@click.option(
    "--items", "num_items", type=click.IntRange(100), help="Honest headlines to look at.  [default: all]"
)
@click.option(
    "--texts", "num_texts", default=NUM_GENERATED, show_default=True, type=click.IntRange(10),
    help="Honest texts that each kind of attack is made from.",
)  # fmt: skip
@click.option("--leverage/--no-leverage", default=True, help="Replay attacks on the sample's forecasts.")
@click.option("--seed", default=0, show_default=True, help="Of the attacks.")
@click.option(
    "--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write a page to FILE."
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to FILE."
)
def command(
    data: Path | None, num_items: int | None, num_texts: int, leverage: bool, seed: int,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Send attacks and honest items through the whole sanitiser and count its verdicts.

    Caught is what does not pass: discounted, held back, or recognised as told before. Staged injections are of the
    half that nobody looked at while rules were written; which staged messages are pumps was said by a classifier,
    not by a person. Generated attacks are made from the staged agency headlines. The sanitiser learned from text of
    this project's own alone.
    """
    from htfi_eval.eval.charts.page import write_outputs

    told = evaluate(data, num_items, num_texts, seed, leverage)
    write_outputs(told, json_file=json_file, html_file=html_file)


def evaluate(
    data: Path | None, num_items: int | None, num_texts: int, seed: int, leverage: bool
) -> "Evaluation":
    """Raises: MissingExtra, DependencyUnavailable, InvalidInput."""
    from htfi_eval.eval.charts.page import Evaluation
    from htfi_eval.eval.progress import ProgressLine
    from htfi_eval.eval.sanitise import charts as sanitise_charts
    from htfi_eval.eval.sanitise import judging as sanitise_judging
    from htfi_eval.eval.sanitise.data import load

    staged = load(data, num_items)
    honest = sanitise_judging.false_alarms(staged.honest, ProgressLine("honest headlines"))
    attacks = sanitise_judging.staged_attacks(staged)
    attacks += sanitise_judging.generated_attacks(
        staged.honest, num_texts, seed, ProgressLine("generated attacks")
    )
    others = [sanitise_judging.other_texts(name, texts) for name, texts in staged.others.items()]
    beside = sanitise_judging.harmless_texts(staged)
    judged = [tally for tally in attacks if tally.origin != "own grammar"]
    worst = min(judged, key=lambda tally: tally.caught)
    metrics: dict[str, float | None] = {
        "detection": worst.caught,
        "detection_mean": sum(tally.caught for tally in judged) / len(judged),
        "false_alarms": honest.caught,
        "undone": min(tally.undone for tally in judged[2:4] if tally.undone is not None),
    }
    rows = sanitise_judging.rows_of([*attacks, honest, *others, *beside])
    notes = [
        f"detection is that of the worst class, {worst.name}; what stands beside and the own grammar are not counted",
        "which staged messages are pumps was said by a classifier, not by a person; injections: the half not looked at",
        "undone: the text after is to the letter what the honest text becomes; homoglyph and hidden text must be 100%",
    ]
    if leverage:
        from htfi_eval.eval.sanitise.leverage import measure

        moved = measure(seed=seed, tell=ProgressLine("leverage of attacks"))
        metrics |= moved.metrics
        rows += moved.rows
        notes += moved.notes
    return Evaluation(
        name="sanitise",
        title="What gets past the sanitiser",
        lead=sanitise_charts.lead(honest, worst, metrics),
        metrics=metrics,
        cards=sanitise_charts.cards(honest, worst, metrics),
        charts=sanitise_charts.charts(attacks, honest, [*others, *beside]),
        rows=rows,
        notes=notes,
        seed=seed,
    )
