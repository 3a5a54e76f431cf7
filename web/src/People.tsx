// What waits for people: stops and breakers, decisions to approve, news in quarantine, suspicion.

import { useEffect } from "react";
import type { Act } from "./ActDialog";
import { admissionOf, answerOf, clearingOf, reenableOf } from "./acts";
import { counted, figure, instant, visible } from "./format";
import type { Breaker, Control, Held, PolicyInForce, Question, Suspicion } from "./governance";
import { Rows } from "./Rows";
import { useRead, type Page, type Read } from "./useRead";

interface Props {
  control: Read<Control>;
  onAct: ((act: Act) => void) | null; // null: the key may not act
  isBusy: boolean;
}

export function People({ control, onAct, isBusy }: Props) {
  const approvals = useRead<Page<Question>>("v1/approvals");
  const quarantine = useRead<Page<Held>>("v1/quarantine");
  const breakers = useRead<{ items: Breaker[] }>("v1/breakers");
  const suspicion = useRead<Suspicion>("v1/suspicion", 10_000);
  const policy = useRead<PolicyInForce>("v1/policy", 10_000);
  const again = [approvals.again, quarantine.again, breakers.again, suspicion.again];
  useEffect(() => {
    if (!isBusy) for (const one of again) one();
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [isBusy]);
  const button = (words: string, about: string, act: () => Act, isMain = false) =>
    onAct && (
      <button type="button" className={isMain ? "main" : ""} onClick={() => onAct(act())}>
        {words}
        <span className="hidden"> {about}</span> …
      </button>
    );
  const held = quarantine.body?.items ?? [];
  return (
    <>
      <section aria-labelledby="control">
        <h2 id="control">Releases</h2>
        {control.body === null ? (
          <p className="quiet">{control.problem || "Reading …"}</p>
        ) : (
          <ControlState control={control.body} onAct={onAct} />
        )}
        {policy.body !== null && <p className="quiet">Limits: {policy.body.words}</p>}
      </section>
      <section aria-labelledby="approvals">
        <h2 id="approvals">Decisions that wait for people</h2>
        {approvals.problem !== "" && <p className="wrong">{approvals.problem}</p>}
        {approvals.body?.items.length === 0 && <p className="quiet">None waits.</p>}
        {approvals.body?.items.map((one) => (
          <article key={one.number} className="card" aria-label={`Question ${one.number}`}>
            <h3>
              {one.number} · <bdi>{one.decision}</bdi>
            </h3>
            <ul>
              {one.reasons.map((reason, k) => (
                <li key={k}>
                  <bdi>{visible(reason)}</bdi>
                </li>
              ))}
            </ul>
            <pre tabIndex={0} aria-label={`What question ${one.number} asks`}>
              {visible(one.text)}
            </pre>
            <p className="quiet">
              {one.approvers.length} of {counted(one.num_approvals, "approval")}
              {one.num_waiting_answers > 0 && `, ${counted(one.num_waiting_answers, "answer")} the run has not taken yet`} · until{" "}
              {instant(one.deadline)}, then {one.on_deadline}
              {one.is_escalated && " · escalated"}
            </p>
            <div className="buttons">
              {button("Approve", one.decision, () => answerOf(one, "approve"), true)}
              {button("Deny", one.decision, () => answerOf(one, "deny"))}
              {button("Delegate", one.decision, () => answerOf(one, "delegate"))}
              {button("Acknowledge", one.decision, () => answerOf(one, "acknowledge"))}
            </div>
          </article>
        ))}
        {approvals.body !== null && approvals.body.next !== null && <p className="quiet">The oldest 100; more wait.</p>}
      </section>
      <section aria-labelledby="quarantine">
        <h2 id="quarantine">News in quarantine</h2>
        {quarantine.problem !== "" && <p className="wrong">{quarantine.problem}</p>}
        {quarantine.body !== null && held.length === 0 && <p className="quiet">Nothing is held back.</p>}
        {held.map((one) => (
          <article key={one.number} className="card" aria-label={`Item ${one.number}`}>
            <h3>
              {one.number} · <bdi>{one.headline}</bdi>
            </h3>
            <p className="quiet">
              <bdi>{one.source}</bdi>
              {one.publisher !== "" && (
                <>
                  {" "}
                  · <bdi>{one.publisher}</bdi>
                </>
              )}{" "}
              · {one.symbols.join(", ") || "no symbol"} · {instant(one.arrived)}
            </p>
            <ul>
              {one.findings.map((finding, k) => (
                <li key={k}>
                  {finding.rule.replaceAll("_", " ")}: <bdi>{finding.detail}</bdi>
                </li>
              ))}
            </ul>
            <details>
              <summary>As it came</summary>
              <pre tabIndex={0} aria-label={`Item ${one.number} as it came`}>
                {Object.entries(one.as_it_came)
                  .filter(([, text]) => text !== "")
                  .map(([name, text]) => `${name}: ${visible(text)}`)
                  .join("\n")}
              </pre>
            </details>
            {one.status === "held" ? (
              <div className="buttons">{button("Admit", `item ${one.number}`, () => admissionOf(one))}</div>
            ) : (
              <p>
                {one.status === "asked" ? "Admitted; the run has not taken it yet. " : "Admitted. "}
                <bdi>{one.admitted_by}</bdi>: <bdi>{one.admitted_for}</bdi>
              </p>
            )}
          </article>
        ))}
        {quarantine.body !== null && quarantine.body.next !== null && <p className="quiet">The newest 100; there are older ones.</p>}
      </section>
      <section aria-labelledby="breakers">
        <h2 id="breakers">Breakers</h2>
        <Rows
          caption="Breakers"
          columns={["breaker", "scope", "state", "statistic", "threshold", "evidence", "since"]}
          empty="None has ever changed."
          rows={(breakers.body?.items ?? []).map((one) => ({
            key: `${one.breaker} ${one.scope}`,
            cells: [
              one.breaker.replaceAll("_", " "),
              <bdi>{one.scope}</bdi>,
              <span className={one.state === "closed" ? "good" : "wrong"}>{one.state.replaceAll("_", " ")}</span>,
              figure(one.statistic),
              figure(one.threshold),
              <bdi>{one.evidence}</bdi>,
              instant(one.at),
            ],
          }))}
        />
      </section>
      <section aria-labelledby="suspicion">
        <h2 id="suspicion">Suspected of manipulation</h2>
        <Rows
          caption="Suspected of manipulation"
          columns={["symbol", "why", "since", "decisions", ""]}
          empty="Nothing is suspected."
          rows={(suspicion.body?.current ?? []).map((one) => ({
            key: one.symbol,
            cells: [
              <bdi>{one.symbol}</bdi>,
              <bdi>{one.why}</bdi>,
              instant(one.as_of),
              one.num_decisions,
              button("End", `the suspicion of ${one.symbol}`, () => clearingOf(one.symbol)),
            ],
          }))}
        />
      </section>
    </>
  );
}

function ControlState({ control, onAct }: { control: Control; onAct: Props["onAct"] }) {
  const open = control.open_breakers.filter((one) => one.state !== "closed");
  return (
    <>
      {control.stops.length === 0 && open.length === 0 && !control.has_stop_file && <p className="good">Nothing holds them back.</p>}
      {control.has_stop_file && <p className="wrong">A file STOP lies in the run’s control folder: everything is stopped.</p>}
      <ul className="held-back">
        {control.stops.map((one) => (
          <li key={one.scope}>
            <span>
              <b className="wrong">Stopped:</b> <bdi>{one.scope}</bdi>, by <bdi>{one.by}</bdi>, {instant(one.at)}: <bdi>{one.why}</bdi>
            </span>
            {onAct && (
              <button type="button" onClick={() => onAct(reenableOf(one.scope))}>
                Enable again<span className="hidden"> {one.scope}</span> …
              </button>
            )}
          </li>
        ))}
        {open.map((one) => (
          <li key={`${one.breaker} ${one.scope}`}>
            <span>
              <b className="wrong">Breaker {one.state.replaceAll("_", " ")}:</b> {one.breaker.replaceAll("_", " ")} of <bdi>{one.scope}</bdi>:{" "}
              <bdi>{one.evidence}</bdi>
            </span>
            {onAct && (
              <button type="button" onClick={() => onAct(reenableOf(one.scope, one.breaker))}>
                Close<span className="hidden"> {one.breaker} of {one.scope}</span> …
              </button>
            )}
          </li>
        ))}
        {control.waiting.map((one) => (
          <li key={one.id}>
            <span>
              Asked, and not taken by the run yet: {one.kind.replaceAll("_", " ")}, by <bdi>{one.by}</bdi>: <bdi>{one.why}</bdi>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
