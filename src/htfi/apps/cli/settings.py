"""`htfi settings`: every setting with its unit, default and meaning."""

import click

EPILOG = """\b
Examples:
  htfi settings                  all settings
  htfi settings policy           those of one table
  htfi settings --markdown       the page docs/settings.md

Change a setting in a TOML file (htfi run --settings FILE) or in the environment:

\b
  [policy]
  max_band_width = 0.2
  HTFI_POLICY__MAX_BAND_WIDTH=0.2
"""

_PAGE = """# Settings

Made by `htfi settings --markdown`. A setting is changed in a TOML file (`htfi run --settings FILE`), one table for \
each heading below, or in the environment: `HTFI_POLICY__MAX_BAND_WIDTH=0.2`. An unknown key or a value out of \
bounds stops the start with one line. What no user would change is a constant in the package that owns it.

`settings.json` in a run's folder states every parameter that shapes its decisions, constants included; each decision \
carries its digest. A run of an earlier version is verified, replayed and reported by its own file. Names of settings \
of 0.1.0 (`EARLIER_NAMES` in `wiring/settings.py`) are read as those below, in any file and in the environment.
"""


@click.command("settings", epilog=EPILOG)
@click.argument("table", required=False)
@click.option("--markdown", is_flag=True, help="Print the page docs/settings.md.")
def command(table: str | None, markdown: bool) -> None:
    """List the settings: unit, default and meaning of each."""
    from htfi.apps.display.tables import print_table
    from htfi.domain.errors import InvalidInput
    from htfi.wiring.setting_list import list_settings

    settings = list_settings()
    names = list(dict.fromkeys(one.table for one in settings))
    if table is not None and table not in names:
        raise InvalidInput(f"there is no table '{table}': the tables are {', '.join(names)}")
    if markdown:
        click.echo(settings_page())
        return
    for name in names if table is None else [table]:
        rows = [(one.key, one.default, one.unit, one.meaning) for one in settings if one.table == name]
        print_table(("setting", "default", "unit", "meaning"), rows, title=name)


def settings_page() -> str:
    """The page as Markdown."""
    from htfi.wiring.setting_list import list_settings

    lines = [_PAGE]
    table = ""
    for one in list_settings():
        if one.table != table:
            table = one.table
            lines += [f"\n## {table}\n", "| setting | default | unit | meaning |", "|---|---|---|---|"]
        default = f"`{one.default}`" if one.default else ""
        lines.append(f"| `{one.key}` | {default} | {one.unit} | {one.meaning} |")
    return "\n".join(lines)
