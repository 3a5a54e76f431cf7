"""`htfi publish`: the decisions of a run on a bus, each once, in the ledger's order."""

import signal
import threading
from pathlib import Path
from types import FrameType

import click

EPILOG = """\b
Examples:
  htfi publish run1 --to nats://127.0.0.1:4222/DECISIONS
  htfi publish run1 --to kafka://127.0.0.1:9092/DECISIONS
  htfi publish run1 --to nats+tls://bus.example/ACME?prefix=acme --stay
"""


@click.command("publish", epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--to",
    "url",
    required=True,
    metavar="URL",
    help="nats://HOST:PORT/STREAM or kafka://HOST:PORT/TOPIC, made where it is missing.",
)
@click.option("--stay", "stays", is_flag=True, help="Go on when the run has ended: it may be resumed.")
def command(folder: Path, url: str, stays: bool) -> None:
    """Publish every entry of the ledger of the run in DIR, and each that comes.

    A message is a line of decisions.jsonl. The stream or topic is the run's own and holds how far it has come, so that
    this command continues where it was, also after kill -9. The run never waits for it.
    Credentials are in NATS_USER and NATS_PASSWORD, NATS_TOKEN, NATS_CREDS or NATS_NKEY, or in
    KAFKA_USER and KAFKA_PASSWORD.
    """
    from htfi.wiring.bus import open_decision_bus
    from htfi.wiring.service.publishing import publish_record

    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        stopping.set()

    bus = open_decision_bus(url)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    num = publish_record(
        folder,
        bus,
        stays=stays,
        stopping=stopping,
        notify=lambda line: click.echo(f"htfi: {line}", err=True),
    )
    click.echo(f"htfi: {num:,} entries are on the bus")
