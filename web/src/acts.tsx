// What people can ask of a run: each as the dialog asks it, and as the command line does.

import type { Act } from "./ActDialog";
import type { Held, Question } from "./governance";
import { instant, visible } from "./format";

const SIGNED_ALONE = "--governance G --key KEYFILE";
const SIGNED = `${SIGNED_ALONE} --why "…"`;

export function stopOf(): Act {
  return {
    title: "Stop releases",
    path: "v1/stop",
    body: { scope: "firm" },
    button: "Stop releases",
    shown: <p>The run makes and records decisions, and releases none, until somebody enables it again.</p>,
    command: 'htfi stop RUN --by NAME --why "…"',
    isSignable: false,
    confirm: "stop",
  };
}

export function reenableOf(scope: string, breaker = ""): Act {
  return {
    title: breaker === "" ? "Enable releases again" : "Close a breaker",
    path: "v1/reenable",
    body: { scope, breaker },
    button: breaker === "" ? "Enable again" : "Close the breaker",
    shown: (
      <p>
        {breaker === "" ? "Ends the stop and closes the breakers of the scope " : `Closes ${breaker} of the scope `}
        <bdi>{scope}</bdi>.
      </p>
    ),
    command: `htfi reenable RUN --scope ${quoted(scope)}${breaker && ` --breaker ${quoted(breaker)}`} ${SIGNED}`,
    isSignable: true,
  };
}

const ANSWERS = { approve: "Approve", deny: "Deny", delegate: "Delegate", acknowledge: "Acknowledge" };

export function answerOf(question: Question, kind: keyof typeof ANSWERS): Act {
  const seen = `--seen ${question.digest.slice(0, 8)}`;
  const isAcknowledged = kind === "acknowledge";
  return {
    title: `${ANSWERS[kind]} ${question.decision}`,
    path: `v1/approvals/${question.number}/${kind}`,
    body: { seen: question.digest },
    button: ANSWERS[kind],
    shown: (
      <>
        <pre tabIndex={0} aria-label="What is asked">
          {visible(question.text)}
        </pre>
        <p className="quiet">
          Digest of this text {question.digest.slice(0, 8)}; by {instant(question.deadline)}
        </p>
        {kind === "delegate" && <p>Who hands it on can no longer approve it; who gets it must have the right to.</p>}
        {isAcknowledged && <p>The record then says that you have seen this text and have not decided yet.</p>}
      </>
    ),
    command: `htfi approvals ${kind} RUN ${question.number}${kind === "delegate" ? " --to NAME" : ""} ${seen} ${isAcknowledged ? SIGNED_ALONE : SIGNED}`,
    isSignable: true,
    to: kind === "delegate" ? "To whom" : undefined,
    hasReason: !isAcknowledged,
  };
}

export function admissionOf(item: Held): Act {
  return {
    title: `Admit item ${item.number}`,
    path: `v1/quarantine/${item.number}/admit`,
    body: {},
    button: "Admit",
    shown: (
      <>
        <blockquote>
          <bdi>{item.headline}</bdi>
        </blockquote>
        <p>It enters the run as news. The record names who admitted it and why.</p>
      </>
    ),
    command: `htfi quarantine admit RUN ${item.number} ${SIGNED}`,
    isSignable: true,
  };
}

export function clearingOf(symbol: string): Act {
  return {
    title: "End a suspicion",
    path: "v1/suspicion/clear",
    body: { symbol },
    button: "End it",
    shown: (
      <p>
        News of <bdi>{symbol}</bdi> counts again as any; later incidents count anew.
      </p>
    ),
    command: `htfi suspicion clear RUN --symbol ${quoted(symbol)} ${SIGNED}`,
    isSignable: true,
  };
}

export function cancelOf(order: string): Act {
  return {
    title: "Cancel an order",
    path: `v1/orders/${encodeURIComponent(order)}/cancel`,
    body: {},
    button: "Cancel the order",
    shown: (
      <p>
        Order <bdi>{order}</bdi>
      </p>
    ),
    command: "",
    isSignable: false,
  };
}

/** As one word of a shell. */
function quoted(text: string): string {
  return /^[\w:/.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
