// What a headline or a shock would do: asked while one types, answered beside today's forecast.

import { useEffect, useState } from "react";
import { post, type ScenarioAnswer } from "./api";
import type { WhatIfBand } from "./FanChart";
import { price, signedPercent } from "./format";

interface Props {
  series: string;
  onBand: (series: string, band: WhatIfBand | null) => void;
}

interface Answer {
  text: string;
  horizon: number;
  before: [number, number, number];
  after: [number, number, number];
  last: number;
}

const WAIT_MS = 300;
const SHOCK = /^[^\s]+\s+[+-]\d+(\.\d+)?%?$/;

function answerOn(series: string, found: ScenarioAnswer): Answer | null {
  const place = found.positions.findIndex((one) => one.series === series);
  const today = found.positions[place];
  const scenario = found.scenarios[0];
  const changed = scenario?.positions[place];
  if (today === undefined || scenario === undefined || changed === undefined) return null;
  const ends = [0.05, 0.5, 0.95].map((level) => found.levels.indexOf(level));
  const at = (quantiles: number[]) => ends.map((end) => quantiles[end] ?? 0) as [number, number, number];
  return {
    text: scenario.rationale.text,
    horizon: found.horizon,
    before: at(today.quantiles),
    after: at(changed.quantiles),
    last: today.price,
  };
}

export function WhatIf({ series, onBand }: Props) {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState("");
  const [isAsking, setAsking] = useState(false);
  useEffect(() => {
    const asked = text.trim();
    setProblem("");
    if (asked === "") {
      setAnswer(null);
      onBand(series, null);
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      const symbol = series.slice(0, series.lastIndexOf("/"));
      const interval = series.slice(series.lastIndexOf("/") + 1);
      const body = SHOCK.test(asked) ? { shocks: [asked], interval } : { headlines: [asked], on: [symbol], interval };
      setAsking(true);
      try {
        const found = answerOn(series, await post<ScenarioAnswer>("v1/scenarios", body, controller.signal));
        setAnswer(found);
        if (found !== null) {
          const [low, middle, high] = found.after.map((one) => found.last * (1 + one)) as [number, number, number];
          onBand(series, { bars: found.horizon, low, middle, high });
        }
      } catch (error) {
        if (controller.signal.aborted) return;
        setAnswer(null);
        onBand(series, null);
        setProblem((error as Error).message);
      } finally {
        if (!controller.signal.aborted) setAsking(false);
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, series, onBand]);
  return (
    <section aria-labelledby="what-if">
      <h2 id="what-if">What if</h2>
      <label htmlFor="what-if-text">A headline, or a shock such as “SPX -5%”</label>
      <input
        id="what-if-text"
        type="text"
        value={text}
        maxLength={400}
        placeholder="Fed raises rates by 75 basis points"
        onChange={(event) => setText(event.target.value)}
      />
      <p className="quiet" role="status">
        {isAsking ? "Reading …" : problem}
      </p>
      {answer !== null && (
        <>
          <table>
            <caption>{`${series}, ${answer.horizon === 1 ? "next bar" : `${answer.horizon} bars ahead`}`}</caption>
            <thead>
              <tr>
                <th scope="col">
                  <span className="hidden">Forecast</span>
                </th>
                <th scope="col">5%</th>
                <th scope="col">median</th>
                <th scope="col">95%</th>
              </tr>
            </thead>
            <tbody>
              {(["before", "after"] as const).map((which) => (
                <tr key={which} className={which}>
                  <th scope="row">{which === "before" ? "today" : "what if"}</th>
                  {answer[which].map((one, k) => (
                    <td key={k} title={price(answer.last * (1 + one))}>
                      {signedPercent(one)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          <p>{answer.text}</p>
        </>
      )}
    </section>
  );
}
