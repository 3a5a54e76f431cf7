// Asks who does something and why, then asks the service to do it, once however often it is sent.

import { useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { post, ProblemError, requestName, type Session } from "./api";
import { Dialog } from "./Dialog";

export interface Act {
  title: string;
  path: string;
  body: Record<string, string>;
  button: string;
  shown?: ReactNode; // what is acted on
  command: string; // the same by the command line, for those who sign
  isSignable: boolean; // a signed request takes the place of a name, where the governance folder has people
  confirm?: string; // to be typed
  to?: string; // what to ask another person's name by, where one is needed
  hasReason?: boolean; // true where it is not said
}

interface Props {
  act: Act;
  session: Session;
  hasPeople: boolean;
  onClose: () => void;
  onDone: (words: string) => void;
}

const NAME = "htfi-name";

export function ActDialog({ act, session, hasPeople, onClose, onDone }: Props) {
  const [by, setBy] = useState(localStorage.getItem(NAME) ?? "");
  const [why, setWhy] = useState("");
  const [to, setTo] = useState("");
  const [signed, setSigned] = useState("");
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState("");
  const [isAsking, setAsking] = useState(false);
  const name = useRef(requestName());
  const id = useId();
  const isSigned = act.isSignable && hasPeople;
  const isNamed = !isSigned && session.tenant === "";
  const hasReason = act.hasReason ?? true;
  const isReady =
    (!hasReason || why.trim() !== "") &&
    (act.to === undefined || to.trim() !== "") &&
    (!isNamed || by.trim() !== "") &&
    (!isSigned || signed.trim() !== "") &&
    (act.confirm === undefined || typed.trim().toLowerCase() === act.confirm);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (!isReady || isAsking) return;
    setAsking(true);
    setProblem("");
    if (isNamed) localStorage.setItem(NAME, by.trim());
    const who = isSigned ? { signed: `${signed.trim()}\n` } : isNamed ? { by: by.trim() } : {};
    const more = { ...(hasReason ? { why: why.trim() } : {}), ...(act.to === undefined ? {} : { to: to.trim() }) };
    try {
      const found = await post<{ detail: string }>(act.path, { ...act.body, ...who, ...more }, undefined, name.current);
      onDone(found.detail);
    } catch (error) {
      if (error instanceof ProblemError) name.current = requestName(); // it was refused: what is sent next is another request
      setProblem((error as Error).message);
      setAsking(false);
    }
  };
  return (
    <Dialog title={act.title} onClose={onClose}>
      <form onSubmit={(event) => void send(event)}>
        {act.shown}
        {isSigned && (
          <>
            <p>
              The governance folder names people, and a person’s key never comes into a browser. Do it by the command line, on the
              machine where your key is:
            </p>
            <pre tabIndex={0} aria-label="Command">
              {act.command}
            </pre>
            <p>Or paste a request that is signed, not more than five minutes old.{hasReason && " Its reason must be the one below."}</p>
            <label htmlFor={`${id}-signed`}>Signed request</label>
            <textarea id={`${id}-signed`} rows={5} value={signed} spellCheck={false} onChange={(event) => setSigned(event.target.value)} />
          </>
        )}
        {isNamed && (
          <>
            <label htmlFor={`${id}-by`}>Your name, for the record</label>
            <input id={`${id}-by`} type="text" value={by} maxLength={100} autoComplete="name" onChange={(event) => setBy(event.target.value)} />
          </>
        )}
        {!isSigned && !isNamed && (
          <p className="quiet">
            The record will name <bdi>{session.name}</bdi>, as the key is called.
          </p>
        )}
        {act.to !== undefined && (
          <>
            <label htmlFor={`${id}-to`}>{act.to}</label>
            <input id={`${id}-to`} type="text" value={to} maxLength={100} autoComplete="off" onChange={(event) => setTo(event.target.value)} />
          </>
        )}
        {hasReason && (
          <>
            <label htmlFor={`${id}-why`}>Reason, for the record</label>
            <input id={`${id}-why`} type="text" value={why} maxLength={400} onChange={(event) => setWhy(event.target.value)} />
          </>
        )}
        {act.confirm !== undefined && (
          <>
            <label htmlFor={`${id}-typed`}>Type “{act.confirm}” to confirm</label>
            <input id={`${id}-typed`} type="text" value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />
          </>
        )}
        <p role="alert" className="wrong">
          {problem}
        </p>
        <div className="buttons">
          <button type="submit" className="main" disabled={!isReady || isAsking}>
            {isAsking ? "Asking …" : act.button}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
