"""A WebSocket server that drops, garbles and comes back costs no row that arrived and never stops the feed."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from htfi.adapters.feeds import websocket
from htfi.adapters.feeds.websocket import reconnect_delay_s
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import FeedItem, TimePassed, Trade
from htfi.domain.time import NS_PER_S, SystemClock, format_ns
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.wiring.feeds import open_feed, resolve

T0_NS = 1_381_132_800 * NS_PER_S
Handler = Callable[[ServerConnection], None]


@contextmanager
def server(handler: Handler, port: int = 0) -> Iterator[str]:
    with serve(handler, "127.0.0.1", port) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{running.socket.getsockname()[1]}"
        finally:
            running.shutdown()
            thread.join()


@contextmanager
def feed(
    folder: Path, *paths: str, mapping: str = "", position: Any = None
) -> Iterator[tuple[MergedFeed, QuarantineFile]]:
    quarantine = QuarantineFile(folder / "q.jsonl", position["quarantine"] if position else None)
    file = folder / "m.toml"
    file.write_text(mapping, encoding="utf-8")
    merged = open_feed(
        resolve(list(paths), file if mapping else None),
        inbox=folder / "inbox",
        quarantine=quarantine,
        clock=SystemClock(),
        position=position["feed"] if position else None,
    )
    try:
        yield merged, quarantine
    finally:
        merged.close()
        quarantine.close()


def hold(connection: ServerConnection) -> None:
    """Keep the connection open until the other side ends it."""
    with suppress(ConnectionClosed):
        connection.recv()


def row(number: int) -> str:
    return json.dumps({"ts": format_ns(T0_NS + number * NS_PER_S), "symbol": "A", "price": number})


def take(merged: MergedFeed, count: int) -> list[float]:
    """Prices of the next trades; time may pass between them."""
    found: list[float] = []
    for item in merged:
        if isinstance(item, Trade):
            found.append(item.price)
        if len(found) == count:
            break
    return found


def test_rows_come_in_order_of_arrival_after_the_subscription(tmp_path: Path) -> None:
    heard: list[str | bytes] = []

    def handler(connection: ServerConnection) -> None:
        heard.append(connection.recv())
        connection.send(row(2))
        connection.send(f"[{row(1)}, {row(3)}]")
        connection.send(f"{row(4)}\n{row(5)}\n".encode())
        hold(connection)

    with server(handler) as url:
        mapping = f'[[source]]\nname="live"\nurl="{url}"\nsubscribe=\'{{"op":"all"}}\'\n'
        with feed(tmp_path, mapping=mapping) as (merged, _):
            assert take(merged, 5) == [2.0, 1.0, 3.0, 4.0, 5.0]
    assert heard == ['{"op":"all"}']
    assert len((tmp_path / "inbox" / "live.jsonl").read_bytes().splitlines()) == 5


def test_garbled_messages_are_set_aside(tmp_path: Path) -> None:
    def handler(connection: ServerConnection) -> None:
        for message in ("no json", b"\xff\xfe", "[1,", '{"price":-1,"symbol":"A"}', row(1)):
            connection.send(message)
        hold(connection)

    with server(handler) as url, feed(tmp_path, url) as (merged, quarantine):
        assert take(merged, 1) == [1.0]
        assert quarantine.counts() == {"bad_encoding": 1, "bad_price": 1, "malformed": 2}


def test_a_dropped_connection_is_made_again_and_repeats_are_refused(tmp_path: Path) -> None:
    connections = iter(range(100))

    def handler(connection: ServerConnection) -> None:
        nth = next(connections)
        connection.send(row(nth))
        connection.send(row(nth + 1))
        if nth == 1:
            connection.socket.close()  # without a closing handshake
        elif nth > 2:
            hold(connection)

    with server(handler) as url, feed(tmp_path, url) as (merged, quarantine):
        prices = take(merged, 4)
        assert prices[:2] == [0.0 + 1, 2.0]
        assert prices == sorted(set(prices))
        counts = quarantine.counts()
    assert counts["bad_price"] == 1  # the price of row 0
    assert set(counts) <= {"bad_price", "duplicate"}


def test_a_frame_that_is_no_text_only_costs_the_connection(tmp_path: Path) -> None:
    connections = iter(range(100))

    def handler(connection: ServerConnection) -> None:
        nth = next(connections)
        if nth == 0:
            connection.socket.sendall(b"\x81\x02\xff\xfe")  # a text frame that is not UTF-8
        connection.send(row(nth + 1))
        hold(connection)

    with server(handler) as url, feed(tmp_path, url) as (merged, _):
        assert len(take(merged, 1)) == 1


def test_a_server_that_comes_back_later_is_found(tmp_path: Path) -> None:
    def handler(connection: ServerConnection) -> None:
        connection.send(row(1))
        hold(connection)

    with server(handler) as url:
        pass
    port = int(url.rsplit(":", 1)[1])
    with feed(tmp_path, url) as (merged, _):
        found: list[float] = []
        reader = threading.Thread(target=lambda: found.extend(take(merged, 1)))
        reader.start()
        with server(handler, port):
            reader.join(timeout=10)
    assert found == [1.0]


def test_a_server_that_is_never_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "FIRST_CONNECT_S", 0.3)
    with server(lambda _: None) as url:
        pass
    with feed(tmp_path, url) as (merged, _), pytest.raises(DependencyUnavailable) as caught:
        list(merged)
    assert str(caught.value).startswith(f"{url}: no connection (")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["ws://", "ws://host:port"])
def test_an_address_that_is_none_is_one_line(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not a WebSocket address: write ws://HOST:PORT/PATH"):
        resolve([url])


def test_a_killed_run_goes_on_from_its_inbox(tmp_path: Path) -> None:
    def handler(connection: ServerConnection) -> None:
        for number in range(1, 7):
            connection.send(row(number))
        hold(connection)

    with server(handler) as url:
        with feed(tmp_path, url) as (merged, _):
            assert take(merged, 6) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        with feed(tmp_path, url) as (merged, _):  # killed before its first save
            assert take(merged, 2) == [1.0, 2.0]
            position = {"feed": merged.position(), "quarantine": {"num_bytes": 0, "counts": {}}}
        with feed(tmp_path, url, position=position) as (merged, _):
            assert take(merged, 4) == [3.0, 4.0, 5.0, 6.0]


def test_files_run_past_a_silent_server(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text("\n".join(map(row, range(1, 4))), encoding="utf-8")

    with server(hold) as url, feed(tmp_path, url, str(file)) as (merged, _):
        items = iter(merged)
        found: list[FeedItem] = []
        while len(found) < 3 or not isinstance(found[-1], TimePassed):
            found.append(next(items))
    assert [item.price for item in found if isinstance(item, Trade)] == [1.0, 2.0, 3.0]


def test_delays_double_to_a_cap_and_differ() -> None:
    assert 0.05 <= reconnect_delay_s(0) <= 0.1
    assert 15.0 <= reconnect_delay_s(1000) <= 30.0
    assert len({reconnect_delay_s(3) for _ in range(20)}) > 10
