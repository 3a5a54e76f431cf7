// What the service says of stops, breakers, questions, quarantine and suspicion.

export interface Stop {
  scope: string;
  by: string;
  why: string;
  cause: string;
  at: string;
}

export interface Breaker {
  breaker: string;
  scope: string;
  state: string;
  statistic: number;
  threshold: number;
  evidence: string;
  at: string;
}

export interface Control {
  is_running: boolean;
  is_clear: boolean;
  stops: Stop[];
  open_breakers: Breaker[];
  waiting: { id: string; kind: string; by: string; why: string }[];
  has_stop_file: boolean;
  has_people: boolean;
}

export interface Question {
  number: number;
  decision: string;
  symbol: string;
  phase: string;
  is_final: boolean;
  is_escalated: boolean;
  asked: string;
  deadline: string;
  on_deadline: string;
  num_approvals: number;
  approvers: string[];
  num_waiting_answers: number;
  reasons: string[];
  digest: string;
  text: string;
}

export interface Finding {
  rule: string;
  strength: number;
  detail: string;
}

export interface Held {
  number: number;
  id: string;
  status: string;
  source: string;
  publisher: string;
  symbols: string[];
  arrived: string;
  headline: string;
  body: string;
  as_it_came: Record<string, string>;
  findings: Finding[];
  admitted_by: string;
  admitted_for: string;
}

export interface Suspected {
  symbol: string;
  why: string;
  as_of: string;
  num_decisions: number;
}

export interface Suspicion {
  current: Suspected[];
  past: Suspected[];
  cleared: { symbol: string; by: string; why: string; took_effect: string | null }[];
}

export interface PolicyInForce {
  words: string;
  stale: string;
}
