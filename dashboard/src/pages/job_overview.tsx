import { useMemo, useState } from "preact/hooks";
import type { Batch, History, Job, Live, LiveVertex } from "../api";
import { Chart } from "../chart";
import * as format from "../format";
import { bottleneck, Graph } from "../graph";
import { type Theme, usePolling } from "../hooks";
import { Badge, Card, Empty, Meter, Table } from "../ui";

/** Records per second between one row and the next. */
function columns(history: History | undefined) {
  const times = history?.second ?? [];
  const rates = (history?.records ?? []).map((amount, at) => amount / Math.max(1, (times[at] ?? 0) - (times[at - 1] ?? (times[at] ?? 0) - 1)));
  const lags = (history?.lag ?? []).map((lag) => (lag !== null && Math.abs(lag) < 3.2e11 ? Math.max(0, lag) : null));
  return { times, rates, lags, durations: history?.duration ?? [], states: history?.["state-bytes"] ?? [] };
}

export function OverviewTab({ job, live, vertices, last, history: recent, theme }: {
  job: Job;
  live?: Live;
  vertices: Map<string, LiveVertex>;
  last?: Batch;
  history?: History;
  theme: Theme;
}) {
  const [selected, setSelected] = useState<string | null>(null);
  const history = useMemo(() => columns(recent), [recent]);
  const running = job.state === "RUNNING";
  const limit = running && live ? bottleneck(live.vertices) : null;
  if (job.vertices.length === 0)
    return (
      <Card>
        <Empty>The process of this job has ended: its tasks and their numbers ended with it.</Empty>
      </Card>
    );
  return (
    <>
      <div class="tiles">
        <Tile label="Records in" value={running ? format.rate(live?.["records-per-second"] ?? 0) : format.count(live?.["source-records"])}
          note={`${format.count(live?.["source-records"])} in total`}
          times={history.times} values={history.rates} color="--c1" theme={theme} text={format.rate} />
        <Tile label="Event-time lag" value={running ? format.lag(live?.lag ?? null) : "–"}
          note={`watermark ${format.watermark(live?.watermark ?? null)}`}
          times={history.times} values={history.lags} color="--c2" theme={theme} text={format.duration} />
        <Tile label="Batch duration" value={format.duration(last ? last.end - last.start : null)}
          note={`${format.count(last?.id)} batches`}
          times={history.times} values={history.durations} color="--c3" theme={theme} text={format.duration} />
        <Tile label="State" value={format.bytes(live?.["state-size"])}
          note={running && live?.["last-checkpoint"] ? `checkpoint ${format.duration(live.now - live["last-checkpoint"])} ago` : "at the last checkpoint"}
          times={history.times} values={history.states} color="--c4" theme={theme} text={format.bytes} />
        <div class="tile plain">
          <span>Late records</span>
          <strong class={live && live["late-records"] > 0 ? "warn" : ""}>{format.count(live?.["late-records"])}</strong>
          <span>Restarts</span>
          <strong class={live && live.restarts > 0 ? "warn" : ""}>{format.count(live?.restarts)}</strong>
        </div>
      </div>
      <Card title="Job graph" aside={limit ? <span class="hint">Bottleneck: {limit.reason}</span> : undefined}>
        <Graph job={job} live={vertices} selected={selected} onSelect={(id) => setSelected(id === selected ? null : id)} />
      </Card>
      {selected && <VertexCard job={job} id={selected} live={vertices.get(selected)} onClose={() => setSelected(null)} />}
      <Card title="Tasks">
        <Table
          columns={["Task", "Status", "Parallelism", "Records in", "Records out", "Busy", "Backpressured", "Lag", "State"]}
          numeric={[2, 3, 4, 7, 8]}
          rows={job.vertices.map((vertex) => {
            const now = vertices.get(vertex.id);
            return [
              <button type="button" class="link" onClick={() => setSelected(vertex.id)}>
                {format.taskName(vertex.name)}
              </button>,
              <Badge state={vertex.status} />,
              vertex.parallelism,
              format.count(now?.["records-in"]),
              format.count(now?.["records-out"]),
              <Meter share={now?.busy ?? 0} kind="busy" />,
              <Meter share={now?.backpressured ?? 0} kind="waiting" />,
              format.lag(now?.lag ?? null),
              format.bytes(now?.["state-size"]),
            ];
          })}
        />
      </Card>
    </>
  );
}

function Tile({ label, value, note, times, values, color, theme, text }: {
  label: string;
  value: string;
  note: string;
  times: number[];
  values: (number | null)[];
  color: string;
  theme: Theme;
  text: (value: number) => string;
}) {
  const series = useMemo(() => [{ label, color, values }], [label, color, values]);
  return (
    <div class="tile">
      <span>{label}</span>
      <strong>{value}</strong>
      <small title={note}>{note}</small>
      <Chart times={times} series={series} text={text} height={38} spark theme={theme} />
    </div>
  );
}

interface Subtasks {
  subtasks: {
    subtask: number;
    status: string;
    attempt: number;
    endpoint: string;
    metrics: Record<string, number>;
  }[];
}

interface Backpressure {
  subtasks?: { subtask: number; busyRatio: number; ratio: number }[];
}

function VertexCard({ job, id, live, onClose }: { job: Job; id: string; live?: LiveVertex; onClose: () => void }) {
  const details = usePolling<Subtasks>(`jobs/${job.jid}/vertices/${id}`, 2000);
  const pressure = usePolling<Backpressure>(`jobs/${job.jid}/vertices/${id}/backpressure`, 2000);
  const marks = usePolling<{ id: string; value: string }[]>(`jobs/${job.jid}/vertices/${id}/watermarks`, 2000);
  const vertex = job.vertices.find((one) => one.id === id);
  const shares = new Map(pressure.data?.subtasks?.map((one) => [one.subtask, one]));
  const watermarks = new Map(marks.data?.map((one) => [Number(one.id.split(".")[0]), one.value]));
  return (
    <Card
      class="vertex-card"
      title={vertex ? format.taskName(vertex.name) : id}
      aside={
        <button type="button" class="small" onClick={onClose}>
          Close
        </button>
      }
    >
      <p class="operators">
        {live?.operators.map((name, at) => (
          <span key={at}>{name}</span>
        ))}
      </p>
      <Table
        columns={["Subtask", "Status", "Attempt", "Worker", "Received", "Sent", "Busy", "Backpressured", "Watermark"]}
        numeric={[0, 2, 4, 5]}
        rows={(details.data?.subtasks ?? []).map((one) => {
          const mark = watermarks.get(one.subtask);
          return [
            one.subtask,
            <Badge state={one.status} />,
            one.attempt,
            one.endpoint,
            format.count(one.metrics["read-records"]),
            format.count(one.metrics["write-records"]),
            <Meter share={shares.get(one.subtask)?.busyRatio ?? 0} kind="busy" />,
            <Meter share={shares.get(one.subtask)?.ratio ?? 0} kind="waiting" />,
            mark === undefined || mark === "-9223372036854775808" ? "none yet" : format.watermark(mark),
          ];
        })}
      />
    </Card>
  );
}
