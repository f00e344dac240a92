// The REST API: Flink's paths, and those below /penstock that are our own.

export interface Config {
  "refresh-interval": number;
  features: { "web-submit": boolean; "web-cancel": boolean; "web-rescale": boolean };
}

export interface Overview {
  taskmanagers: number;
  "slots-total": number;
  "slots-available": number;
  "jobs-running": number;
  "jobs-finished": number;
  "jobs-cancelled": number;
  "jobs-failed": number;
  "penstock-version": string;
}

export interface JobSummary {
  jid: string;
  name: string;
  state: string;
  jobType: string;
  "start-time": number;
  "end-time": number;
  duration: number;
  tasks: Record<string, number>;
}

export interface PlanNode {
  id: string;
  parallelism: number;
  inputs?: { id: string; ship_strategy: string }[];
}

export interface Vertex {
  id: string;
  name: string;
  parallelism: number;
  maxParallelism: number;
  status: string;
  duration: number;
  metrics: Record<string, number>;
}

export interface Job {
  jid: string;
  name: string;
  state: string;
  "job-type": string;
  schedulerType?: string | null;
  "start-time": number;
  "end-time": number;
  duration: number;
  vertices: Vertex[];
  plan: { nodes: PlanNode[] };
}

export interface LiveVertex {
  id: string;
  source: boolean;
  operators: string[];
  "records-in": number;
  "records-out": number;
  "records-in-per-second": number;
  "records-out-per-second": number;
  busy: number;
  backpressured: number;
  skew: number;
  watermark: string | null;
  lag: number | null;
  "late-records": number;
  "state-size": number;
}

export interface Live {
  now: number;
  "late-records": number;
  "state-size": number;
  restarts: number;
  watermark: string | null;
  lag: number | null;
  "records-per-second": number;
  "source-records": number;
  "last-checkpoint": number | null;
  vertices: LiveVertex[];
}

export interface Batch {
  id: number;
  start: number;
  end: number;
  records: number;
  lag: number | null;
  watermark: string | null;
  "state-bytes": number;
  "written-bytes": number;
  "late-records": number;
  busy: Record<string, number>;
}

/** The last 15 minutes in columns, one row per second with a batch. */
export interface History {
  now: number;
  second: number[];
  records: number[];
  duration: number[];
  lag: (number | null)[];
  "state-bytes": number[];
}

export interface StateOperator {
  id: string;
  name: string;
  bytes: number;
  states: { name: string; kind: string }[];
}

export interface StateEntry {
  key: string;
  states: Record<string, { kind: string; value: unknown }>;
  "event-timers": { time: string; window?: string }[];
  "processing-timers": { time: string; window?: string }[];
}

export interface StateFound {
  entries: StateEntry[];
  complete: boolean;
}

export interface Split {
  vertex: string;
  source: string;
  split: string;
  offset: string;
  state: string;
  subtask: number | null;
  watermark: string | null;
  "watermark-of": string;
  lag: number | null;
  paused: boolean;
  pending: number | null;
}

export interface Checkpoint {
  id: number;
  status: string;
  is_savepoint: boolean;
  trigger_timestamp: number;
  latest_ack_timestamp: number;
  checkpointed_size: number;
  state_size: number;
  end_to_end_duration: number;
  external_path?: string;
  failure_message?: string;
}

export interface Checkpoints {
  counts: Record<string, number>;
  summary: Record<string, Record<string, number | string>>;
  latest: {
    completed: Checkpoint | null;
    savepoint: Checkpoint | null;
    failed: Checkpoint | null;
    restored: { id: number; restore_timestamp: number; external_path: string | null } | null;
  };
  history: Checkpoint[];
}

export interface ExceptionEntry {
  exceptionName: string;
  stacktrace: string;
  timestamp: number;
  taskName?: string;
}

export interface Worker {
  id: string;
  path: string;
  slotsNumber: number;
  freeSlots: number;
  hardware: Record<string, number>;
  memoryConfiguration: Record<string, number>;
}

export interface Program {
  id: string;
  name: string;
  uploaded: number;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const TOKEN = "penstock-token";
let token = "";
try {
  token = sessionStorage.getItem(TOKEN) ?? "";
} catch {
  // No storage: the token lasts for this page.
}

/** Sends this token from now on, as long as the tab is open. */
export function signIn(typed: string): void {
  token = typed;
  try {
    sessionStorage.setItem(TOKEN, typed);
  } catch {
    // As above.
  }
}

async function answer(path: string, init?: RequestInit): Promise<Response> {
  const headers = new Headers(init?.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  try {
    return await fetch(`v1/${path}`, { ...init, headers });
  } catch {
    throw new ApiError(0, "The service does not answer. Is it still running?");
  }
}

export async function getText(path: string): Promise<string> {
  const response = await answer(path);
  if (!response.ok) throw new ApiError(response.status, `HTTP ${response.status}`);
  return response.text();
}

async function request<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await answer(path, init);
  const text = await response.text();
  let body: unknown = {};
  try {
    body = text ? JSON.parse(text) : {};
  } catch {
    throw new ApiError(response.status, `Unexpected answer from the service (HTTP ${response.status})`);
  }
  if (!response.ok) {
    const errors = (body as { errors?: string[] }).errors;
    throw new ApiError(response.status, errors?.[0] ?? `HTTP ${response.status}`);
  }
  return body as T;
}

export const get = <T>(path: string): Promise<T> => request<T>(path);

export const send = <T>(method: string, path: string, body?: unknown): Promise<T> =>
  request<T>(path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });

export const upload = (file: File): Promise<{ filename: string }> => {
  const form = new FormData();
  form.append("jarfile", file, file.name);
  return request("jars/upload", { method: "POST", body: form });
};

interface Operation {
  status: { id: string };
  operation: { location?: string; "failure-cause"?: { class: string; "stack-trace": string } } | null;
}

/** Waits until an operation is over; resolves to the savepoint's location, if there is one. */
export async function finish(path: string, answer: { "request-id": string }): Promise<string> {
  for (;;) {
    const found = await get<Operation>(`${path}/${answer["request-id"]}`);
    if (found.status.id === "COMPLETED") {
      const failure = found.operation?.["failure-cause"];
      if (failure) throw new ApiError(500, failure["stack-trace"] || failure.class);
      return found.operation?.location ?? "";
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
