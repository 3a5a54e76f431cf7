// The chosen series' chart and forecast, read again when it has a newer decision: one reading at a time, never two.

import { useEffect, useRef, useState } from "react";
import { get, seriesPath, type ChartData, type Forecast } from "./api";

export interface Shown {
  chart: ChartData;
  forecast: Forecast;
}

const REST_MS = 250; // between two readings

export function useShown(series: string | null, newest: number | undefined): [Shown | null, string] {
  const [shown, setShown] = useState<Shown | null>(null);
  const [problem, setProblem] = useState("");
  const wanted = useRef("");
  const wake = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (series === null) return undefined;
    let isClosed = false;
    const path = seriesPath(series);
    const follow = async () => {
      let read = "";
      while (!isClosed) {
        if (wanted.current === read) {
          await new Promise<void>((done) => (wake.current = done));
          continue;
        }
        read = wanted.current;
        try {
          const [chart, forecast] = await Promise.all([
            get<ChartData>(`v1/charts/${path}`),
            get<Forecast>(`v1/forecasts/${path}`),
          ]);
          if (isClosed) return;
          setShown({ chart, forecast });
          setProblem("");
        } catch (error) {
          if (!isClosed) setProblem((error as Error).message);
        }
        await new Promise((done) => setTimeout(done, REST_MS));
      }
    };
    void follow();
    return () => {
      isClosed = true;
      wake.current();
    };
  }, [series]);
  useEffect(() => {
    wanted.current = `${series} ${newest}`;
    wake.current();
  }, [series, newest]);
  return [shown !== null && shown.chart.series === series ? shown : null, problem];
}
