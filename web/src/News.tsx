// News that was handed in, what became of each item, and a box to hand in one.

import { useRef, useState, type FormEvent } from "react";
import { post, ProblemError, requestName } from "./api";
import type { Finding } from "./governance";
import { instant } from "./format";
import { PhrasedText, PhraseList, type Phrase } from "./Phrases";
import { useRead, type Page } from "./useRead";

interface Use {
  index: number;
  decision: string;
  is_set_aside: boolean;
  verdict: string;
  trust: number;
  reasons: string[];
  route: string;
  why: string;
  reading: string;
}

interface Item {
  id: string;
  number: number;
  status: string;
  headline: string;
  body: string;
  symbols: string[];
  publisher: string;
  posted_by: string;
  posted_at: string;
  findings: Finding[];
  decisions: Use[];
  detail: string;
  clean_headline: string; // empty before a decision has used it
  phrases: Phrase[];
}

interface Receipt {
  items: { id: string; status: string; reason: string; detail: string }[];
  detail: string;
}

interface Props {
  maySend: boolean;
  onSaid: (words: string) => void;
}

export function News({ maySend, onSaid }: Props) {
  const news = useRead<Page<Item>>("v1/news");
  return (
    <>
      <section aria-labelledby="news">
        <h2 id="news">News that was handed in</h2>
        {news.problem !== "" && <p className="wrong">{news.problem}</p>}
        {news.body?.items.length === 0 && (
          <p className="quiet">None was. What the news of a feed did stands with each forecast: “What the news did”.</p>
        )}
        {news.body?.items.map((one) => (
          <ItemCard key={one.id} item={one} />
        ))}
        {news.body !== null && news.body.next !== null && <p className="quiet">The newest 100; there are older ones.</p>}
      </section>
      {maySend && <SendNews onSaid={onSaid} onSent={news.again} />}
    </>
  );
}

function ItemCard({ item }: { item: Item }) {
  return (
    <article className="card" aria-label={`Item ${item.number}`}>
      <h3>
        <PhrasedText text={item.clean_headline || item.headline} phrases={item.phrases} />
      </h3>
      <PhraseList text={item.clean_headline} phrases={item.phrases} />
      <p className="quiet">
        <b className={item.status === "quarantined" ? "wrong" : ""}>{item.status}</b> · {item.symbols.join(", ") || "no symbol"} · by{" "}
        <bdi>{item.posted_by}</bdi>, {instant(item.posted_at)}
      </p>
      {item.body !== "" && (
        <p>
          <bdi>{item.body}</bdi>
        </p>
      )}
      {item.findings.length > 0 && (
        <ul>
          {item.findings.map((one, k) => (
            <li key={k}>
              {one.rule.replaceAll("_", " ")}: <bdi>{one.detail}</bdi>
            </li>
          ))}
        </ul>
      )}
      {item.status === "quarantined" && (
        <p>
          <a href="#/people">It waits in quarantine.</a>
        </p>
      )}
      {item.decisions.length > 0 && (
        <details>
          <summary>What it did</summary>
          <ul>
            {item.decisions.slice(0, 20).map((one) => (
              <li key={one.index}>
                <a href={`v1/decisions/${one.index}/explanation`}>
                  <bdi>{one.decision}</bdi>
                </a>
                : {one.is_set_aside ? "set aside" : one.verdict}, trust {one.trust.toFixed(2)}, {one.route.replaceAll("_", " ")}
                {one.why !== "" && (
                  <>
                    : <bdi>{one.why}</bdi>
                  </>
                )}
                {one.reading !== "" && (
                  <>
                    ; <bdi>{one.reading}</bdi>
                  </>
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  );
}

function SendNews({ onSaid, onSent }: { onSaid: (words: string) => void; onSent: () => void }) {
  const [headline, setHeadline] = useState("");
  const [body, setBody] = useState("");
  const [symbols, setSymbols] = useState("");
  const [problem, setProblem] = useState("");
  const [isAsking, setAsking] = useState(false);
  const name = useRef(requestName());
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setAsking(true);
    setProblem("");
    onSaid("");
    const names = symbols.split(/[\s,]+/).filter((one) => one !== "");
    try {
      const item = { headline: headline.trim(), body: body.trim(), symbols: names };
      const found = await post<Receipt>("v1/news", { items: [item] }, undefined, name.current);
      const [one] = found.items;
      name.current = requestName();
      if (one?.status === "refused") setProblem(`Refused: ${one.detail || one.reason}`);
      else {
        onSaid(one?.status === "known" ? "The run knows this item." : `Accepted; ${found.detail}`);
        setHeadline("");
        setBody("");
        setSymbols("");
      }
      onSent();
    } catch (error) {
      if (error instanceof ProblemError) name.current = requestName();
      setProblem((error as Error).message);
    } finally {
      setAsking(false);
    }
  };
  return (
    <section aria-labelledby="hand-in">
      <h2 id="hand-in">Hand in news</h2>
      <p className="quiet">It is data, judged as any feed’s: the sanitiser may hold it back.</p>
      <form className="news-form" onSubmit={(event) => void send(event)}>
        <label htmlFor="headline">Headline</label>
        <input id="headline" type="text" value={headline} maxLength={1_000} onChange={(event) => setHeadline(event.target.value)} />
        <label htmlFor="symbols">Symbols, with commas between</label>
        <input id="symbols" type="text" value={symbols} maxLength={400} onChange={(event) => setSymbols(event.target.value)} />
        <label htmlFor="body">Text</label>
        <textarea id="body" rows={4} value={body} maxLength={20_000} onChange={(event) => setBody(event.target.value)} />
        <p role="alert" className="wrong">
          {problem}
        </p>
        <button type="submit" className="main" disabled={headline.trim() === "" || isAsking}>
          {isAsking ? "Sending …" : "Hand in"}
        </button>
      </form>
    </section>
  );
}
