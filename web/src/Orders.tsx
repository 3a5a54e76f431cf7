// Of a run that trades: positions, orders, what trading cost.

import type { Act } from "./ActDialog";
import { cancelOf } from "./acts";
import { instant, known, money, percent, price } from "./format";
import { Rows } from "./Rows";
import { useRead } from "./useRead";

interface Order {
  number: number;
  order: string;
  sent: string;
  instrument: string;
  venue: string;
  side: string;
  lots: number;
  limit: string | null;
  status: string;
  is_open: boolean;
  filled: number;
  average_price: number | null;
  slippage_bps: number | null;
  reason: string;
}

interface Position {
  account: string;
  instrument: string;
  lots: number;
  price: number | null;
  realised: number;
  unrealised: number;
  fees: number;
  net: number;
}

interface Cost {
  name: string;
  num_orders: number;
  num_refused: number;
  num_fills: number;
  filled_share: number;
  slippage_bps: number | null;
  spread_bps: number | null;
  move_bps: number | null;
  fees_bps: number | null;
  missed_bps: number | null;
  cost_bps: number | null;
}

interface Costs {
  groups: Cost[];
  all: Cost | null;
}

export function Orders({ onAct }: { onAct: ((act: Act) => void) | null }) {
  const orders = useRead<{ items: Order[] }>("v1/orders?limit=50");
  const has = orders.body !== null;
  const positions = useRead<{ items: Position[]; problems: string[] }>(has ? "v1/positions" : null);
  const costs = useRead<Costs>(has ? "v1/costs?by=instrument" : null, 10_000);
  if (orders.isMissing) return <p className="empty">This run does not trade: it has no orders.</p>;
  if (orders.body === null) return <p className="empty">{orders.problem || "Reading …"}</p>;
  const bps = (value: number | null) => known(value, (one) => one.toFixed(1));
  const groups = [...(costs.body?.groups ?? []), ...(costs.body?.all ? [costs.body.all] : [])];
  return (
    <>
      <section aria-labelledby="positions">
        <h2 id="positions">Positions</h2>
        {positions.body?.problems.map((one) => (
          <p key={one} className="wrong">
            {one}
          </p>
        ))}
        <Rows
          caption="Positions"
          columns={["instrument", "account", "lots", "price", "realised", "unrealised", "fees", "net"]}
          empty="Nothing is held."
          rows={(positions.body?.items ?? []).map((one) => ({
            key: `${one.account} ${one.instrument}`,
            cells: [
              <bdi>{one.instrument}</bdi>,
              <bdi>{one.account}</bdi>,
              one.lots.toLocaleString("en-US"),
              known(one.price, price),
              money(one.realised),
              money(one.unrealised),
              money(one.fees),
              money(one.net),
            ],
          }))}
        />
      </section>
      <section aria-labelledby="costs">
        <h2 id="costs">Costs, in basis points</h2>
        <Rows
          caption="Costs by instrument, in basis points"
          columns={["instrument", "orders", "refused", "fills", "filled", "slippage", "spread", "move", "fees", "missed", "cost"]}
          empty="Nothing was filled."
          rows={groups.map((one) => ({
            key: one.name,
            cells: [
              <bdi>{one.name}</bdi>,
              one.num_orders,
              one.num_refused,
              one.num_fills,
              percent(one.filled_share, 0),
              bps(one.slippage_bps),
              bps(one.spread_bps),
              bps(one.move_bps),
              bps(one.fees_bps),
              bps(one.missed_bps),
              bps(one.cost_bps),
            ],
          }))}
        />
      </section>
      <section aria-labelledby="orders">
        <h2 id="orders">Newest orders</h2>
        <Rows
          caption="Newest orders"
          columns={["order", "sent", "instrument", "side", "lots", "filled", "price", "slippage, bp", "status", ""]}
          empty="None was sent."
          rows={orders.body.items.map((one) => ({
            key: one.order,
            cells: [
              <a href={`v1/orders/${encodeURIComponent(one.order)}`}>{one.order}</a>,
              instant(one.sent),
              <bdi>{one.instrument}</bdi>,
              one.side,
              one.lots,
              one.filled,
              known(one.average_price, price),
              bps(one.slippage_bps),
              <span title={one.reason}>{one.status.replaceAll("_", " ")}</span>,
              one.is_open && onAct !== null && (
                <button type="button" onClick={() => onAct(cancelOf(one.order))}>
                  Cancel<span className="hidden"> {one.order}</span> …
                </button>
              ),
            ],
          }))}
        />
      </section>
    </>
  );
}
