"""`htfi models calibrate`: measure on simulated stories what a model's confidence and its calls are worth."""

from pathlib import Path

import click


@click.command("calibrate")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--precision",
    type=click.Choice(("int8", "int8-wide", "fp32")),
    default="int8",
    show_default=True,
    help="Precision of the weights.",
)
@click.option("--stories", "num_stories", type=click.IntRange(min=100), default=2_000, show_default=True)
def command(folder: Path, precision: str, num_stories: int) -> None:
    """Calibrate the views of FOLDER's model on simulated stories, and keep the result there.

    Measures how often its confidence is right and, from 500 stories on, which moves follow its views.
    """
    from htfi.apps.display.tables import print_facts
    from htfi.decoding.config import DecodingConfig
    from htfi.narrative.answer import CAUSES, CONFIDENCES
    from htfi.wiring.models.loading import open_model, write_trust
    from htfi_train.corpus import open_story_facts
    from htfi_train.simulation.reader_calibration import (
        HORIZONS,
        MIN_STORIES,
        answer_stories,
        estimate_meaning,
        estimate_trust,
    )

    generator = open_model(folder, precision).plain_generator(DecodingConfig())

    def show_progress(done: int, num: int) -> None:
        click.echo(f"\r{done:,} of {num:,} stories", err=True, nl=done == num)

    answered = answer_stories(generator, num_stories, show_progress, open_story_facts(generator.dialect))
    trust = estimate_trust(answered)
    meaning = estimate_meaning(answered) if num_stories >= MIN_STORIES else None
    write_trust(folder, trust, meaning)
    print_facts(
        {
            "stated": "  ".join(f"{100 * share:4.0f}%" for share in CONFIDENCES),
            "right when it predicts a move": "  ".join(f"{100 * share:4.0f}%" for share in trust.moving),
            "right when it predicts none": "  ".join(f"{100 * share:4.0f}%" for share in trust.flat),
        }
        | {
            f"move per σ predicted, {cause.replace('_', ' ')}": f"{share:.2f} σ after {HORIZONS[-2]} bars"
            for cause, share in zip(CAUSES, meaning.shifts[-2] if meaning is not None else (), strict=False)
        }
    )
