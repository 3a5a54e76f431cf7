"""Orders and quotes through NautilusTrader's backtest, in a process of its own: JSON in, JSON out.

In: `tick`, `take_fee`, `make_fee` (shares of the value, as text), `quotes` [at_ns, bid, ask, bid_size, ask_size] and
`requests` [at_ns, order_id, side, quantity, price], side 0 for a cancel. Out: `fills` [order_id, quantity, price,
at_ns, fee, is_taker], `position` and `net`, the result with what is held at the last quote.
"""

import json
import sys
from decimal import Decimal
from typing import Any

from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
from nautilus_trader.backtest.models import FillModel, MakerTakerFeeModel
from nautilus_trader.config import LoggingConfig, StrategyConfig
from nautilus_trader.model.currencies import USD
from nautilus_trader.model.data import QuoteTick
from nautilus_trader.model.enums import AccountType, BookType, LiquiditySide, OmsType, OrderSide, TimeInForce
from nautilus_trader.model.identifiers import ClientOrderId, InstrumentId, Symbol, Venue
from nautilus_trader.model.instruments import Equity
from nautilus_trader.model.objects import Money, Price, Quantity
from nautilus_trader.trading.strategy import Strategy

CAPITAL = 10_000_000
ID = InstrumentId.from_str("AAA.XSIM")


class Replay(Strategy):
    """Sends each request at its instant, by the clock of the backtest."""

    def __init__(self, requests: list[list[Any]]) -> None:
        super().__init__(StrategyConfig())
        self.requests = requests
        self.fills: list[list[Any]] = []

    def on_start(self) -> None:
        for place, request in enumerate(self.requests):
            self.clock.set_time_alert_ns(f"{place}", request[0], lambda _, request=request: self.act(request))

    def act(self, request: list[Any]) -> None:
        _, order_id, side, quantity, price = request
        if side == 0:
            order = self.cache.order(ClientOrderId(order_id))
            if not order.is_closed:
                self.cancel_order(order)
            return
        self.submit_order(
            self.order_factory.limit(
                ID,
                OrderSide.BUY if side > 0 else OrderSide.SELL,
                Quantity.from_int(quantity),
                Price.from_str(price),
                time_in_force=TimeInForce.GTC,
                client_order_id=ClientOrderId(order_id),
            )
        )

    def on_order_filled(self, event: Any) -> None:
        self.fills.append([
            event.client_order_id.value, int(event.last_qty), str(event.last_px), event.ts_event,
            str(event.commission.as_decimal()), event.liquidity_side == LiquiditySide.TAKER,
        ])  # fmt: skip


def replay(asked: dict[str, Any]) -> dict[str, Any]:
    engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True)))
    venue = Venue("XSIM")
    engine.add_venue(
        venue=venue,
        oms_type=OmsType.NETTING,
        account_type=AccountType.MARGIN,
        base_currency=USD,
        starting_balances=[Money(CAPITAL, USD)],
        fill_model=FillModel(prob_fill_on_limit=1.0, prob_slippage=0.0),
        fee_model=MakerTakerFeeModel(),
        book_type=BookType.L1_MBP,
    )
    engine.add_instrument(
        Equity(
            instrument_id=ID,
            raw_symbol=Symbol("AAA"),
            currency=USD,
            price_precision=-Decimal(asked["tick"]).as_tuple().exponent,
            price_increment=Price.from_str(asked["tick"]),
            lot_size=Quantity.from_int(1),
            maker_fee=Decimal(asked["make_fee"]),
            taker_fee=Decimal(asked["take_fee"]),
            ts_event=0,
            ts_init=0,
        )
    )
    for at_ns, bid, ask, *sizes in asked["quotes"]:
        shown = [Quantity.from_str(size) for size in sizes]
        engine.add_data([QuoteTick(ID, Price.from_str(bid), Price.from_str(ask), *shown, at_ns, at_ns)])
    strategy = Replay(asked["requests"])
    engine.add_strategy(strategy)
    engine.run()
    held = engine.portfolio.unrealized_pnl(ID)
    earned = engine.portfolio.account(venue).balance_total(USD).as_decimal() - CAPITAL
    return {
        "fills": strategy.fills,
        "position": int(engine.portfolio.net_position(ID)),
        "net": str(earned + (held.as_decimal() if held is not None else 0)),
    }


if __name__ == "__main__":
    json.dump(replay(json.load(sys.stdin)), sys.stdout)
