"""`htfi eval`: judges models and forecasts. cli.main finds it; each command is a module of this folder."""

import click

from htfi_eval.eval import report, trials, volatility
from htfi_eval.eval.mini import command as mini
from htfi_eval.eval.narrative import command as narrative
from htfi_eval.eval.portfolio import command as portfolio
from htfi_eval.eval.returns import command as returns
from htfi_eval.eval.sanitise import command as sanitise
from htfi_eval.eval.sentiment import command as sentiment
from htfi_eval.eval.warning import command as warning


@click.group("eval")
def command() -> None:
    """Judge what models and forecasts are worth, beside baselines.

    \b
    Examples:
      htfi eval mini                          the shipped pair on simulated weeks it never saw
      htfi eval mini --html build/mini.html   and a page of it
      htfi eval returns                       forecasts of returns beside peers, on real data
      htfi eval volatility                    forecasts of variance beside HAR
      htfi eval narrative                     what reading the news adds, beside placebos
      htfi eval portfolio                     risk of books, and how much of the best rule is luck
      htfi eval warning                       chances of market stress, and alerts on a budget
      htfi eval sentiment                     labels of sentiment and stance, beside word counts
      htfi eval sanitise                      attacks on the news: found, undone, false alarms
      htfi eval trials                        every configuration ever tried
      htfi eval report                        one page of all that were written to build/goals
    """


command.add_command(mini.command)
command.add_command(returns.command)
command.add_command(volatility.command)
command.add_command(narrative.command)
command.add_command(portfolio.command)
command.add_command(warning.command)
command.add_command(sentiment.command)
command.add_command(sanitise.command)
command.add_command(trials.command)
command.add_command(report.command)
