// How many prices lay inside the bands that were forecast for them.

import type { ChartData } from "./api";

export function insideOf(chart: ChartData): { inside: number; judged: number } {
  let inside = 0;
  let judged = 0;
  chart.prices.forEach((one, k) => {
    const [low, high] = [chart.low[k], chart.high[k]];
    if (low == null || high == null) return;
    judged += 1;
    if (one >= low && one <= high) inside += 1;
  });
  return { inside, judged };
}
