"""What a command line of `htfi scenario` asks, as scenarios; and the library of stresses as a table."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from htfi.apps.display.drawing import MUTED
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.requests import (
    ScenarioKind,
    ScenarioRequest,
    ShockUnit,
    check_requests,
    parse_requests,
)
from htfi.forecasting.scenarios.stresses import (
    WINDOWS_DAYS,
    HistoricalStress,
    StressFactor,
    stress_factors,
    stress_library,
    window_days,
)

_MAX_FILE_BYTES = 1 << 20


def collect_requests(
    shocks: Sequence[str],
    headlines: Sequence[str],
    on: Sequence[str],
    macros: Sequence[str],
    stresses: Sequence[str],
    files: Sequence[Path],
) -> list[ScenarioRequest]:
    """The scenarios, headlines first, then macro surprises, shocks, stresses, those of files. Raises: InvalidInput."""
    if on and not headlines:
        raise InvalidInput("--on names what a --headline is about: add --headline")
    asked = [ScenarioRequest(ScenarioKind.HEADLINE, text, tuple(on)) for text in headlines]
    asked += [ScenarioRequest(ScenarioKind.MACRO, text) for text in macros]
    asked += [ScenarioRequest(ScenarioKind.SHOCK, text) for text in shocks]
    if "all" in stresses:
        asked += [ScenarioRequest(ScenarioKind.STRESS, name, is_of_all=True) for name in stress_library()]
    else:
        asked += [ScenarioRequest(ScenarioKind.STRESS, name) for name in stresses]
    for file in files:
        asked += parse_requests(_read_file(file), str(file))
    check_requests(asked)
    return asked


def stress_table(horizon_days: int, width: int) -> Table | Text:
    """Every named stress with its factors' moves over the window nearest to a horizon; as lines where columns do not
    fit."""
    days = window_days(horizon_days)
    others = ", ".join(str(other) for other in WINDOWS_DAYS if other != days)
    title = f" moves of factors over {days} trading day{'s' if days > 1 else ''} (with --horizon: {others})"
    table = Table(title=title, title_justify="left", box=None, header_style=MUTED)
    for name in ("--stress", "what", "from the close of"):
        table.add_column(name, no_wrap=True, style="bold" if name == "--stress" else "")
    for factor in stress_factors().values():
        table.add_column(f"{factor.name}, {factor.unit.value}", justify="right")
    for stress in stress_library().values():
        cells = [_factor_move(stress, factor, days) or "–" for factor in stress_factors().values()]
        table.add_row(stress.id, stress.title, str(stress.before), *cells)
    is_narrow = Console(width=1_000).measure(table).minimum > width  # even with heads of several lines
    return _stress_lines(title, days, width) if is_narrow else table


def _stress_lines(title: str, days: int, width: int) -> Text:
    lines = [Text(title, "italic")]
    for stress in stress_library().values():
        about = textwrap.wrap(
            f"{stress.title}, from the close of {stress.before}", width - len(stress.id) - 4
        )
        lines.append(Text.assemble(" ", (stress.id, "bold"), f"  {about[0]}"))
        moves = [(factor, _factor_move(stress, factor, days)) for factor in stress_factors().values()]
        figures = ", ".join(f"{factor.name} {move} {factor.unit.value}" for factor, move in moves if move)
        lines += [Text(f"   {line}") for line in (*about[1:], *textwrap.wrap(figures, width - 4))]
    return Text("\n").join(lines)


def _factor_move(stress: HistoricalStress, factor: StressFactor, days: int) -> str:
    if factor.id not in stress.moves:
        return ""
    move = stress.shock(factor, days).amount
    return f"{move:+.0f}" if factor.unit is ShockUnit.BASIS_POINTS else f"{move:+.1f}"


def _read_file(file: Path) -> str:
    try:
        data = file.read_bytes()
        if len(data) > _MAX_FILE_BYTES:
            raise InvalidInput(f"{file} is larger than 1 MiB: not a file of scenarios")
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: is not text in UTF-8") from error
