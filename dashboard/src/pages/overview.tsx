import type { JobSummary, Overview } from "../api";
import * as format from "../format";
import { usePolling } from "../hooks";
import { Badge, Card, Empty, Problem, Table, Time } from "../ui";

const OVER = new Set(["FINISHED", "CANCELED", "FAILED"]);

function Jobs({ jobs }: { jobs: JobSummary[] }) {
  const sorted = [...jobs].sort((a, b) => b["start-time"] - a["start-time"]);
  return (
    <Table
      columns={["Name", "State", "Tasks", "Started", "Duration", "Ended"]}
      numeric={[2, 4]}
      rows={sorted.map((job) => [
        <a href={`#/jobs/${job.jid}`} class="strong">
          {job.name}
        </a>,
        <Badge state={job.state} />,
        `${job.tasks.running ?? 0} / ${job.tasks.total ?? 0}`,
        <Time at={job["start-time"]} />,
        format.duration(job.duration),
        <Time at={job["end-time"]} />,
      ])}
    />
  );
}

export function OverviewPage() {
  const overview = usePolling<Overview>("overview");
  const { data, error } = usePolling<{ jobs: JobSummary[] }>("jobs/overview");
  const running = data?.jobs.filter((job) => !OVER.has(job.state)) ?? [];
  const ended = data?.jobs.filter((job) => OVER.has(job.state)) ?? [];
  const cluster = overview.data;
  return (
    <>
      <h1>Overview</h1>
      <Problem error={error} />
      <div class="figures">
        <Figure label="Running jobs" value={cluster?.["jobs-running"]} kind="running" />
        <Figure label="Finished" value={cluster?.["jobs-finished"]} kind="finished" />
        <Figure label="Canceled" value={cluster?.["jobs-cancelled"]} kind="canceled" />
        <Figure label="Failed" value={cluster?.["jobs-failed"]} kind="failed" />
        <Figure label="Task slots" value={cluster?.["slots-total"]} note={`on ${cluster?.taskmanagers === 1 ? "1 worker" : `${cluster?.taskmanagers ?? 0} workers`}`} />
      </div>
      <Card title="Running jobs">
        {running.length > 0 ? (
          <Jobs jobs={running} />
        ) : (
          <Empty>
            No job is running. Start one with <code>penstock run job.py</code>; it appears here.
          </Empty>
        )}
      </Card>
      <Card title="Completed jobs">{ended.length > 0 ? <Jobs jobs={ended} /> : <Empty>No job has ended yet.</Empty>}</Card>
    </>
  );
}

function Figure({ label, value, note, kind = "" }: { label: string; value?: number; note?: string; kind?: string }) {
  return (
    <div class={`figure ${kind}`}>
      <span>{label}</span>
      <strong>{value ?? "–"}</strong>
      {note && <small>{note}</small>}
    </div>
  );
}
