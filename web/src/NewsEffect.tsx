// What became of the news in a decision: the sections of its explanation, read when they are opened.

import { useState } from "react";
import type { Section } from "./api";
import { useRead } from "./useRead";

export function NewsEffect({ index }: { index: number }) {
  const [isOpen, setOpen] = useState(false);
  const found = useRead<{ sections: Section[] }>(isOpen ? `v1/decisions/${index}/explanation` : null, 3_600_000);
  return (
    <details className="effect" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What the news did</summary>
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
