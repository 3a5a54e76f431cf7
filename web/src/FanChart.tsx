// Prices of a series with the bands that were forecast for them, the fan ahead, and a what-if's fan over it.

import { createChart, LineSeries, type IChartApi, type ISeriesApi, type UTCTimestamp } from "lightweight-charts";
import { memo, useEffect, useRef } from "react";
import type { ChartData } from "./api";
import { BandSeries, type Band } from "./bands";
import type { Theme } from "./theme";

export interface WhatIfBand {
  bars: number;
  low: number;
  middle: number;
  high: number;
}

interface Props {
  data: ChartData;
  theme: Theme;
  whatIf: WhatIfBand | null;
}

interface Drawn {
  chart: IChartApi;
  price: ISeriesApi<"Line">;
  median: ISeriesApi<"Line">;
  asked: ISeriesApi<"Line">;
  past: ISeriesApi<"Custom">;
  wide: ISeriesApi<"Custom">;
  narrow: ISeriesApi<"Custom">;
  askedBand: ISeriesApi<"Custom">;
}

const at = (seconds: number) => seconds as UTCTimestamp;

function draw(place: HTMLElement): Drawn {
  const chart = createChart(place, {
    autoSize: true,
    layout: { attributionLogo: false, background: { color: "transparent" }, fontFamily: "inherit", fontSize: 12 },
    rightPriceScale: { borderVisible: false, scaleMargins: { top: 0.08, bottom: 0.08 } },
    timeScale: { borderVisible: false, timeVisible: true, secondsVisible: false, rightOffset: 1 },
    crosshair: { mode: 0 },
  });
  const quiet = { lastValueVisible: false, priceLineVisible: false } as const;
  const band = () => chart.addCustomSeries(new BandSeries(), { ...quiet }) as unknown as ISeriesApi<"Custom">;
  const [past, wide, narrow, askedBand] = [band(), band(), band(), band()];
  const line = (dashed: boolean) =>
    chart.addSeries(LineSeries, {
      ...quiet,
      lineWidth: 2,
      lineStyle: dashed ? 2 : 0,
      crosshairMarkerVisible: !dashed,
    });
  return { chart, past, wide, narrow, askedBand, median: line(true), asked: line(true), price: line(false) };
}

function paint(drawn: Drawn, theme: Theme): void {
  const { chart } = drawn;
  chart.applyOptions({
    layout: { textColor: theme.quiet },
    grid: { vertLines: { visible: false }, horzLines: { color: theme.line } },
  });
  drawn.price.applyOptions({ color: theme.ink });
  drawn.median.applyOptions({ color: theme.accent });
  drawn.asked.applyOptions({ color: theme.warm });
  drawn.past.applyOptions({ fill: `${theme.accent}1c` } as object);
  drawn.wide.applyOptions({ fill: `${theme.accent}30` } as object);
  drawn.narrow.applyOptions({ fill: `${theme.accent}50` } as object);
  drawn.askedBand.applyOptions({ fill: `${theme.warm}40` } as object);
}

function fill(drawn: Drawn, data: ChartData): void {
  const times = data.times_s.map(at);
  drawn.price.setData(times.map((time, k) => ({ time, value: data.prices[k] as number })));
  drawn.past.setData(
    times.flatMap((time, k) => (data.low[k] == null ? [] : [{ time, low: data.low[k], high: data.high[k] } as Band])),
  );
  const ahead = data.fan_times_s.map(at);
  const level = (k: number, place: number) => (data.fan[k] as number[])[place] as number;
  const band = (one: number, other: number) =>
    ahead.map((time, k) => ({ time, low: level(k, one), high: level(k, other) }) as Band);
  drawn.wide.setData(band(0, 4));
  drawn.narrow.setData(band(1, 3));
  drawn.median.setData(ahead.map((time, k) => ({ time, value: level(k, 2) })));
}

function fillWhatIf(drawn: Drawn, data: ChartData, whatIf: WhatIfBand | null): void {
  const last = data.prices.at(-1);
  const start = data.fan_times_s[0];
  const end = data.fan_times_s[Math.min(whatIf?.bars ?? 1, data.fan_times_s.length - 1)];
  if (whatIf === null || last === undefined || start === undefined || end === undefined) {
    drawn.asked.setData([]);
    drawn.askedBand.setData([]);
    return;
  }
  drawn.asked.setData([
    { time: at(start), value: last },
    { time: at(end), value: whatIf.middle },
  ]);
  drawn.askedBand.setData([
    { time: at(start), low: last, high: last } as Band,
    { time: at(end), low: whatIf.low, high: whatIf.high } as Band,
  ]);
}

export const FanChart = memo(function FanChart({ data, theme, whatIf }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<Drawn | null>(null);
  const shown = useRef("");
  useEffect(() => {
    if (place.current === null) return undefined;
    const made = draw(place.current);
    drawn.current = made;
    return () => {
      drawn.current = null;
      shown.current = "";
      made.chart.remove();
    };
  }, []);
  useEffect(() => {
    if (drawn.current !== null) paint(drawn.current, theme);
  }, [theme]);
  useEffect(() => {
    if (drawn.current === null) return;
    fill(drawn.current, data);
    if (shown.current !== data.series) {
      shown.current = data.series;
      const num = data.times_s.length + data.fan_times_s.length;
      drawn.current.chart.timeScale().setVisibleLogicalRange({ from: Math.max(num - 140, 0), to: num });
    }
  }, [data]);
  useEffect(() => {
    if (drawn.current !== null) fillWhatIf(drawn.current, data, whatIf);
  }, [data, whatIf]);
  const last = data.prices.at(-1);
  return (
    <div className="chart" ref={place} role="img" aria-label={`Prices of ${data.series}, newest ${last}, and the fan ahead`} />
  );
});
