"""`htfi eval`: judges models and forecasts. cli.main finds it; each command is a module of this folder."""

import click

from htfi.apps.eval import mini, returns


@click.group("eval")
def command() -> None:
    """Judge what models and forecasts are worth, beside baselines.

    \b
    Examples:
      htfi eval mini                          the shipped pair on simulated weeks it never saw
      htfi eval mini --html build/mini.html   and a page of it
      htfi eval returns                       forecasts of returns beside peers, on real data
    """


command.add_command(mini.command)
command.add_command(returns.command)
