// The machines of a run: links, queues, energy, where the newest readings ran.

import { figure, instant, known, percent } from "./format";
import { Rows } from "./Rows";
import { useRead } from "./useRead";

interface Device {
  temperature_c: number | null;
  throttle_share: number | null;
  load: number | null;
  power_w: number | null;
}

interface Link {
  name: string;
  address: string | null;
  state: string;
  reason: string;
  rtt_p50_ms: number | null;
  rtt_p95_ms: number | null;
  queue: number | null;
  queue_ms: number | null;
  num_rows: number | null;
  step_p50_ms: number | null;
  device: Device;
  placed: Record<string, number>;
}

interface NodesBody {
  edge: string | null;
  at: string | null;
  is_current: boolean | null;
  edge_device: Device | null;
  links: Link[];
  num_alone: number | null;
  changes: { at: string; node: string; what: string; words: string }[];
  placement: { rungs: Record<string, number>; places: Record<string, number>; num_provisional: number };
  service_device: Device;
}

const counts = (of: Record<string, number>) =>
  Object.entries(of)
    .map(([name, num]) => `${name.replaceAll("_", " ")} ${num}`)
    .join(", ");

const deviceCells = (one: Device) => [
  known(one.load, (value) => percent(value, 0)),
  known(one.power_w, (value) => `${figure(value)} W`),
  known(one.temperature_c, (value) => `${figure(value)} °C`),
  known(one.throttle_share, (value) => percent(value, 0)),
];

export function Nodes() {
  const { body, problem } = useRead<NodesBody>("v1/nodes", 2_000);
  if (body === null) return <p className="empty">{problem || "Reading …"}</p>;
  const machines: [string, Device][] = [["this service", body.service_device]];
  if (body.edge !== null && body.edge_device !== null) machines.unshift([body.edge, body.edge_device]);
  for (const one of body.links) machines.push([one.name, one.device]);
  return (
    <>
      <section aria-labelledby="machines">
        <h2 id="machines">Machines</h2>
        <Rows
          caption="Machines: load, power, heat"
          columns={["machine", "load", "power", "temperature", "slowed by heat"]}
          empty=""
          rows={machines.map(([name, device], k) => ({ key: `${k} ${name}`, cells: [<bdi>{name}</bdi>, ...deviceCells(device)] }))}
        />
        {body.at !== null && (
          <p className={body.is_current ? "quiet" : "wrong"}>
            {body.is_current ? "As of now." : `The edge wrote this last at ${instant(body.at)}.`}
          </p>
        )}
      </section>
      <section aria-labelledby="links">
        <h2 id="links">Links and queues</h2>
        <Rows
          caption="Links and queues"
          columns={["node", "state", "round trip", "95%", "queue", "wait", "rows", "step", "placed"]}
          empty="The run works on one machine."
          rows={body.links.map((one) => ({
            key: one.name,
            cells: [
              <bdi title={one.address ?? ""}>{one.name}</bdi>,
              <span className={one.state === "healthy" ? "good" : "wrong"}>
                {one.state}
                {one.reason !== "" && (
                  <>
                    : <bdi>{one.reason}</bdi>
                  </>
                )}
              </span>,
              known(one.rtt_p50_ms, (value) => `${figure(value)} ms`),
              known(one.rtt_p95_ms, (value) => `${figure(value)} ms`),
              known(one.queue, String),
              known(one.queue_ms, (value) => `${figure(value)} ms`),
              known(one.num_rows, String),
              known(one.step_p50_ms, (value) => `${figure(value)} ms`),
              counts(one.placed) || "–",
            ],
          }))}
        />
        {body.num_alone !== null && <p className="quiet">{body.num_alone} readings were placed nowhere.</p>}
      </section>
      <section aria-labelledby="placement">
        <h2 id="placement">Newest decisions</h2>
        <p>Rungs: {counts(body.placement.rungs) || "none"}.</p>
        <p>Where the text was written: {counts(body.placement.places) || "nowhere"}.</p>
      </section>
      <section aria-labelledby="changes">
        <h2 id="changes">Changes</h2>
        <Rows
          caption="Changes of nodes"
          columns={["at", "node", "what", "words"]}
          empty="No node has changed."
          rows={body.changes.map((one, k) => ({
            key: `${k}`,
            cells: [instant(one.at), <bdi>{one.node}</bdi>, one.what.replaceAll("_", " "), <bdi>{one.words}</bdi>],
          }))}
        />
      </section>
    </>
  );
}
