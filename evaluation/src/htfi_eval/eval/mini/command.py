"""`htfi eval mini`: the mini models on simulated weeks never seen, beside bags of words and shuffled text."""

from pathlib import Path

import click

from htfi.simulation.stories import FIRST_EVALUATION_SEED
from htfi_eval.eval.progress import ProgressLine

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
@click.option(
    "--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write a page to FILE."
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to FILE."
)
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
    from htfi.decoding.config import DecodingConfig
    from htfi.domain.generation import PromptDialect
    from htfi.wiring.models.readers import ModelsConfig, open_model_pair
    from htfi_eval.eval.charts.page import Evaluation, write_outputs
    from htfi_eval.eval.mini import charts as mini_charts
    from htfi_eval.eval.mini import table
    from htfi_eval.eval.mini.cases import training_cases, unseen_cases
    from htfi_eval.eval.mini.evaluation import DRAFT, TARGET, collect_views, measure_fluency

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
        lead=mini_charts.lead(metrics, len(cases)),
        metrics=dict(metrics),
        cards=mini_charts.cards(metrics),
        charts=mini_charts.charts(views, cases),
        rows=rows,
        notes=notes,
        seed=seed,
    )
    write_outputs(told, json_file=json_file, html_file=html_file)
