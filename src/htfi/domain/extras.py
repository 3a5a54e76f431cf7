"""Optional libraries: whether an extra is installed, said in one line before anything imports it."""

from importlib.util import find_spec

from htfi.domain.errors import MissingExtra


def require_extra(what: str, extra: str, *modules: str) -> None:
    """Raises: MissingExtra, when a module of the extra cannot be imported; `what` begins the sentence."""
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise MissingExtra(f"{what} needs {' and '.join(missing)}: pip install 'htfi[{extra}]'")


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # its parent is missing, or it is barred from import
        return False
