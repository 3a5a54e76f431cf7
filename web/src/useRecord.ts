// The record as the page has it: series, and the newest lines as they come. A stream that breaks resumes by itself.

import { useEffect, useState } from "react";
import { get, type Health, type Series } from "./api";

export interface Line {
  index: number;
  id: string;
  series: string;
  verdict: string;
  lastPrice: number;
  asOfNs: number;
}

interface RawLine {
  index: number;
  deleted?: string;
  withheld?: boolean;
  id?: string;
  symbol?: string;
  interval?: string;
  last_price?: number;
  as_of_ns?: number;
  decision?: { id: string; symbol: string; interval: string; last_price: number; as_of_ns: number; verdict: { outcome: string } };
}

export interface Live {
  series: Series[];
  lines: Line[]; // newest first
  health: Health | null;
  isConnected: boolean | null; // null: not yet
  newest: ReadonlyMap<string, Line>; // by series
}

const NUM_LINES = 200;
const HEALTH_MS = 5_000;
const AGAIN_MS = 1_000;

function parsed(raw: RawLine): Line | null {
  const about = raw.decision ?? raw;
  if (about.id === undefined || about.symbol === undefined) return null;
  return {
    index: raw.index,
    id: about.id,
    series: `${about.symbol}/${about.interval}`,
    verdict: raw.decision === undefined ? "withheld" : raw.decision.verdict.outcome,
    lastPrice: about.last_price ?? 0,
    asOfNs: about.as_of_ns ?? 0,
  };
}

export function useRecord(): Live {
  const [live, setLive] = useState<Live>({ series: [], lines: [], health: null, isConnected: null, newest: new Map() });
  useEffect(() => {
    let pending: Line[] = [];
    let frame = 0;
    let socket: WebSocket | null = null;
    let again: ReturnType<typeof setTimeout> | undefined;
    let isClosed = false;
    const change = (part: Partial<Live>) => !isClosed && setLive((before) => ({ ...before, ...part }));
    const readSeries = async () => change({ series: (await get<{ items: Series[] }>("v1/series")).items });
    const readHealth = async () => {
      const health = await get<Health>("v1/health").catch(
        (error: Error): Health => ({ status: "failed", reason: error.message, is_running: false, num_entries: 0, num_series: 0 }),
      );
      change({ health });
      return health;
    };
    const show = () => {
      const lines = pending;
      pending = [];
      frame = 0;
      setLive((before) => {
        const newest = new Map(before.newest);
        for (const line of lines) newest.set(line.series, line);
        if (newest.size > before.newest.size) void readSeries().catch(() => undefined);
        return { ...before, newest, lines: [...lines.reverse(), ...before.lines].slice(0, NUM_LINES) };
      });
    };
    // By WebSocket: of event streams a browser opens six to one server, over all of its tabs.
    const follow = (from: number) => {
      let next = from;
      socket = new WebSocket(`${location.origin.replace("http", "ws")}/v1/ws?from=${from}`);
      socket.onopen = () => change({ isConnected: true });
      socket.onmessage = (event: MessageEvent<string>) => {
        const raw = JSON.parse(event.data) as RawLine;
        next = raw.index + 1;
        const line = parsed(raw);
        if (line === null) return;
        pending.push(line);
        if (frame === 0) frame = requestAnimationFrame(show);
      };
      socket.onclose = () => {
        change({ isConnected: false });
        if (!isClosed) again = setTimeout(() => follow(next), AGAIN_MS);
      };
    };
    const open = async () => {
      const health = await readHealth();
      await readSeries().catch(() => undefined);
      if (!isClosed) follow(Math.max(health.num_entries - NUM_LINES, 0));
    };
    void open();
    const timer = setInterval(() => void readHealth(), HEALTH_MS);
    return () => {
      isClosed = true;
      clearInterval(timer);
      clearTimeout(again);
      cancelAnimationFrame(frame);
      socket?.close();
    };
  }, []);
  return live;
}
