"""Headlines on one company and others, with a body, for tests of news that is read ahead."""

BODY = (
    "Shares of IBM fell 4% after the firm cut its outlook. Analysts had expected a profit of $2.10 a share."
)
LINES = (
    "IBM cuts its outlook after a weak quarter",
    "  IBM   wins a large order from the army  ",
    "IBM up",
    "Microsoft to buy Acme for $2 billion",
    "Marathon world record falls in Berlin",
    "IBM reports results for its third quarter",
)
