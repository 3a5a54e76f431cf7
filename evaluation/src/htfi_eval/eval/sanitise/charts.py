"""What the page of `htfi eval sanitise` draws, and its finding in words."""

from collections.abc import Mapping, Sequence

from htfi_eval.eval.charts.chart import BarChart, Chart, DotChart, DotGroup
from htfi_eval.eval.charts.page import Card
from htfi_eval.eval.sanitise.judging import VerdictCounts

_MIN_RECALL, _MAX_FALSE_ALARM_RATE = 0.90, 0.01


def lead(honest: VerdictCounts, worst: VerdictCounts, metrics: Mapping[str, float | None]) -> str:
    return (
        f"Of every class of attack at least {worst.caught:.1%} does not pass (worst: {worst.name}), while "
        f"{honest.caught:.2%} of {honest.num:,} honest agency items are held against; disguised and hidden text is "
        f"undone to the letter in {metrics['undone']:.2%}."
    )


def cards(honest: VerdictCounts, worst: VerdictCounts, metrics: Mapping[str, float | None]) -> list[Card]:
    undone, moved = metrics["undone"], metrics.get("attack_leverage")
    told = [
        Card(f"{worst.caught:.1%}", f"caught of the worst class: {worst.name}", worst.caught >= _MIN_RECALL),
        Card(f"{metrics['detection_mean']:.1%}", "caught, mean of all classes"),
        Card(
            f"{honest.caught:.2%}",
            f"false alarms among {honest.num:,} headlines",
            honest.caught <= _MAX_FALSE_ALARM_RATE,
        ),
        Card(f"{undone:.2%}", "of disguised and hidden texts undone to the letter", undone == 1.0),
    ]
    if moved is not None:
        told.append(
            Card(
                f"{moved:.1%}",
                "of an honest headline's effect is all that an attack of a day moves",
                moved < 0.05,
            )
        )
    return told


def charts(
    attacks: Sequence[VerdictCounts], honest: VerdictCounts, others: Sequence[VerdictCounts]
) -> list[Chart]:
    parts = [(f"{tally.name}: {name}", part) for tally in attacks for name, part in tally.parts.items()]
    alarms = [honest, *(tally for tally in others if tally.origin == "honest")]
    rules = honest.rules.most_common(8)
    return [
        DotChart(
            "What does not pass, by class of attack",
            "Right of the line is the goal. Held back: until a person has looked.",
            [tally.name for tally in attacks],
            [
                DotGroup("not passed", [tally.caught for tally in attacks]),
                DotGroup("held back", [tally.num_held / max(tally.num, 1) for tally in attacks]),
            ],
            zero=_MIN_RECALL,
            unit="%",
        ),
        DotChart(
            "The same, by kind",
            "Staged kinds are as their set names them.",
            [name for name, _ in parts],
            [
                DotGroup("not passed", [part.caught for _, part in parts]),
                DotGroup("undone to the letter", [part.undone for _, part in parts]),
            ],
            zero=_MIN_RECALL,
            unit="%",
        ),
        BarChart(
            "False alarms, by manner of text",
            "Agency headlines are what the goal of 1% speaks of. Posts urge one another to buy: much of what is found "
            "there is what it is called.",
            [tally.name for tally in alarms],
            [tally.caught for tally in alarms],
            unit="%",
        ),
        BarChart(
            "False alarms among agency headlines, by rule",
            "Share of items with a finding of the rule, of those that did not pass.",
            [rule for rule, _ in rules],
            [num / max(honest.num, 1) for _, num in rules],
            unit="%",
        ),
    ]
