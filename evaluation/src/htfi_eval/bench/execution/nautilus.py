"""NautilusTrader's backtest on the same quotes, trades and orders as the simulated venue: its events a second."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any

from htfi.domain.errors import is_installed
from htfi.domain.events import Quote, Trade
from htfi_eval.bench.execution.venue_flow import LOTS, make_events, orders_of

PACKAGE = "nautilus_trader"
_CAPITAL = 10_000_000_000


def events_per_s(num: int) -> float | None:
    """Events a second of its engine, in a process of its own, since its import changes the event loop of all.

    None where it is not installed.
    """
    if not is_installed(PACKAGE):
        return None
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(num)], check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1])


def main(num: int) -> None:
    """Print the rate over so many events."""
    events = make_events(num)
    engine, instrument = _engine()
    objects: Any = import_module(f"{PACKAGE}.model.objects")
    engine.add_data([_tick(event, instrument.id, objects) for event in events])
    engine.add_strategy(_buyer(instrument.id, orders_of(events)))
    began = time.perf_counter()
    engine.run()
    sys.stdout.write(f"{len(events) / (time.perf_counter() - began)}\n")


def _engine() -> tuple[Any, Any]:
    """An engine with one stock at one venue, that matches against the best quotes and the trades."""
    backtest: Any = import_module(f"{PACKAGE}.backtest.engine")
    models: Any = import_module(f"{PACKAGE}.backtest.models")
    config: Any = import_module(f"{PACKAGE}.config")
    enums: Any = import_module(f"{PACKAGE}.model.enums")
    identifiers: Any = import_module(f"{PACKAGE}.model.identifiers")
    objects: Any = import_module(f"{PACKAGE}.model.objects")
    usd: Any = import_module(f"{PACKAGE}.model.currencies").USD
    engine = backtest.BacktestEngine(
        backtest.BacktestEngineConfig(logging=config.LoggingConfig(bypass_logging=True))
    )
    engine.add_venue(
        venue=identifiers.Venue("XSIM"),
        oms_type=enums.OmsType.NETTING,
        account_type=enums.AccountType.MARGIN,
        base_currency=usd,
        starting_balances=[objects.Money(_CAPITAL, usd)],
        fill_model=models.FillModel(prob_fill_on_limit=1.0, prob_slippage=0.0),
        fee_model=models.MakerTakerFeeModel(),
        book_type=enums.BookType.L1_MBP,
        trade_execution=True,
    )
    instrument = import_module(f"{PACKAGE}.model.instruments").Equity(
        instrument_id=identifiers.InstrumentId.from_str("ACME.XSIM"),
        raw_symbol=identifiers.Symbol("ACME"),
        currency=usd,
        price_precision=2,
        price_increment=objects.Price.from_str("0.01"),
        lot_size=objects.Quantity.from_int(1),
        maker_fee=Decimal(0),
        taker_fee=Decimal("0.0001"),
        ts_event=0,
        ts_init=0,
    )
    engine.add_instrument(instrument)
    return engine, instrument


def _tick(event: Quote | Trade, instrument_id: Any, objects: Any) -> Any:
    data: Any = import_module(f"{PACKAGE}.model.data")
    at = event.available_at_ns
    if isinstance(event, Quote):
        prices = (objects.Price(event.bid, 2), objects.Price(event.ask, 2))
        sizes = (objects.Quantity.from_int(int(one or 0)) for one in (event.bid_size, event.ask_size))
        return data.QuoteTick(instrument_id, *prices, *sizes, at, at)
    enums: Any = import_module(f"{PACKAGE}.model.enums")
    trade_id: Any = import_module(f"{PACKAGE}.model.identifiers").TradeId(str(event.row))
    size = objects.Quantity.from_int(int(event.size))
    price = objects.Price(event.price, 2)
    return data.TradeTick(instrument_id, price, size, enums.AggressorSide.NO_AGGRESSOR, trade_id, at, at)


def _buyer(instrument_id: Any, orders: Sequence[tuple[int, Decimal]]) -> Any:
    """A strategy that sends limit orders by the clock of the backtest."""
    base: Any = import_module(f"{PACKAGE}.trading.strategy").Strategy
    config: Any = import_module(f"{PACKAGE}.config").StrategyConfig
    enums: Any = import_module(f"{PACKAGE}.model.enums")
    objects: Any = import_module(f"{PACKAGE}.model.objects")

    class Buyer(base):
        def on_start(self) -> None:
            self.subscribe_quote_ticks(instrument_id)
            for number, (at_ns, price) in enumerate(orders):
                self.clock.set_time_alert_ns(f"{number}", at_ns, self.buyer(price))

        def buyer(self, price: Decimal) -> Callable[[object], None]:
            def buy(_: object) -> None:
                self.submit_order(
                    self.order_factory.limit(
                        instrument_id,
                        enums.OrderSide.BUY,
                        objects.Quantity.from_int(LOTS),
                        objects.Price(price, 2),
                        time_in_force=enums.TimeInForce.GTC,
                    )
                )

            return buy

    return Buyer(config())


if __name__ == "__main__":
    main(int(sys.argv[1]))
