// A text from outside with the words of it that counted: marked where they stand, and listed with why they did.

import { Fragment } from "react";

export interface Phrase {
  start: number; // in Unicode code points
  end: number;
  kind: string;
  why: string;
}

interface Props {
  text: string;
  phrases: Phrase[];
}

/** The text in pieces: those between two phrases have none. */
function pieces(text: string, phrases: Phrase[]): { words: string; phrase: Phrase | null }[] {
  const letters = Array.from(text);
  const found: { words: string; phrase: Phrase | null }[] = [];
  let end = 0;
  for (const one of phrases) {
    if (one.start > end) found.push({ words: letters.slice(end, one.start).join(""), phrase: null });
    found.push({ words: letters.slice(one.start, one.end).join(""), phrase: one });
    end = one.end;
  }
  if (end < letters.length) found.push({ words: letters.slice(end).join(""), phrase: null });
  return found;
}

export function PhrasedText({ text, phrases }: Props) {
  return (
    <bdi>
      {pieces(text, phrases).map(({ words, phrase }, k) =>
        phrase === null ? (
          <Fragment key={k}>{words}</Fragment>
        ) : (
          <mark key={k} className={phrase.kind} title={phrase.why}>
            {words}
          </mark>
        ),
      )}
    </bdi>
  );
}

/** For those who do not point: what each of the marked words said. */
export function PhraseList({ text, phrases }: Props) {
  if (phrases.length === 0) return null;
  return (
    <ul className="phrases" aria-label="Words that counted">
      {pieces(text, phrases)
        .filter(({ phrase }) => phrase !== null)
        .map(({ words, phrase }, k) => (
          <li key={k}>
            <bdi>{words}</bdi>: <bdi>{phrase?.why}</bdi>
          </li>
        ))}
    </ul>
  );
}
