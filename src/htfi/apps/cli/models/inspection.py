"""The commands of `htfi models` that train nothing: what models there are, what a folder holds, whether it works."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from htfi import models
from htfi.apps.options import FiniteRange

if TYPE_CHECKING:
    from htfi.domain.news_view import NewsView
    from htfi.wiring.models.loading import LoadableModel

_PRECISIONS = ("int8", "int8-wide", "fp32")
_folder = click.argument("folder", type=click.Path(path_type=Path))
_precision = click.option(
    "--precision",
    type=click.Choice(_PRECISIONS),
    default="int8",
    show_default=True,
    help="Precision of the weights.",
)


@click.command("list")
def list_models() -> None:
    """List the models that ship with the package."""
    from htfi.apps.display.tables import print_table
    from htfi.wiring.models.checks import model_facts, read_card
    from htfi.wiring.models.loading import open_model

    columns = ("name", "parameters", "sizes", "vocabulary", "on disk", "trained on", "digest")
    rows: list[tuple[str, ...]] = []
    for path in (models.TARGET, models.DRAFT):
        known = model_facts(open_model(path, "int8"))
        tokens = read_card(path).get("tokens")
        rows.append((
            path.name,
            _count(known.num_parameters),
            known.sizes,
            f"{known.vocab_size:,}",
            f"{known.weight_bytes / 1e6:.1f} MB",
            f"{_count(tokens)} tokens" if isinstance(tokens, int) else "",
            known.digest[:12],
        ))  # fmt: skip
    print_table(columns, rows, title="Shipped models", notes=(f"in {models.TARGET.parent}",))


@click.command()
@_folder
def inspect(folder: Path) -> None:
    """Show what FOLDER holds without loading it: architecture, sizes, vocabulary, digest."""
    from htfi.wiring.models.checks import model_facts, read_card
    from htfi.wiring.models.loading import open_model

    known = model_facts(open_model(folder, "int8"))
    rows = {
        "folder": str(known.path),
        "architecture": known.family,
        "parameters": f"{known.num_parameters:,}",
        "sizes": known.sizes,
        "vocabulary": f"{known.vocab_size:,} tokens, asked in the {known.dialect.value} dialect",
        "positions": f"{known.max_positions:,}",
        "weights": f"{known.weight_bytes / 1e6:.1f} MB",
        "digest": known.digest + (" (shipped, unchanged)" if known.shipped else ""),
        **{f"card: {name}": _card_text(value) for name, value in read_card(folder).items()},
    }
    _print(rows)


@click.command()
@_folder
@_precision
@click.option(
    "--cache", type=click.Path(path_type=Path), help="Folder for graphs (default: the user's cache)."
)
def convert(folder: Path, precision: str, cache: Path | None) -> None:
    """Write the graph of FOLDER into the cache before its first use."""
    import time

    from htfi.wiring.models.loading import load_network, open_model

    opened = open_model(folder, precision)
    started_s = time.perf_counter()
    load_network(opened.folder, precision, cache)
    click.echo(f"{opened.name}: its graph is ready, {time.perf_counter() - started_s:.1f} s")


@click.command()
@_folder
@_precision
@click.option("--draft", type=click.Path(path_type=Path), help="Draft model to test beside it.")
def check(folder: Path, precision: str, draft: Path | None) -> None:
    """Load FOLDER, compare its logits with full precision, ask it a standard question."""
    from htfi.wiring.models.config import ModelsConfig
    from htfi.wiring.models.loading import open_model
    from htfi.wiring.models.readers import open_model_pair

    if draft is None:
        _show_check(open_model(folder, precision))
        return
    for opened in open_model_pair(ModelsConfig(str(folder), str(draft), precision=precision)):
        _show_check(opened)


def _show_check(opened: "LoadableModel") -> None:
    from htfi.decoding.config import DecodingConfig
    from htfi.wiring.models.checks import check_model

    found = check_model(opened, DecodingConfig())
    rows = {
        "model": opened.name,
        "opened in": f"{found.open_s:.2f} s",
        "one token": f"{found.step_ms:.2f} ms",
        "the question": f"{found.num_prompt_tokens} tokens read, {found.num_written_tokens} generated, "
        f"{found.read_ms:.0f} ms",
        "against fp32": f"logits within {found.logit_error:.3f}, "
        f"the same most likely token at {100 * found.top1_agreement:.1f}% of positions",
        **_facts_of(found.view),
    }
    _print(rows)
    click.echo()


@click.command()
@click.argument("url")
@click.argument("model")
@click.option(
    "--key-variable", default="OPENAI_API_KEY", show_default=True, help="Environment variable of the key."
)
@click.option(
    "--budget",
    "budget_money",
    type=FiniteRange(min=0),
    default=1.0,
    show_default=True,
    help="Maximum to spend.",
)
@click.option(
    "--input-price",
    "input_price_per_million",
    type=FiniteRange(min=0),
    default=0.0,
    help="Price of a million input tokens.",
)
@click.option(
    "--output-price",
    "output_price_per_million",
    type=FiniteRange(min=0),
    default=0.0,
    help="Price of a million output tokens.",
)
@click.option("--ca-file", default="", help="PEM file of more authorities to trust.")
def ask(url: str, model: str, **said: object) -> None:
    """Ask a MODEL behind an OpenAI-compatible URL the standard question; needs the extra [frontier]."""
    from htfi.wiring.models.checks import ask_standard_question as ask_generator
    from htfi.wiring.models.readers import open_frontier

    with open_frontier(base_url=url, model=model, **said) as generator:
        view = ask_generator(generator)
        spent = generator.usage
    _print(
        {
            "model": generator.version,
            **_facts_of(view),
            "spent": f"{spent.num_input_tokens:,} tokens read, {spent.num_output_tokens:,} generated, "
            f"cost {spent.money:.4g}",
        }
    )


def _facts_of(view: "NewsView") -> dict[str, str]:
    from htfi.narrative.rationale.versions import CURRENT
    from htfi.wiring.models.checks import STANDARD_QUESTION

    slots = CURRENT.view_slots(view, STANDARD_QUESTION.symbol)
    way = {-1.0: "down", 0.0: "flat", 1.0: "up"}[view.direction]
    return {
        "asked": f"{STANDARD_QUESTION.symbol} after “{STANDARD_QUESTION.items[0].headline}”",
        "view": f"{way} {view.size_sigmas:g} sigma, volatility {view.volatility_multiplier:g}x, "
        f"confidence {100 * view.confidence:.0f}%, {view.cause.replace('_', ' ')}",
        "because": slots.get("words", ""),
    }


def _print(rows: dict[str, str]) -> None:
    from htfi.apps.display.tables import print_facts

    print_facts(rows)


def _card_text(value: object) -> str:
    """What a model's card says under one name; a dictionary as 'name value, name value'."""
    if not isinstance(value, dict):
        return str(value)
    card = cast("dict[str, object]", value)
    return ", ".join(
        f"{name} {f'({said})' if ' ' in (said := _card_text(one)) else said}" for name, one in card.items()
    )


def _count(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number:,}"
