import { useState } from "preact/hooks";
import type { ExceptionEntry, Split } from "../api";
import * as format from "../format";
import { usePolling } from "../hooks";
import { Badge, Card, Empty, Problem, Table, Time } from "../ui";

export function SplitsTab({ id }: { id: string }) {
  const { data, error } = usePolling<{ splits: Split[] }>(`penstock/jobs/${id}/splits`);
  return (
    <Card title="Splits" aside={<span class="hint">Those that hold event time back come first</span>}>
      <Problem error={error} />
      {data && data.splits.length === 0 && <Empty>The sources have not listed any splits yet.</Empty>}
      {data && data.splits.length > 0 && (
        <Table
          columns={["Source", "Split", "State", "Offset", "Subtask", "Behind", "Watermark", "Lag"]}
          numeric={[4, 5, 7]}
          rows={data.splits.map((split) => [
            split.source,
            <code>{split.split}</code>,
            <Badge state={split.paused ? "PAUSED" : split.state} />,
            <code class="wrap">{split.offset}</code>,
            split.subtask ?? "–",
            <span title="records that are not read yet, where the source knows">{format.count(split.pending)}</span>,
            <span title={split["watermark-of"] === "subtask" ? "of the subtask that reads it" : undefined}>
              {format.watermark(split.watermark)}
            </span>,
            format.lag(split.lag),
          ])}
        />
      )}
    </Card>
  );
}

export function ExceptionsTab({ id }: { id: string }) {
  const { data, error } = usePolling<{ exceptionHistory: { entries: ExceptionEntry[]; truncated: boolean } }>(`jobs/${id}/exceptions`);
  const entries = data?.exceptionHistory.entries;
  return (
    <>
      <Problem error={error} />
      {entries?.length === 0 && (
        <Card title="Exceptions">
          <Empty>No exceptions. The job has never failed.</Empty>
        </Card>
      )}
      {entries?.map((entry, at) => (
        <Card
          key={`${entry.timestamp}${at}`}
          class="exception"
          title={
            <>
              {at === 0 ? "Root exception: " : ""}
              {entry.exceptionName}
            </>
          }
          aside={
            <span class="hint">
              <Time at={entry.timestamp} />
            </span>
          }
        >
          {entry.taskName && (
            <p class="under">
              in <strong>{entry.taskName}</strong>
            </p>
          )}
          <pre class="trace">
            {entry.stacktrace.split("\n").map((line, number) => (
              <span key={number} class={/^\s+File "/.test(line) ? "frame" : ""}>
                {line}
                {"\n"}
              </span>
            ))}
          </pre>
        </Card>
      ))}
    </>
  );
}

export function ConfigurationTab({ id }: { id: string }) {
  const { data, error } = usePolling<{ "execution-config": Record<string, unknown> }>(`jobs/${id}/config`, 0);
  const settings = usePolling<{ key: string; value: string }[]>(`applications/${id}/jobmanager/config`, 0);
  const { "user-config": user, ...execution } = data?.["execution-config"] ?? {};
  const parameters = Object.entries((user ?? {}) as Record<string, string>);
  return (
    <>
      <Problem error={error} />
      <Card title="Execution">
        <Table columns={["Setting", "Value"]} rows={Object.entries(execution).map(([key, value]) => [key, String(value)])} />
      </Card>
      <Card title="Job parameters">
        {parameters.length > 0 ? <Table columns={["Parameter", "Value"]} rows={parameters} /> : <Empty>The program has set none.</Empty>}
      </Card>
      <Card title="Settings of the job">
        {settings.data && settings.data.length > 0 ? (
          <Table columns={["Key", "Value"]} rows={settings.data.map((one) => [<code>{one.key}</code>, one.value])} />
        ) : (
          <Empty>All settings have their defaults.</Empty>
        )}
      </Card>
    </>
  );
}

interface Log {
  file: string | null;
  size: number;
  lines: string[];
  truncated: boolean;
}

const level = (line: string) => /\b(ERROR|CRITICAL|Traceback|Error:)/.exec(line) ? "error" : /\bWARN(ING)?\b/.test(line) ? "warning" : "";

export function LogTab({ id }: { id: string }) {
  const [search, setSearch] = useState("");
  const { data, error } = usePolling<Log>(`penstock/jobs/${id}/log?search=${encodeURIComponent(search)}`);
  return (
    <Card
      title="Log"
      aside={
        <input type="search" placeholder="Search" aria-label="Search the log" value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
      }
    >
      <Problem error={error} />
      {data?.file === null && (
        <Empty>
          The program writes to the terminal it was started in. Jobs started by <code>penstock run --detached</code> or by the service have a log here.
        </Empty>
      )}
      {data && data.file !== null && (
        <>
          <p class="under">
            <code>{data.file}</code> <span>{format.bytes(data.size)}</span> {data.truncated && <span>the end of it</span>}
          </p>
          {data.lines.length === 0 ? (
            <Empty>{search ? "No line contains this." : "The log is empty."}</Empty>
          ) : (
            <pre class="log">
              {data.lines.map((line, at) => (
                <span key={at} class={level(line)}>
                  {line}
                  {"\n"}
                </span>
              ))}
            </pre>
          )}
        </>
      )}
    </Card>
  );
}
