// Which view is looked at, and which series: both stand in the address.

import { useEffect, useState } from "react";

export const VIEWS = { forecasts: "Forecasts", people: "People", news: "News", nodes: "Nodes", orders: "Orders", bands: "Bands" } as const;
export type View = keyof typeof VIEWS;

export interface Place {
  view: View;
  series: string | null;
}

/** `#/people` is a view, `#ACME%2F1d` a series. */
export function placeOf(hash: string): Place {
  const text = hash.slice(1);
  if (text.startsWith("/")) return { view: text.slice(1) in VIEWS ? (text.slice(1) as View) : "forecasts", series: null };
  try {
    return { view: "forecasts", series: decodeURIComponent(text) || null };
  } catch {
    return { view: "forecasts", series: null };
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(placeOf(location.hash));
  useEffect(() => {
    const changed = () => setPlace(placeOf(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return place;
}
