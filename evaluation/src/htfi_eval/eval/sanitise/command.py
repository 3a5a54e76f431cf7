"""`htfi eval sanitise`: attacks on the news that the sanitiser detects and reverses, and its false positives."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from htfi.library.charts.specs import BarChart, Chart, DotChart, DotGroup
from htfi_eval.commands import ProgressLine, data_option, output_options
from htfi_eval.eval.sanitise import judging as sanitise_judging
from htfi_eval.eval.sanitise.data import load
from htfi_eval.eval.sanitise.judging import VerdictCounts
from htfi_eval.eval.sanitise.leverage import measure
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation

_MIN_RECALL, _MAX_FALSE_ALARM_RATE = 0.90, 0.01


def lead(honest: VerdictCounts, worst: VerdictCounts, metrics: Mapping[str, float | None]) -> str:
    return (
        f"At least {worst.caught:.1%} of every class of attack is stopped (worst: {worst.name}), and "
        f"{honest.caught:.2%} of {honest.num:,} honest agency items are stopped by mistake; disguised and hidden "
        "text is "
        f"restored exactly in {metrics['undone']:.2%}."
    )


def cards(honest: VerdictCounts, worst: VerdictCounts, metrics: Mapping[str, float | None]) -> list[Card]:
    undone, moved = metrics["undone"], metrics.get("attack_leverage")
    found = [
        Card(
            f"{worst.caught:.1%}", f"detected in the worst class: {worst.name}", worst.caught >= _MIN_RECALL
        ),
        Card(f"{metrics['detection_mean']:.1%}", "detected, mean of all classes"),
        Card(
            f"{honest.caught:.2%}",
            f"false alarms among {honest.num:,} headlines",
            honest.caught <= _MAX_FALSE_ALARM_RATE,
        ),
        Card(f"{undone:.2%}", "of disguised and hidden texts restored exactly", undone == 1.0),
    ]
    if moved is not None:
        found.append(
            Card(
                f"{moved:.1%}",
                "of an honest headline's effect: the most that a one-day attack moves",
                moved < 0.05,
            )
        )
    return found


def charts(
    attacks: Sequence[VerdictCounts], honest: VerdictCounts, others: Sequence[VerdictCounts]
) -> list[Chart]:
    parts = [(f"{tally.name}: {name}", part) for tally in attacks for name, part in tally.parts.items()]
    alarms = [honest, *(tally for tally in others if tally.origin == "honest")]
    rules = honest.rules.most_common(8)
    return [
        DotChart(
            "Attacks stopped, by class",
            "The line is the goal. Held: until a person approves it.",
            [tally.name for tally in attacks],
            [
                DotGroup("stopped", [tally.caught for tally in attacks]),
                DotGroup("held", [tally.num_held / max(tally.num, 1) for tally in attacks]),
            ],
            zero=_MIN_RECALL,
            unit="%",
        ),
        DotChart(
            "Attacks stopped, by kind",
            "Staged kinds keep the names of their data set.",
            [name for name, _ in parts],
            [
                DotGroup("stopped", [part.caught for _, part in parts]),
                DotGroup("restored", [part.undone for _, part in parts]),
            ],
            zero=_MIN_RECALL,
            unit="%",
        ),
        BarChart(
            "False alarms, by type of text",
            "The goal of 1% is for agency headlines. Posts urge people to buy: much of what is found "
            "there is indeed promotion.",
            [tally.name for tally in alarms],
            [tally.caught for tally in alarms],
            unit="%",
        ),
        BarChart(
            "False alarms among agency headlines, by rule",
            "Share of items stopped with a finding of this rule.",
            [rule for rule, _ in rules],
            [num / max(honest.num, 1) for _, num in rules],
            unit="%",
        ),
    ]


NUM_GENERATED = 300  # honest texts that each kind of attack is made from

_EPILOG = """\b
Examples:
  htfi eval sanitise                                     all headlines
  htfi eval sanitise --items 10000 --texts 100           a quick look
  htfi eval sanitise --no-leverage --html build/sanitise.html
"""


@click.command(
    "sanitise", short_help="Attacks on the news: detected, reversed, false positives.", epilog=_EPILOG
)
@data_option
@click.option(
    "--items", "num_items", type=click.IntRange(100), help="Number of honest headlines.  [default: all]"
)
@click.option(
    "--texts", "num_texts", default=NUM_GENERATED, show_default=True, type=click.IntRange(10),
    help="Honest texts that each kind of attack is made from.",
)  # fmt: skip
@click.option(
    "--leverage/--no-leverage", default=True, help="Also replay attacks on the forecasts of the sample."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the attacks.")
@output_options
def command(
    data: Path | None, num_items: int | None, num_texts: int, leverage: bool, seed: int,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Send attacks and honest items through the whole sanitiser and count its verdicts.

    An item is stopped when it is discounted, held, or recognised as a repeat. Staged injections are those of the half
    that was never inspected while rules were written; a classifier, not a person, labelled the staged pump messages.
    Generated attacks are made from the staged agency headlines. The sanitiser was trained on this project's own text
    only.
    """
    result = evaluate(data, num_items, num_texts, seed, leverage)
    write_outputs(result, json_file=json_file, html_file=html_file)


def evaluate(
    data: Path | None, num_items: int | None, num_texts: int, seed: int, leverage: bool
) -> Evaluation:
    """Raises: MissingExtra, DependencyUnavailable, InvalidInput."""
    staged = load(data, num_items)
    honest = sanitise_judging.false_alarms(staged.honest, ProgressLine("honest headlines"))
    attacks = sanitise_judging.staged_attacks(staged)
    attacks += sanitise_judging.generated_attacks(
        staged.honest, num_texts, seed, ProgressLine("generated attacks")
    )
    others = [sanitise_judging.other_texts(name, texts) for name, texts in staged.others.items()]
    beside = sanitise_judging.harmless_texts(staged)
    judged = [tally for tally in attacks if tally.origin != "training grammar"]
    worst = min(judged, key=lambda tally: tally.caught)
    metrics: dict[str, float | None] = {
        "detection": worst.caught,
        "detection_mean": sum(tally.caught for tally in judged) / len(judged),
        "false_alarms": honest.caught,
        "undone": min(tally.undone for tally in judged[2:4] if tally.undone is not None),
    }
    rows = sanitise_judging.rows_of([*attacks, honest, *others, *beside])
    notes = [
        f"detection is that of the worst class, {worst.name}; harmless texts and the grammar used in training are "
        "not counted",
        "a classifier, not a person, labelled the staged messages as pumps; injections: the half never inspected",
        "restored: the sanitised text equals the sanitised honest text; homoglyphs and hidden text must reach 100%",
    ]
    if leverage:
        moved = measure(seed=seed, progress=ProgressLine("leverage of attacks"))
        metrics |= moved.metrics
        rows += moved.rows
        notes += moved.notes
    return Evaluation(
        name="sanitise",
        title="What the sanitiser stops",
        lead=lead(honest, worst, metrics),
        metrics=metrics,
        cards=cards(honest, worst, metrics),
        charts=charts(attacks, honest, [*others, *beside]),
        rows=rows,
        notes=notes,
        seed=seed,
    )
