// What the service answers: its bodies as types, and how they are asked for.

export interface Series {
  series: string;
  symbol: string;
  interval: string;
  num_decisions: number;
  newest_index: number;
  newest_released: number | null;
}

export interface Horizon {
  bars: number;
  log_returns: number[];
  prices: number[];
  low: number;
  high: number;
}

export interface Forecast {
  series: string;
  symbol: string;
  interval: string;
  as_of: string;
  as_of_ns: number;
  decision_id: string;
  index: number;
  regime: string;
  rung: string;
  verdict: string;
  last_price: number;
  levels: number[];
  horizons: Horizon[];
  weights: Record<string, number>;
  rationale: string;
}

export interface ChartData {
  series: string;
  times_s: number[];
  prices: number[];
  low: (number | null)[];
  high: (number | null)[];
  fan_times_s: number[];
  fan_levels: number[];
  fan: number[][];
}

export interface Health {
  status: string;
  reason: string;
  is_running: boolean;
  num_entries: number;
  num_series: number;
}

export interface Section {
  title: string;
  lines: string[];
}

export interface Proof {
  index: number;
  entry: string;
  path: string[];
  checkpoint: string;
  log_key: string;
}

export interface ScenarioPosition {
  series: string;
  price: number;
  quantiles: number[];
}

export interface ScenarioAnswer {
  levels: number[];
  horizon: number;
  positions: ScenarioPosition[];
  scenarios: { kind: string; positions: ScenarioPosition[]; rationale: { text: string } }[];
  notes: string[];
}

export interface Session {
  tenant: string; // empty where the service has no keys
  name: string;
  scopes: string[];
}

export class ProblemError extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

/** What is told when the service no longer knows who asks. */
export const refused = new EventTarget();

async function answered<T>(answer: Response): Promise<T> {
  const body = await answer.json().catch(() => ({ detail: `the service answered ${answer.status}` }));
  if (answer.ok) return body as T;
  if (answer.status === 401) refused.dispatchEvent(new Event("refused"));
  throw new ProblemError(answer.status, body.detail);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return answered<T>(await fetch(path, { signal }));
}

/** With `once` the service does it once, however often it is sent. */
export async function post<T>(path: string, body: unknown, signal?: AbortSignal, once?: string): Promise<T> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (once !== undefined) headers["Idempotency-Key"] = once;
  return answered<T>(await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

/** A name for a request, random. */
export function requestName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
}

/** A series as part of a path: each part escaped, the slash between symbol and interval kept. */
export function seriesPath(series: string): string {
  return series.split("/").map(encodeURIComponent).join("/");
}
