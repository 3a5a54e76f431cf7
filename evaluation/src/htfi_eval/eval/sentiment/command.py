"""`htfi eval sentiment`: the heads for sentiment and stance on labelled sets, compared with word counts and TF-IDF."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from htfi.library.charts.specs import Chart, Curve, CurveChart, DotChart, DotGroup, HeatMap
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.heads import Heads
from htfi.wiring.encoder import folder_encoder, open_heads, shipped_encoder
from htfi_eval.commands import ProgressLine, data_option, output_options
from htfi_eval.encoder_weights import NO_FULL_WEIGHTS, full_weights_option
from htfi_eval.eval.prices import STAGED
from htfi_eval.eval.sentiment.judging import (
    COUNTS,
    HEAD,
    TFIDF,
    SentimentJudgement,
    confusion,
    encode,
    judge_by_source,
    judge_in_domain,
    judge_shipped,
    label_flips,
    learn_words,
    metrics_of,
    row_of,
)
from htfi_eval.eval.sentiment.sets import load_sets, load_word_lists, overlaps
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation
from htfi_train.simulation.head_training import SEED, calibration_error, read_corpora
from htfi_train.simulation.labelled_lines import draw_lines

_MIN_GAIN, _MAX_FLIPS = 0.03, 0.01
_NUM_BINS = 10


def lead(judged: Sequence[SentimentJudgement], metrics: Mapping[str, float | None]) -> str:
    """The main result in one sentence."""
    worst = min(judged, key=lambda one: one.shipped.gain(HEAD, (COUNTS, TFIDF))[0])
    gain, best = worst.shipped.gain(HEAD, (COUNTS, TFIDF))
    flips = metrics.get("int8_label_flips")
    in_int8 = "" if flips is None else f"; int8 changes {flips:.1%} of labels"
    return (
        f"Heads trained on no row of these sets beat word counts and TF-IDF by at least "
        f"{gain:+.3f} of macro-F1 ({worst.of.name}, over {best}){in_int8}."
    )


def cards(metrics: Mapping[str, float | None]) -> list[Card]:
    gain, source = metrics["macro_f1_min_gain"] or 0.0, metrics.get("macro_f1_min_gain_by_source")
    flips = metrics.get("int8_label_flips")
    found = [Card(f"{gain:+.3f}", "worst gain in macro-F1, as shipped", gain >= _MIN_GAIN)]
    if source is not None:
        found.append(Card(f"{source:+.3f}", "worst gain, trained on other sources", source >= _MIN_GAIN))
    if flips is not None:
        found.append(Card(f"{flips:.1%}", "of labels changed by int8", flips <= _MAX_FLIPS))
    return found


def charts(judged: Sequence[SentimentJudgement]) -> list[Chart]:
    return [_by_set(judged), *(_confusion(one) for one in judged), _reliability(judged)]


def _by_set(judged: Sequence[SentimentJudgement]) -> DotChart:
    groups = [
        DotGroup(f"{name} (as shipped)" if name == HEAD else name, [one.shipped.f1(name) for one in judged])
        for name in (HEAD, TFIDF, COUNTS)
    ]
    if any(one.in_domain is not None for one in judged):
        for name in (HEAD, TFIDF):
            values = [None if one.in_domain is None else one.in_domain.f1(name) for one in judged]
            groups.append(DotGroup(f"{name}, in domain", values))
    return DotChart(
        "Macro-F1 by set and method",
        "As shipped: trained on nothing of the set; in domain: on four fifths of it.",
        [f"{one.of.name} ({len(one.of.texts):,})" for one in judged],
        groups,
    )


def _confusion(one: SentimentJudgement) -> HeatMap:
    counts = confusion(one.of.targets, one.shipped.by_method[HEAD], len(one.of.labels))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return HeatMap(
        f"{one.of.name}: confusion matrix",
        "Rows are the annotators' labels, columns the shipped head's; shares of a row.",
        [f"{label} ({int(num):,})" for label, num in zip(one.of.labels, counts.sum(axis=1), strict=True)],
        list(one.of.labels),
        shares.tolist(),
        unit="%",
    )


def _reliability(judged: Sequence[SentimentJudgement]) -> CurveChart:
    curves: list[Curve] = []
    for one in judged:
        stated = one.shares.max(axis=1)
        right = one.shares.argmax(axis=1) == one.of.targets
        bins = np.minimum((stated * _NUM_BINS).astype(int), _NUM_BINS - 1)
        used = [number for number in range(_NUM_BINS) if (bins == number).sum() >= 10]
        curves.append(
            Curve(
                one.of.name,
                [float(right[bins == number].mean()) for number in used],
                x=[float(stated[bins == number].mean()) for number in used],
                counts=[float((bins == number).sum()) for number in used],
            )
        )
    return CurveChart(
        "Calibration of probabilities",
        "Probability stated for the top label, and the share of correct labels; areas show the number of texts.",
        [],
        curves,
        "stated probability",
        "share correct",
        diagonal=True,
    )


_EPILOG = """\b
Examples:
  htfi eval sentiment                              the shipped heads
  htfi eval sentiment --html build/sentiment.html  and a page of it
  htfi eval sentiment --heads mine/heads           heads of your own
