"""The groups `htfi eval` and `htfi bench`. `htfi.apps.cli.main` imports them by name when one of them is used."""

import click

from htfi.apps.cli.main import LazyGroup

EVALUATIONS = {
    "mini": ("htfi_eval.eval.mini.command:command", "The mini models on new simulated stories."),
    "returns": (
        "htfi_eval.eval.returns.command:command",
        "Forecasts of returns against peers, on real data.",
    ),
    "calendar": (
        "htfi_eval.eval.calendar.command:command",
        "Forecasts of bars that hold a scheduled release, with a calendar and without.",
    ),
    "volatility": ("htfi_eval.eval.volatility:command", "Forecasts of variance against HAR, on real data."),
    "narrative": ("htfi_eval.eval.narrative.command:command", "The gain of reading news over prices alone."),
    "portfolio": ("htfi_eval.eval.portfolio.command:command", "Risk of books, and chance in trading rules."),
    "strategies": (
        "htfi_eval.eval.strategies.command:command",
        "What trend and reversal earned after costs, and how much of it is luck.",
    ),
    "venue": ("htfi_eval.eval.venue:command", "The simulated venue's queue against recorded orders."),
    "warning": ("htfi_eval.eval.warning.command:command", "Early warning of market stress."),
    "sentiment": (
        "htfi_eval.eval.sentiment.command:command",
        "Sentiment and policy stance on labelled sets.",
    ),
    "reading": (
        "htfi_eval.eval.reading.command:command",
        "What is understood of real news, and what prices did after it.",
    ),
    "sanitise": ("htfi_eval.eval.sanitise.command:command", "Attacks on the news, and false positives."),
    "governance": (
        "htfi_eval.eval.governance.command:command",
        "What breakers, sandbox, fairness, monitors and marks find.",
    ),
    "execution": (
        "htfi_eval.eval.execution.command:command",
        "Execution algorithms and smart routing, on real quotes of several venues.",
    ),
    "trials": ("htfi_eval.eval.trials:command", "All configurations ever evaluated."),
    "report": ("htfi_eval.report:command", "One page of all evaluations."),
}

BENCHMARKS = {
    "ticks": (
        "htfi_eval.bench.ticks.command:command",
        "Latency of an event and a decision, size of a record.",
    ),
    "ledger": ("htfi_eval.bench.ledger:command", "Appends per second, verification, proofs."),
    "library": (
        "htfi_eval.bench.library.command:command",
        "Import, first forecast, backtest, size of the install.",
    ),
    "engine": ("htfi_eval.bench.engine:command", "Decode and verify steps of a language model."),
    "decode": ("htfi_eval.bench.decode.command:command", "Speculative decoding against plain decoding."),
    "paths": ("htfi_eval.bench.paths:command", "Many price paths at once."),
    "link": ("htfi_eval.bench.link.command:command", "Edge and cloud over links of many round trips."),
    "narrative": ("htfi_eval.bench.news:command", "Time and memory from a raw news item to its scores."),
    "reading": ("htfi_eval.bench.run_cost:command", "What reading the news costs a run."),
    "headlines": ("htfi_eval.bench.headlines:command", "Time from a headline to the decision it triggers."),
    "governance": (
        "htfi_eval.bench.governance.command:command",
        "How soon a stop holds; what checks cost.",
    ),
    "execution": (
        "htfi_eval.bench.execution.command:command",
        "The gate, order entry, the simulated venue.",
    ),
    "service": ("htfi_eval.bench.service.command:command", "Answers and streams of `htfi serve`."),
    "buffering": ("htfi_eval.bench.buffering:command", "Views read before a scheduled announcement."),
}


@click.group("eval", cls=LazyGroup, lazy=EVALUATIONS)
def evaluate() -> None:
    """Evaluate forecasts, models and the news sanitiser against baselines.

    \b
    Examples:
      htfi eval mini                          the shipped models
      htfi eval mini --html build/mini.html   the same, with a page
      htfi eval returns                       forecasts of returns, on real data
      htfi eval report                        one page of all results
    """


@click.group("bench", cls=LazyGroup, lazy=BENCHMARKS)
def bench() -> None:
    """Measure latency, throughput and memory, compared with other libraries if they are installed.

    \b
    Examples:
      htfi bench ticks                      one event, a replay, a decision
      htfi bench ledger --json ledger.json  the same, and figures in JSON
      htfi bench decode --html decode.html  speculative decoding, with a page
    """
