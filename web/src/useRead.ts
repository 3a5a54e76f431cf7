// What a path answers, read again every few seconds while it is looked at; a reading that says the same changes nothing.

import { useCallback, useEffect, useRef, useState } from "react";
import { get, ProblemError } from "./api";

/** A page of a listing: the first, of 100. */
export interface Page<T> {
  items: T[];
  next: number | null;
}

export interface Read<T> {
  body: T | null;
  problem: string;
  isMissing: boolean; // the run has no such thing
  again: () => void;
}

const EVERY_MS = 3_000;

export function useRead<T>(path: string | null, everyMs = EVERY_MS): Read<T> {
  const [found, setFound] = useState<{ path: string; text: string; body: T } | null>(null);
  const [problem, setProblem] = useState("");
  const [isMissing, setMissing] = useState(false);
  const wake = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (path === null) return undefined;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      clearTimeout(timer);
      try {
        const body = await get<T>(path, controller.signal);
        const text = JSON.stringify(body);
        setFound((before) => (before?.path === path && before.text === text ? before : { path, text, body }));
        setProblem("");
        setMissing(false);
      } catch (error) {
        if (controller.signal.aborted) return;
        setMissing(error instanceof ProblemError && error.status === 404);
        setProblem((error as Error).message);
      }
      timer = setTimeout(() => void read(), everyMs);
    };
    wake.current = () => void read();
    void read();
    return () => {
      controller.abort();
      clearTimeout(timer);
      wake.current = () => undefined;
    };
  }, [path, everyMs]);
  const again = useCallback(() => wake.current(), []);
  return { body: found?.path === path ? found.body : null, problem, isMissing, again };
}
