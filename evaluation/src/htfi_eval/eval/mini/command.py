"""`htfi eval mini`: the mini models on simulated stories never seen, beside bags of words and shuffled headlines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from htfi.decoding.config import DecodingConfig
from htfi.domain.generation import PromptDialect
from htfi.simulation.stories import FIRST_EVALUATION_SEED
from htfi.wiring.models.readers import ModelsConfig, open_model_pair
from htfi_eval.charts.specs import Chart, Curve, CurveChart, DotChart, DotGroup
from htfi_eval.commands import ProgressLine, output_options
from htfi_eval.eval.mini import scores, table
from htfi_eval.eval.mini.baselines import BaselineFeatures
from htfi_eval.eval.mini.evaluation import CEILING, DRAFT, TARGET, ReaderViews, collect_views, measure_fluency
from htfi_eval.eval.mini.scores import EvaluationCase, MeanWithError, mean, training_cases, unseen_cases
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation

_SHOWN = (TARGET, DRAFT, BaselineFeatures.WORDS.value, BaselineFeatures.ALL.value)
# What is shown large: the metric and what it is called.
_FIGURES = (
    ("direction_accuracy_target", "of directions right: target"),
    ("direction_accuracy_draft", "draft"),
    ("direction_accuracy_words", "bag of words"),
    ("direction_accuracy_all_features", "words, tags, prices"),
    ("direction_accuracy_ceiling", "ceiling"),
    ("direction_accuracy_target_shuffled", "target, shuffled"),
    ("ece_target", "calibration error"),
    ("match_rate_view", "of a view agreed"),
    ("match_rate_path", "of a path agreed"),
)


def cards(metrics: Mapping[str, float]) -> list[Card]:
    return [Card(f"{metrics[name]:.1%}", called) for name, called in _FIGURES if name in metrics]


def lead(metrics: Mapping[str, float], num_cases: int) -> str:
    """The finding in one sentence."""
    target, words, ceiling = (_share(metrics, one) for one in ("target", "words", "ceiling"))
    told = f"Of {num_cases:,} simulated events never seen, the target calls {target} of directions right"
    beside = f", a bag of words {words}" if words else ""
    return f"{told}{beside}; one who understands all that is shown would call {ceiling}."


def charts(views: ReaderViews, cases: Sequence[EvaluationCase]) -> list[Chart]:
    return [_accuracy(views, cases), _reliability(views)]


def _accuracy(views: ReaderViews, cases: Sequence[EvaluationCase]) -> DotChart:
    groups = {"all": list(range(len(cases)))}
    for cause, _ in Counter(case.truth.cause for case in cases).most_common():
        groups[cause] = [place for place, case in enumerate(cases) if case.truth.cause == cause]

    def right(reader: str) -> list[MeanWithError]:
        return [
            mean(scores.right_direction(views.readers[reader].at(places), views.truth.at(places)))
            for places in groups.values()
        ]

    told: list[DotGroup] = []
    for reader in (one for one in _SHOWN if one in views.readers):
        found = right(reader)
        told.append(
            DotGroup(
                reader,
                [one.value for one in found],
                [max(one.value - one.error, 0.0) for one in found],
                [min(one.value + one.error, 1.0) for one in found],
            )
        )
    return DotChart(
        "Direction, by cause of the event",
        "Share of directions called right; strokes are one standard error.",
        [f"{name.replace('_', ' ')} ({len(places):,})" for name, places in groups.items()],
        told,
        best=[one.value for one in right(CEILING)],
        unit="%",
    )


def _reliability(views: ReaderViews) -> CurveChart:
    curves: list[Curve] = []
    for reader in (one for one in _SHOWN if one in views.readers):
        bins = [one for one in scores.reliability(views.readers[reader], views.truth) if one.num]
        stated, right, num = ([float(one[k]) for one in bins] for k in (1, 2, 0))
        curves.append(Curve(reader, list(right), x=stated, counts=num))
    return CurveChart(
        "Was it honest about its doubt",
        "Confidence stated for a move, and how often it was right; areas are calls.",
        [],
        curves,
        "confidence stated",
        "share right",
        diagonal=True,
    )


def _share(metrics: Mapping[str, float], reader: str) -> str:
    value = metrics.get(f"direction_accuracy_{reader}")
    return "" if value is None else f"{value:.1%}"


NUM_STORIES = 1_000
NUM_TRAINING = 20_000  # stories that the baselines learn from

_EPILOG = """\b
Examples:
  htfi eval mini
  htfi eval mini --stories 300 --html build/mini.html
  htfi eval mini --target mine/mini-target --draft mine/mini-draft --json build/mini.json
"""


@click.command("mini", short_help="The mini models on simulated weeks they never saw.", epilog=_EPILOG)
@click.option(
    "--target", type=click.Path(path_type=Path), help="Folder of the target.  [default: the shipped one]"
)
@click.option(
    "--draft", type=click.Path(path_type=Path), help="Folder of the draft.  [default: the shipped one]"
)
@click.option("--stories", "num_stories", default=NUM_STORIES, show_default=True, type=click.IntRange(2))
@click.option(
    "--training-stories", "num_training", default=NUM_TRAINING, show_default=True, type=click.IntRange(100),
    help="Stories that the baselines learn from.",
)  # fmt: skip
@click.option(
    "--seed",
    default=FIRST_EVALUATION_SEED,
    show_default=True,
    help="Of the stories; training has those below.",
)
@output_options
def command(
    target: Path | None, draft: Path | None, num_stories: int, num_training: int, seed: int,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Judge the views of target and draft on simulated news whose effect is known.

    Beside them stand logistic regressions (scikit-learn, the extra [bench]) on the words of all headlines, on
    words with tags, ages and recent returns (words+), and on these without words; the usual answer; and the
    ceiling: one who understands all that is shown. Shuffled (sh.), with others' headlines under the same tags, a
    reader must fall back to chance.
    """

    cases = unseen_cases(seed, num_stories)
    opened = open_model_pair(ModelsConfig(str(target or ""), str(draft or "")))
    authors = {name: one.author(DecodingConfig()) for name, one in zip((TARGET, DRAFT), opened, strict=True)}
    training = training_cases(num_training)
    trusts = {name: one.trust for name, one in zip((TARGET, DRAFT), opened, strict=True)}
    views = collect_views(cases, training, authors, ProgressLine, trusts)
    rows, metrics = table.view_rows(views, cases), table.view_metrics(views)
    notes = table.notes(views, num_stories)
    fluency = None
    if all(author.dialect is PromptDialect.MINI for author in authors.values()):
        fluency = measure_fluency(cases, training, authors[TARGET], authors[DRAFT], ProgressLine)
        rows += table.fluency_rows(fluency)
        metrics |= table.fluency_metrics(fluency)
    else:
        notes.append("a model without price tokens has no perplexity of passages and draws no paths")
    notes.append(" · ".join(author.version for author in authors.values()))
    told = Evaluation(
        name="mini",
        title="The mini models on weeks they never saw",
        lead=lead(metrics, len(cases)),
        metrics=dict(metrics),
        cards=cards(metrics),
        charts=charts(views, cases),
        rows=rows,
        notes=notes,
        seed=seed,
    )
    write_outputs(told, json_file=json_file, html_file=html_file)
