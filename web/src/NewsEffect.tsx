// What became of the news in a decision: its text with the words that counted, and the sections of its explanation. Both
// are read when they are opened.

import { useState } from "react";
import type { Section } from "./api";
import { instant } from "./format";
import { PhrasedText, PhraseList, type Phrase } from "./Phrases";
import { useRead } from "./useRead";

interface ConsideredItem {
  id: string;
  source: string;
  available_at: string;
  headline: string;
  phrases: Phrase[];
  is_cited: boolean;
  reading: string;
}

const HOUR_MS = 3_600_000;

export function NewsEffect({ index }: { index: number }) {
  const [isOpen, setOpen] = useState(false);
  const news = useRead<{ items: ConsideredItem[] }>(isOpen ? `v1/decisions/${index}/news` : null, HOUR_MS);
  const found = useRead<{ sections: Section[] }>(isOpen ? `v1/decisions/${index}/explanation` : null, HOUR_MS);
  return (
    <details className="effect" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What the news did</summary>
      {news.body?.items.map((one) => (
        <blockquote key={one.id} className={one.is_cited ? "cited" : undefined}>
          <p>
            <PhrasedText text={one.headline} phrases={one.phrases} />
          </p>
          <PhraseList text={one.headline} phrases={one.phrases} />
          <p className="quiet">
            <bdi>{one.source}</bdi>, {instant(one.available_at)}
            {one.is_cited && " · the forecast rests on it"}
            {one.reading !== "" && (
              <>
                {" "}
                · <bdi>{one.reading}</bdi>
              </>
            )}
          </p>
        </blockquote>
      ))}
      {found.body === null ? (
        <p className="quiet">{found.problem || (isOpen ? "Reading …" : "")}</p>
      ) : (
        found.body.sections.map((one) => (
          <div key={one.title}>
            <h3>{one.title}</h3>
            <ul>
              {one.lines.map((line, k) => (
                <li key={k}>
                  <bdi>{line}</bdi>
                </li>
              ))}
            </ul>
          </div>
        ))
      )}
    </details>
  );
}
