import { useMemo } from "preact/hooks";
import type { Checkpoint, Checkpoints } from "../api";
import { Chart } from "../chart";
import * as format from "../format";
import { type Theme, usePolling } from "../hooks";
import { Badge, Card, Copy, Empty, Problem, Table, Time } from "../ui";

const number = (value: number | string | undefined) => (typeof value === "number" ? value : null);

export function CheckpointsTab({ id, theme }: { id: string; theme: Theme }) {
  const { data, error } = usePolling<Checkpoints>(`jobs/${id}/checkpoints?all=true`);
  const settings = usePolling<Record<string, unknown>>(`jobs/${id}/checkpoints/config`, 0);
  const oldest = useMemo(() => [...(data?.history ?? [])].sort((a, b) => a.trigger_timestamp - b.trigger_timestamp), [data]);
  const times = useMemo(() => oldest.map((one) => one.latest_ack_timestamp / 1000), [oldest]);
  const series = useMemo(
    () => [{ label: "End-to-end duration", color: "--c3", values: oldest.map((one) => one.end_to_end_duration) }],
    [oldest],
  );
  if (!data) return <Card title="Checkpoints">{error ? <Problem error={error} /> : <Empty>Loading…</Empty>}</Card>;
  const { counts, latest, summary } = data;
  const lines: [string, (value: number | null) => string][] = [
    ["end_to_end_duration", format.duration],
    ["checkpointed_size", format.bytes],
    ["state_size", format.bytes],
  ];
  return (
    <>
      <div class="figures">
        {["completed", "failed", "restored", "in_progress"].map((kind) => (
          <div class={`figure ${kind}`} key={kind}>
            <span>{kind.replace("_", " ")}</span>
            <strong>{format.count(counts[kind])}</strong>
          </div>
        ))}
      </div>
      <Card title="Latest">
        <Table
          columns={["", "Checkpoint", "Time", "Duration", "Written", "State", "Path"]}
          numeric={[1, 3, 4, 5]}
          rows={[
            latestRow("Completed", latest.completed),
            latestRow("Savepoint", latest.savepoint),
            latestRow("Failed", latest.failed),
            latest.restored
              ? ["Restored", latest.restored.id, <Time at={latest.restored.restore_timestamp} />, "–", "–", "–", latest.restored.external_path ?? "–"]
              : ["Restored", "–", "–", "–", "–", "–", "–"],
          ]}
        />
      </Card>
      <div class="two">
        <Card title="Duration">
          <Chart times={times} series={series} text={format.duration} height={200} theme={theme} />
        </Card>
        <Card title="Summary of all">
          <Table
            columns={["", "Minimum", "Average", "p50", "p99", "Maximum"]}
            numeric={[1, 2, 3, 4, 5]}
            rows={lines.map(([key, text]) => [
              key.replaceAll("_", " "),
              ...["min", "avg", "p50", "p99", "max"].map((part) => text(number(summary[key]?.[part]))),
            ])}
          />
        </Card>
      </div>
      <Card title="History" aside={<span class="hint">The last ten, then one per second and minute; every savepoint and failure</span>}>
        <Table
          columns={["Checkpoint", "Status", "Type", "Time", "Duration", "Written", "State"]}
          numeric={[0, 4, 5, 6]}
          rows={data.history.slice(0, 60).map((one) => [
            one.id,
            <Badge state={one.status} />,
            one.is_savepoint ? "savepoint" : "checkpoint",
            <Time at={one.latest_ack_timestamp} />,
            format.duration(one.end_to_end_duration),
            format.bytes(one.checkpointed_size),
            format.bytes(one.state_size),
          ])}
        />
      </Card>
      {settings.data && (
        <Card title="Configuration">
          <Table
            columns={["Setting", "Value"]}
            rows={Object.entries(settings.data).map(([key, value]) => [key, typeof value === "object" ? JSON.stringify(value) : String(value)])}
          />
        </Card>
      )}
    </>
  );
}

function latestRow(label: string, one: Checkpoint | null) {
  if (!one) return [label, "–", "–", "–", "–", "–", "–"];
  return [
    label,
    one.id,
    <Time at={one.latest_ack_timestamp} />,
    format.duration(one.end_to_end_duration),
    format.bytes(one.checkpointed_size),
    format.bytes(one.state_size),
    one.failure_message ?? (one.external_path ? <Copy text={one.external_path} /> : "–"),
  ];
}
