import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Batch, Job } from "../api";
import { Chart } from "../chart";
import * as format from "../format";
import type { Theme } from "../hooks";
import { Card, Empty, Table } from "../ui";

const SHOWN = 60;
const HEIGHT = 180;
const COLORS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];

export function TimelineTab({ job, batches, theme }: { job: Job; batches: Batch[]; theme: Theme }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const times = useMemo(() => batches.map((batch) => batch.end / 1000), [batches]);
  const series = useMemo(
    () => [{ label: "Duration", color: "--c3", values: batches.map((batch) => batch.end - batch.start) }],
    [batches],
  );
  const records = useMemo(
    () => [{ label: "Records", color: "--c1", values: batches.map((batch) => batch.records) }],
    [batches],
  );
  if (batches.length === 0)
    return (
      <Card title="Batches">
        <Empty>No batch has been committed yet.</Empty>
      </Card>
    );
  const shown = batches.slice(-SHOWN);
  const batch = batches.find((one) => one.id === chosen) ?? shown[shown.length - 1];
  return (
    <>
      <Card
        title={`The last ${shown.length} batches`}
        aside={<span class="hint">Height: duration. Colours: busy time of each task's slowest subtask.</span>}
      >
        <Bars job={job} batches={shown} chosen={batch?.id ?? null} onChoose={setChosen} />
        <p class="legend">
          {job.vertices.map((vertex, at) => (
            <span key={vertex.id}>
              <i class={`dot series-${at % COLORS.length}`} aria-hidden="true" /> {format.taskName(vertex.name)}
            </span>
          ))}
          <span>
            <i class="dot rest" aria-hidden="true" /> planning, exchange and commit
          </span>
        </p>
      </Card>
      {batch && (
        <Card title={`Batch ${batch.id}`} aside={<span class="hint">{format.dateTime(batch.end)}</span>}>
          <Table
            columns={["Duration", "Records", "Watermark", "Lag", "State written", "State"]}
            numeric={[0, 1, 3, 4, 5]}
            rows={[
              [
                format.duration(batch.end - batch.start),
                format.count(batch.records),
                format.watermark(batch.watermark),
                format.lag(batch.lag),
                format.bytes(batch["written-bytes"]),
                format.bytes(batch["state-bytes"]),
              ],
            ]}
          />
          <Table
            columns={["Task", "Busy, slowest subtask"]}
            numeric={[1]}
            rows={job.vertices.map((vertex) => [format.taskName(vertex.name), format.duration(batch.busy[vertex.id] ?? 0)])}
          />
        </Card>
      )}
      <div class="two">
        <Card title="Batch duration">
          <Chart times={times} series={series} text={format.duration} height={200} theme={theme} />
        </Card>
        <Card title="Records per batch">
          <Chart times={times} series={records} text={format.count} height={200} theme={theme} />
        </Card>
      </div>
    </>
  );
}

function Bars({ job, batches, chosen, onChoose }: {
  job: Job;
  batches: Batch[];
  chosen: number | null;
  onChoose: (id: number) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useEffect(() => {
    if (!place.current) return;
    const watch = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 800));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  const longest = Math.max(1, ...batches.map((batch) => batch.end - batch.start));
  const step = width / SHOWN;
  return (
    <div ref={place} class="bars">
      <svg width={width} height={HEIGHT + 22} role="group" aria-label="Timeline of batches">
        <line x1="0" x2={width} y1={HEIGHT} y2={HEIGHT} class="base" />
        <text x="2" y="12" class="label">
          {format.duration(longest)}
        </text>
        {batches.map((batch, at) => {
          const whole = batch.end - batch.start;
          const high = (whole / longest) * (HEIGHT - 18);
          // Tasks of one stage run side by side, so their busy times may exceed the duration: then they share the bar.
          const sum = Object.values(batch.busy).reduce((total, one) => total + one, 0);
          const unit = sum > 0 ? high / Math.max(whole, sum) : 0;
          let top = HEIGHT;
          return (
            <g
              key={batch.id}
              class={`bar ${batch.id === chosen ? "selected" : ""}`}
              tabindex={0}
              role="button"
              aria-label={`Batch ${batch.id}: ${format.duration(whole)}, ${format.count(batch.records)} records`}
              onClick={() => onChoose(batch.id)}
              onKeyDown={(event) => {
                if (event.key === "Enter") onChoose(batch.id);
              }}
            >
              <title>{`Batch ${batch.id}: ${format.duration(whole)}, ${format.count(batch.records)} records`}</title>
              <rect x={at * step} width={step} y="0" height={HEIGHT} class="touch" />
              <rect x={at * step + 1} width={Math.max(1, step - 2)} y={HEIGHT - high} height={high} class="rest" />
              {job.vertices.map((vertex, index) => {
                const part = (batch.busy[vertex.id] ?? 0) * unit;
                top -= part;
                return (
                  <rect key={vertex.id} x={at * step + 1} width={Math.max(1, step - 2)} y={top} height={part} class={`series-${index % COLORS.length}`} />
                );
              })}
            </g>
          );
        })}
        <text x="2" y={HEIGHT + 16} class="label">
          {format.clock(batches[0]?.end ?? 0)}
        </text>
        <text x={Math.min(width - 2, batches.length * step)} y={HEIGHT + 16} class="label right">
          {format.clock(batches[batches.length - 1]?.end ?? 0)}
        </text>
      </svg>
    </div>
  );
}
