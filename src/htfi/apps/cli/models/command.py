"""The group `htfi models`: its table of subcommands. Those that train are in the distribution htfi-train."""

import click

from htfi.apps.cli.main import LazyGroup

COMMANDS = {
    "ask": ("htfi.apps.cli.models.inspection:ask", "Ask a remote model the standard question."),
    "calibrate": ("htfi_train.cli.calibrate:command", "Calibrate a model's views on simulated stories."),
    "check": (
        "htfi.apps.cli.models.inspection:check",
        "Load and test a model.",
    ),
    "convert": ("htfi.apps.cli.models.inspection:convert", "Write a model's graph into the cache."),
    "distil": ("htfi_train.cli.distil:command", "Train the draft on recent answers of its target."),
    "facts": ("htfi_train.cli.facts:command", "Tune the encoder that reads the facts of news."),
    "fit": (
        "htfi_eval.eval.pooled.command:command",
        "Fit the pooled learner to your bars, walk-forward.",
    ),
    "heads": ("htfi_train.cli.heads:command", "Make the sentiment and other heads from the corpora."),
    "inspect": (
        "htfi.apps.cli.models.inspection:inspect",
        "Show what a model folder holds.",
    ),
    "list": ("htfi.apps.cli.models.inspection:list_models", "List the models that ship with the package."),
    "promote": (
        "htfi.apps.cli.models.promotion:promote_command",
        "Let a candidate serve that the sandbox passed.",
    ),
    "rollback": ("htfi.apps.cli.models.promotion:rollback_command", "Take the newest promotion back."),
    "serving": (
        "htfi.apps.cli.models.promotion:serving_command",
        "Show what a governance folder lets serve.",
    ),
    "shorten": ("htfi_train.cli.shorten:command", "Train a shorter encoder for passages of news."),
    "train": ("htfi_train.cli.train:command", "Train a target and its draft on simulated stories."),
    "wording": ("htfi_train.cli.wording:command", "Make the sanitiser's weights from grammars."),
}

EPILOG = """\b
Examples:
  htfi models list
  htfi models inspect ~/models/Qwen3-0.6B
  htfi models check ~/models/Qwen3-0.6B           load it and test it
  htfi models train --out mine --minutes 60       needs the extra [train]
  htfi models fit prices.csv --out mine           a learner over all series
  htfi models distil --from recent --out drafts   train the draft again
  htfi run --target mine/mini-target --draft mine/mini-draft
"""


@click.group("models", cls=LazyGroup, lazy=COMMANDS, epilog=EPILOG)
def command() -> None:
    """Models: the shipped pair, any Hugging Face folder on disk, and those fitted to your bars."""
