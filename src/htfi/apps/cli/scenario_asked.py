"""What a command line of `htfi scenario` asks, as scenarios; and the library of stresses as a table."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from htfi.apps.cli.view_text import QUIET
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.asked import Asked, Kind, check_asked, read_asked
from htfi.forecasting.scenarios.shocks import Unit
from htfi.forecasting.scenarios.stresses import WINDOWS_DAYS, factors, library

_MAX_FILE_BYTES = 1 << 20


def gather(
    shocks: Sequence[str],
    headlines: Sequence[str],
    on: Sequence[str],
    macros: Sequence[str],
    stresses: Sequence[str],
    files: Sequence[Path],
) -> list[Asked]:
    """The scenarios, headlines first, then macro surprises, shocks, stresses, those of files. Raises: InvalidInput."""
    if on and not headlines:
        raise InvalidInput("--on says what a --headline is about: name one")
    asked = [Asked(Kind.HEADLINE, text, tuple(on)) for text in headlines]
    asked += [Asked(Kind.MACRO, text) for text in macros]
    asked += [Asked(Kind.SHOCK, text) for text in shocks]
    names = list(library()) if "all" in stresses else list(stresses)
    asked += [Asked(Kind.STRESS, name) for name in names]
    for file in files:
        asked += read_asked(_read(file), str(file))
    check_asked(asked)
    return asked


def told_library() -> Table:
    """Every named stress with its factors' moves over 1, 5 and 22 days."""
    table = Table(title="named stresses: moves over 1 / 5 / 22 trading days", title_justify="left")
    table.add_column("--stress", style="bold", no_wrap=True)
    table.add_column("what")
    table.add_column("from the close of", no_wrap=True)
    for factor in factors().values():
        table.add_column(f"{factor.name}, {factor.unit.value}", justify="right")
    for stress in library().values():
        cells = [_moves(stress.moves.get(factor.id), factor.unit) for factor in factors().values()]
        table.add_row(stress.id, stress.title, str(stress.before), *cells)
    table.caption = (
        f"windows of {', '.join(map(str, WINDOWS_DAYS))} days; the nearest to the horizon is taken"
    )
    table.caption_style = QUIET
    return table


def _moves(moves: tuple[float, float, float] | None, unit: Unit) -> str:
    if moves is None:
        return "–"
    return " / ".join(f"{move:+.0f}" if unit is Unit.BASIS_POINTS else f"{move:+.1f}" for move in moves)


def _read(file: Path) -> str:
    try:
        data = file.read_bytes()
        if len(data) > _MAX_FILE_BYTES:
            raise InvalidInput(f"{file} is larger than 1 MiB: no file of scenarios")
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: is no text in UTF-8") from error
