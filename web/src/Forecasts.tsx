// The first view: series on the left, the chosen one's chart and reasons in the middle, what-if and record on the right.

import { memo, useState } from "react";
import type { ChartData } from "./api";
import { FanChart, type WhatIfBand } from "./FanChart";
import { counted, percent, price } from "./format";
import { insideOf } from "./calibration";
import { Record } from "./Record";
import type { Theme } from "./theme";
import type { Line, Live } from "./useRecord";
import { useShown } from "./useShown";
import { WhatIf } from "./WhatIf";
import { Why } from "./Why";

/** How many of the prices lay inside the band that was forecast for them. */
function coverage(chart: ChartData): string {
  const { inside, judged } = insideOf(chart);
  return judged === 0 ? "" : `${percent(inside / judged, 0)} of the last ${judged} prices inside their 90% bands`;
}

const DecisionRow = memo(function DecisionRow({ line }: { line: Line }) {
  return (
    <li>
      <a href={`v1/decisions/${line.index}`}>{line.index}</a>
      <span>{line.id}</span>
      <span className={line.verdict === "release" ? "quiet" : "wrong"}>{line.verdict}</span>
    </li>
  );
});

const SeriesRow = memo(function SeriesRow({ name, words, isChosen }: { name: string; words: string; isChosen: boolean }) {
  return (
    <li>
      <a href={`#${encodeURIComponent(name)}`} aria-current={isChosen ? "true" : undefined}>
        <b>
          <bdi>{name}</bdi>
        </b>
        <span>{words}</span>
      </a>
    </li>
  );
});

interface Props {
  live: Live;
  theme: Theme;
  chosen: string | null;
  canAsk: boolean;
}

export function Forecasts({ live, theme, chosen, canAsk }: Props) {
  const [whatIf, setWhatIf] = useState<{ series: string; band: WhatIfBand | null } | null>(null);
  const series = chosen ?? live.series.find((one) => one.newest_released !== null)?.series ?? null;
  const [shown, problem] = useShown(series, series === null ? undefined : live.newest.get(series)?.index);
  const asked = whatIf !== null && whatIf.series === series ? whatIf.band : null;
  const [onBand] = useState(() => (name: string, band: WhatIfBand | null) => setWhatIf({ series: name, band }));
  return (
    <main className="forecasts">
      <nav aria-label="Series" className="series">
        <h2>Series</h2>
        <ul>
          {live.series.map((one) => {
            const line = live.newest.get(one.series);
            const words = line === undefined ? counted(one.num_decisions, "decision") : price(line.lastPrice);
            return <SeriesRow key={one.series} name={one.series} words={words} isChosen={one.series === series} />;
          })}
        </ul>
      </nav>
      <article aria-label={series ?? "No series"}>
        {shown === null ? (
          <p className="empty">{problem || (series === null ? "There is no forecast yet." : "Reading …")}</p>
        ) : (
          <>
            <h2>
              <bdi>{shown.chart.series}</bdi> <span className="last">{price(shown.forecast.last_price)}</span>
            </h2>
            <p className="quiet">{coverage(shown.chart)}</p>
            <FanChart data={shown.chart} theme={theme} whatIf={asked} />
            <p className="legend">
              <span className="price">price</span>
              <span className="wide">90% band</span>
              <span className="narrow">50% band</span>
              <span className="median">median</span>
              {asked !== null && <span className="asked">what if</span>}
            </p>
            <Why forecast={shown.forecast} />
          </>
        )}
      </article>
      <aside aria-label="What if, record, decisions">
        {series !== null && canAsk && <WhatIf key={series} series={series} onBand={onBand} />}
        <Record health={live.health} index={shown?.forecast.index ?? null} />
        <section aria-labelledby="decisions">
          <h2 id="decisions">Decisions</h2>
          <ol className="decisions" tabIndex={0} aria-label="Newest decisions">
            {live.lines.slice(0, 60).map((line) => (
              <DecisionRow key={line.index} line={line} />
            ))}
          </ol>
        </section>
      </aside>
    </main>
  );
}
