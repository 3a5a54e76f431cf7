"""`htfi eval mini`: the mini models on new simulated stories, compared with bags of words and shuffled headlines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from htfi.decoding.config import DecodingConfig
from htfi.library.charts.specs import Chart, Curve, CurveChart, DotChart, DotGroup
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.readers import open_model_pair
from htfi_eval.commands import ProgressLine, output_options
from htfi_eval.eval.mini import scores, table
from htfi_eval.eval.mini.baselines import BaselineFeatures
from htfi_eval.eval.mini.evaluation import CEILING, DRAFT, TARGET, ReaderViews, collect_views, measure_fluency
from htfi_eval.eval.mini.scores import EvaluationCase, MeanWithError, mean, training_cases, unseen_cases
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation
from htfi_train.corpus import open_story_facts
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED

_SHOWN = (TARGET, DRAFT, BaselineFeatures.WORDS.value, BaselineFeatures.ALL.value)
# The figures at the top of the page: metric and label.
_FIGURES = (
    ("direction_accuracy_target", "of directions correct: target"),
    ("direction_accuracy_draft", "draft"),
    ("direction_accuracy_words", "bag of words"),
    ("direction_accuracy_all_features", "words, tags, prices"),
    ("direction_accuracy_ceiling", "ceiling"),
    ("direction_accuracy_target_shuffled", "target, shuffled"),
    ("ece_target", "calibration error"),
    ("match_rate_view", "of view tokens agree"),
    ("match_rate_path", "of path tokens agree"),
)


def cards(metrics: Mapping[str, float]) -> list[Card]:
    return [Card(f"{metrics[name]:.1%}", called) for name, called in _FIGURES if name in metrics]


def lead(metrics: Mapping[str, float], num_cases: int) -> str:
    """The main result in one sentence."""
    target, words, ceiling = (_share(metrics, one) for one in ("target", "words", "ceiling"))
    text = f"On {num_cases:,} unseen simulated events the target predicts {target} of directions correctly"
    words_text = f", a bag of words {words}" if words else ""
    return f"{text}{words_text}; perfect understanding of the question would give {ceiling}."


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

    dots: list[DotGroup] = []
    for reader in (one for one in _SHOWN if one in views.readers):
        found = right(reader)
        dots.append(
            DotGroup(
                reader,
                [one.value for one in found],
                [max(one.value - one.error, 0.0) for one in found],
                [min(one.value + one.error, 1.0) for one in found],
            )
        )
    return DotChart(
        "Direction, by cause of the event",
        "Share of directions predicted correctly; lines are one standard error.",
        [f"{name.replace('_', ' ')} ({len(places):,})" for name, places in groups.items()],
        dots,
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
        "Calibration of stated confidence",
        "Confidence stated for a move, and the share of correct directions; areas show the number of predictions.",
        [],
        curves,
        "stated confidence",
        "share correct",
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
  htfi eval mini --target mine/mini-target --draft mine/mini-draft
"""


@click.command("mini", short_help="The mini models on new simulated stories.", epilog=_EPILOG)
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
    help="Seed of the stories; lower seeds are training data.",
)
@output_options
def command(
    target: Path | None, draft: Path | None, num_stories: int, num_training: int, seed: int,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Evaluate the views of target and draft on simulated news whose effect is known.

    The baselines are logistic regressions (scikit-learn) on the words of all headlines (words), on words with tags,
    ages and recent returns (words+), and on the same without words; the most frequent answer (usual); and the ceiling,
    an answer with perfect understanding of all that is shown. Shuffled (sh.), with other headlines under the same
    tags, a reader must fall back to chance.
    """
    opened = open_model_pair(ModelsConfig(str(target or ""), str(draft or "")))
    models = {
        name: one.plain_generator(DecodingConfig()) for name, one in zip((TARGET, DRAFT), opened, strict=True)
    }
    facts = next(filter(None, (open_story_facts(model.dialect) for model in models.values())), None)
    cases = unseen_cases(seed, num_stories, facts)
    training = training_cases(num_training)
    trusts = {name: one.trust for name, one in zip((TARGET, DRAFT), opened, strict=True)}
    views = collect_views(cases, training, models, ProgressLine, trusts)
    rows, metrics = table.view_rows(views, cases), table.view_metrics(views)
    notes = table.notes(views, num_stories)
    fluency = None
    if all(model.dialect.is_mini for model in models.values()):
        fluency = measure_fluency(cases, training, models[TARGET], models[DRAFT], ProgressLine)
        rows += table.fluency_rows(fluency)
        metrics |= table.fluency_metrics(fluency)
    else:
        notes.append("perplexity and paths are left out: a model has no price tokens")
    notes.append(" · ".join(model.version for model in models.values()))
    result = Evaluation(
        name="mini",
        title="The mini models on simulated stories never seen",
        lead=lead(metrics, len(cases)),
        metrics=dict(metrics),
        cards=cards(metrics),
        charts=charts(views, cases),
        rows=rows,
        notes=notes,
        seed=seed,
    )
    write_outputs(result, json_file=json_file, html_file=html_file)
