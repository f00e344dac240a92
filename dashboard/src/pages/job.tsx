import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Batch, type Config, type Job, type History, type Live, get } from "../api";
import * as format from "../format";
import { type Theme, usePolling } from "../hooks";
import { Badge, Empty, Problem, Time } from "../ui";
import { Actions } from "./actions";
import { CheckpointsTab } from "./checkpoints";
import { ConfigurationTab, ExceptionsTab, LogTab, SplitsTab } from "./job_tabs";
import { OverviewTab } from "./job_overview";
import { StateTab } from "./state";
import { TimelineTab } from "./timeline";

const TABS: [string, string][] = [
  ["overview", "Overview"],
  ["timeline", "Timeline"],
  ["checkpoints", "Checkpoints"],
  ["splits", "Splits"],
  ["state", "State"],
  ["exceptions", "Exceptions"],
  ["configuration", "Configuration"],
  ["log", "Log"],
];
const OVER = new Set(["FINISHED", "CANCELED", "FAILED"]);
const KEPT = 1000;

/** All batches that the service still knows, and then the new ones only. */
function useBatches(id: string, running: boolean): Batch[] {
  const [batches, setBatches] = useState<Batch[]>([]);
  const last = useRef(0);
  useEffect(() => {
    let ended = false;
    let timer = 0;
    last.current = 0;
    setBatches([]);
    const ask = async () => {
      if (!document.hidden) {
        try {
          const found = (await get<{ batches: Batch[] }>(`penstock/jobs/${id}/batches?since=${last.current}`)).batches;
          if (ended) return;
          if (found.length > 0) {
            last.current = found[found.length - 1]?.id ?? 0;
            setBatches((known) => [...known, ...found].slice(-KEPT));
          }
        } catch {
          // The job's own request shows what is wrong.
        }
      }
      if (!ended && running) timer = window.setTimeout(ask, 1000);
    };
    void ask();
    return () => {
      ended = true;
      window.clearTimeout(timer);
    };
  }, [id, running]);
  return batches;
}

export function JobPage({ id, tab, config, theme }: { id: string; tab: string; config?: Config; theme: Theme }) {
  const { data: job, error, refresh } = usePolling<Job>(`jobs/${id}`, 2000);
  const over = job ? OVER.has(job.state) : false;
  const { data: live } = usePolling<Live>(job && job.vertices.length > 0 ? `penstock/jobs/${id}/live` : null, over ? 0 : 1000);
  const batches = useBatches(id, !over);
  const { data: history } = usePolling<History>(job && job.vertices.length > 0 ? `penstock/jobs/${id}/history` : null, over ? 0 : 2000);
  const vertices = useMemo(() => new Map(live?.vertices.map((vertex) => [vertex.id, vertex])), [live]);
  if (!job) {
    return error ? (
      <>
        <h1>Job</h1>
        <Problem error={error} />
      </>
    ) : (
      <Empty>Loading…</Empty>
    );
  }
  return (
    <>
      <div class="job-head">
        <div>
          <h1>{job.name}</h1>
          <p class="under">
            <Badge state={job.state} /> <span>{job["job-type"].toLowerCase()}</span>
            <span>
              started <Time at={job["start-time"]} />
            </span>
            <span>{over ? "ran for" : "up for"} {format.duration(job.duration)}</span>
            <code class="id">{job.jid}</code>
          </p>
        </div>
        <Actions job={job} over={over} features={config?.features} onDone={refresh} />
      </div>
      <Problem error={error} />
      <nav class="tabs" aria-label="Job">
        {TABS.map(([key, label]) => (
          <a key={key} href={`#/jobs/${id}/${key}`} aria-current={key === tab ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      {tab === "timeline" ? (
        <TimelineTab job={job} batches={batches} theme={theme} />
      ) : tab === "checkpoints" ? (
        <CheckpointsTab id={id} theme={theme} />
      ) : tab === "splits" ? (
        <SplitsTab id={id} />
      ) : tab === "state" ? (
        <StateTab id={id} over={over} />
      ) : tab === "exceptions" ? (
        <ExceptionsTab id={id} />
      ) : tab === "configuration" ? (
        <ConfigurationTab id={id} />
      ) : tab === "log" ? (
        <LogTab id={id} />
      ) : (
        <OverviewTab job={job} live={live} vertices={vertices} last={batches[batches.length - 1]} history={history} theme={theme} />
      )}
    </>
  );
}
