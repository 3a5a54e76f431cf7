"""Options that several commands have: finite numbers, files derived from the ledger, a person and a reason."""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from htfi.wiring.control import DeadMansSwitch
    from htfi.wiring.outputs import OutputFile


class FiniteRange(click.FloatRange):
    """A range that NaN and infinity are not in: comparisons alone would let NaN pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class NewFolder(click.Path):
    """A folder to write into. An empty name, as of a shell's variable that is not set, is not the current one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty: name a folder, . for the current one", param, ctx)
        return super().convert(value, param, ctx)


class PersonName(click.types.StringParamType):
    """A person's name, none by which the record means the system."""

    name = "person"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from htfi.domain.errors import InvalidInput
        from htfi.domain.governance import check_person_name

        try:
            check_person_name(str(value), "--by")
        except InvalidInput as error:
            self.fail(str(error).partition(": ")[2], param, ctx)
        return str(value)


PERSON = PersonName()


def _output_files(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> "frozenset[OutputFile] | None":
    from htfi.wiring.outputs import OutputFile

    if value is None:
        return None
    try:
        return frozenset(OutputFile(name) for name in value.split(",") if value != "none")
    except ValueError:
        raise click.BadParameter(
            f"'{value}': name jsonl, parquet, both with a comma, or none", ctx, param
        ) from None


settings_option = click.option(
    "--settings", "settings_file", type=click.Path(path_type=Path), help="TOML file of settings."
)
bar_option = click.option("--bar", help="Bars built from ticks: 60s, 5m, volume:5000 or dollar:1000000.")
pace_option = click.option(
    "--pace", type=FiniteRange(min=0, min_open=True), help="Replay at this multiple of real time."
)


def served_run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The run that is served: FILES of one that is started, with --out, --settings and --pace, or --follow."""
    for option in (
        pace_option,
        settings_option,
        click.option(
            "--out",
            "folder",
            type=click.Path(path_type=Path),
            default=Path("htfi-serve"),
            show_default=True,
            help="Folder of the run that is started.",
        ),
        click.option(
            "--follow",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            help="Serve this run's folder; start no run.",
        ),
        click.argument("files", nargs=-1, metavar="[FILE]..."),
    ):
        command = option(command)
    return command


def check_served_run(files: Sequence[str], follow: Path | None) -> None:
    """Raises: InvalidInput."""
    from htfi.domain.errors import InvalidInput

    if follow is not None and files:
        raise InvalidInput("--follow serves a run that is there: leave the files out")


plain_option = click.option("--plain", is_flag=True, help="Print plain lines instead of the live view.")
report_option = click.option(
    "--report/--no-report", default=True, show_default=True, help="Write report.html at the end."
)
mapping_option = click.option(
    "--map", "mapping", type=click.Path(path_type=Path), help="TOML file that maps sources and columns."
)


zone_option = click.option(
    "--zone", default="", help="Zone of times that state none, such as America/New_York or UTC."
)


def out_option(folder: str) -> Callable[[Any], Any]:
    """Where a run writes; `folder` where nothing is said."""
    return click.option(
        "--out",
        type=NewFolder(),
        default=Path(folder),
        show_default=True,
        help="Folder of the run.",
    )


outputs_option = click.option(
    "--outputs",
    metavar="FILES",
    callback=_output_files,
    help="Files made from the ledger: jsonl, parquet, both with a comma, or none. By default parquet for files of more "
    "than 512 KiB together, else both.",
)

listen_option = click.option(
    "--listen",
    default="",
    metavar="ADDRESS",
    help="Serve decisions to programs on this machine, at unix:PATH or 127.0.0.1:PORT: a client sends "
    '{"from": 0} and a newline, and gets their lines from that index on.',
)


def telemetry_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--metrics, --traces, --trace-ratio and --log: the command gets them as `telemetry`."""

    @wraps(command)
    def with_telemetry(
        *args: Any, metrics: str, traces: str, trace_ratio: float, log_target: str, **options: Any
    ) -> Any:
        from htfi.wiring.telemetry import TelemetryOptions

        return command(*args, telemetry=TelemetryOptions(metrics, traces, trace_ratio, log_target), **options)

    for option in (
        click.option(
            "--log", "log_target", default="", metavar="FILE", help="Log as JSON lines; - for standard error."
        ),
        click.option(
            "--trace-ratio",
            type=FiniteRange(0.0, 1.0),
            default=0.01,
            show_default=True,
            help="Share of the decision points that are traced.",
        ),
        click.option(
            "--traces", default="", metavar="URL", help="Send traces by OTLP over HTTP, to http://HOST:4318."
        ),
        click.option(
            "--metrics",
            default="",
            metavar="HOST:PORT",
            help="Serve Prometheus metrics at /metrics; port 0 takes any.",
        ),
    ):
        option(with_telemetry)
    return with_telemetry


def by_option(text: str) -> Callable[[Any], Any]:
    """The name of the person who does something, for the record."""
    return click.option("--by", required=True, metavar="NAME", type=PERSON, help=text)


why_option = click.option("--why", required=True, metavar="TEXT", help="The reason, for the record.")


def requester_options(text: str) -> Callable[[Any], Any]:
    """Who does something: --by NAME, or --governance DIR with --key FILE. The command gets a `requester`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_requester(
            *args: Any, by: str | None, governance: Path | None, key: Path | None, **options: Any
        ) -> Any:
            from htfi.wiring.authorisation import Requester

            if by is None and governance is None and key is None:
                raise click.UsageError("Missing option '--by' (or '--governance' with '--key').")
            return command(*args, requester=Requester(by or "", governance, key), **options)

        for option in (
            key_option,
            _rules_option,
            click.option("--by", metavar="NAME", type=PERSON, help=text),
        ):
            option(with_requester)
        return with_requester

    return add


_rules_option = click.option(
    "--governance",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Governance folder: its people and rules decide who may do it.",
)
key_option = click.option(
    "--key",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Your signing key, where --governance is given.",
)

governance_option = click.option(
    "--governance",
    "governance",
    metavar="G",
    type=click.Path(path_type=Path, file_okay=False),
    help="Governance folder: go by its policy bundle, its promoted models, and what stops all of its runs.",
)


def _switch(ctx: click.Context, param: click.Parameter, value: str | None) -> "DeadMansSwitch | None":
    if value is None:
        return None
    from htfi.wiring.control import DeadMansSwitch

    file, _, seconds = value.rpartition(":")
    try:
        timeout_s = float(seconds)
    except ValueError:
        timeout_s = math.nan
    if not file or not 0.0 < timeout_s <= 1e6:
        raise click.BadParameter(f"'{value}': write FILE:SECONDS, such as /run/desk/alive:5", ctx, param)
    return DeadMansSwitch(Path(file), timeout_s)


switch_option = click.option(
    "--dead-man",
    "switch",
    metavar="FILE:SECONDS",
    callback=_switch,
    help="Stop releasing once a supervisor has not touched FILE for so long.",
)
