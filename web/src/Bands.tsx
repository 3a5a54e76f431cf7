// How the bands have held so far: for each series the share of its prices inside the 90% bands forecast for them.

import { useEffect, useState } from "react";
import { get, seriesPath, type ChartData, type Series } from "./api";
import { insideOf } from "./calibration";
import { percent } from "./format";
import { Rows } from "./Rows";

const MAX_SERIES = 100;
const REST_MS = 5_000;

type Held = ReadonlyMap<string, { inside: number; judged: number }>;

export function Bands({ series }: { series: Series[] }) {
  const [held, setHeld] = useState<Held>(new Map());
  const names = series
    .filter((one) => one.newest_released !== null)
    .slice(0, MAX_SERIES)
    .map((one) => one.series);
  const key = JSON.stringify(names);
  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      const found = new Map<string, { inside: number; judged: number }>();
      for (const name of JSON.parse(key) as string[]) {
        const chart = await get<ChartData>(`v1/charts/${seriesPath(name)}`, controller.signal).catch(() => null);
        if (controller.signal.aborted) return;
        if (chart !== null) found.set(name, insideOf(chart));
      }
      setHeld(found);
      timer = setTimeout(() => void read(), REST_MS);
    };
    void read();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [key]);
  const judged = [...held.entries()].filter(([, one]) => one.judged > 0);
  const all = judged.reduce((sum, [, one]) => ({ inside: sum.inside + one.inside, judged: sum.judged + one.judged }), { inside: 0, judged: 0 });
  const rows = [...judged, ...(judged.length > 1 ? ([["all", all]] as [string, typeof all][]) : [])];
  return (
    <section aria-labelledby="bands">
      <h2 id="bands">Prices inside their 90% bands</h2>
      <p className="quiet">Of the newest prices of each series, judged against the band that the decision before had forecast.</p>
      <Rows
        caption="Prices inside their bands, by series"
        columns={["series", "inside", "prices", "share", ""]}
        empty={held.size === 0 ? "Reading …" : "No price has come after a forecast yet."}
        rows={rows.map(([name, one], k) => ({
          key: `${k} ${name}`,
          cells: [
            <bdi>{name}</bdi>,
            one.inside,
            one.judged,
            percent(one.inside / one.judged),
            <meter min={0} max={1} value={one.inside / one.judged} aria-label={`Share of ${name}`} />,
          ],
        }))}
      />
      {series.length > MAX_SERIES && <p className="quiet">The first {MAX_SERIES} series of {series.length}.</p>}
    </section>
  );
}