"""
_HOW = (
    "head: trained on the project's templates only, no row of a set; TF-IDF: logistic regression on the same lines; "
    "counts: words of Loughran and McDonald; gain: over the better of the two, 95% interval by bootstrap of texts",
    "by source: head and TF-IDF trained on the other labelled sets, FOMC on earlier years; in domain: on four "
    "fifths of the set itself; these fits do not ship",
    "unseen_half: templates and settings were tuned on half of the texts; this is the other "
    "half, of which about 80 rows were read before and whose scores were part of those of whole sets",
)


@click.command("sentiment", short_help="Sentiment and policy stance on labelled sets.", epilog=_EPILOG)
@data_option
@click.option(
    "--heads",
    "heads_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of heads.  [default: the shipped ones]",
)
@click.option(
    "--corpora",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("corpora"),
    show_default=True,
    help="Templates that the heads were trained on; TF-IDF uses the same.",
)
@click.option("--shipped-only", is_flag=True, help="Leave out fits on the labelled sets.")
@click.option("--seed", default=0, show_default=True, help="Seed of the bootstrap and of the fits.")
@full_weights_option
@output_options
def command(
    data: Path | None, heads_folder: Path | None, corpora: Path, shipped_only: bool, seed: int, weights: Path | None,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Macro-F1 on PhraseBank, TFNS, FiQA, SEntFiN and FOMC stance, sources that the heads were not trained on.

    Also the calibration of stated probabilities, and whether a line of the corpora nearly repeats a row of a set; with
    --full-weights the share of labels that int8 changes against full precision.
    """
    result = evaluate(data, heads_folder, corpora, seed, weights, shipped_only=shipped_only)
    write_outputs(result, json_file=json_file, html_file=html_file)


def evaluate(
    data: Path | None,
    heads_folder: Path | None,
    corpora: Path,
    seed: int,
    weights: Path | None = None,
    *,
    shipped_only: bool,
) -> Evaluation:
    """Every set by every protocol. Raises: InvalidInput, DependencyUnavailable, MissingExtra."""
    folder = data or STAGED
    sets, notes = load_sets(folder)
    lists = load_word_lists(folder)
    heads = Heads.load(heads_folder) if heads_folder else open_heads()
    encoder = shipped_encoder(EncodingConfig())
    known = {corpus.head: corpus for corpus in read_corpora(corpora)}
    words: dict[str, Any] = {}
    num_alike = 0
    for head in dict.fromkeys(one.head for one in sets):
        corpus = known[head]
        lines = draw_lines(corpus.templates, corpus.slots, corpus.per_template, SEED)
        letters = list(corpus.labels)
        targets = np.array([letters.index(line.label) for line in lines])
        progress = ProgressLine(f"{head}: TF-IDF of {len(lines):,} lines, and a check for repeated rows")
        words[head] = learn_words([line.text for line in lines], targets, seed)
        num_alike += overlaps([line.text for line in lines], [text for one in sets for text in one.texts])
        progress(1, 1)
    encoded = encode(encoder, [text for one in sets for text in one.texts], ProgressLine("encoding"))
    judged = judge_shipped(sets, encoded, heads, words, lists)
    if not shipped_only:
        for place, one in enumerate(judged):
            progress = ProgressLine(f"{one.of.name}: training on other sources, and on its own")
            others = [other for other in sets if other.head == one.of.head and other is not sets[place]]
            one.by_source = judge_by_source(one.of, others, encoded, lists, seed)
            one.in_domain = judge_in_domain(one.of, encoded, lists, seed)
            progress(1, 1)
    metrics = metrics_of(judged)
    if weights is None:
        notes.append(NO_FULL_WEIGHTS)
    else:
        exact = folder_encoder(weights, EncodingConfig(model=str(weights), precision="fp32"))
        progress = ProgressLine("encoding again in fp32")
        metrics["int8_label_flips"] = label_flips(judged, heads, exact, progress)
    metrics["corpora_overlap"] = float(num_alike)
    for one in judged:
        metrics[f"calibration_error_{one.of.name.lower()}"] = calibration_error(one.shares, one.of.targets)
    return Evaluation(
        name="sentiment",
        title="Sentiment and stance on unseen sources",
        lead=lead(judged, metrics),
        metrics=metrics,
        cards=cards(metrics),
        charts=charts(judged),
        rows=[row_of(one, seed) for one in judged],
        notes=[*_HOW, *notes, f"heads {heads.digest[:12]} on {encoder.version}"],
        seed=seed,
    )
