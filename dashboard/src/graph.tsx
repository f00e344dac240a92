import dagre from "@dagrejs/dagre";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Job, LiveVertex } from "./api";
import * as format from "./format";

const WIDTH = 232;
const HEIGHT = 128;

interface Box {
  id: string;
  x: number;
  y: number;
}

interface Line {
  from: string;
  to: string;
  ship: string;
  points: { x: number; y: number }[];
}

function layOut(job: Job): { boxes: Box[]; lines: Line[]; width: number; height: number } {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 28, ranksep: 96, marginx: 12, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of job.plan.nodes) graph.setNode(node.id, { width: WIDTH, height: HEIGHT });
  for (const node of job.plan.nodes)
    (node.inputs ?? []).forEach((input, index) =>
      graph.setEdge(input.id, node.id, { ship: input.ship_strategy }, String(index)),
    );
  dagre.layout(graph);
  const size = graph.graph();
  return {
    boxes: job.plan.nodes.map((node) => ({ id: node.id, x: graph.node(node.id).x, y: graph.node(node.id).y })),
    lines: graph.edges().map((edge) => {
      const found = graph.edge(edge) as unknown as { ship: string; points: Line["points"] };
      return { from: edge.v, to: edge.w, ship: found.ship, points: found.points };
    }),
    width: size.width ?? WIDTH,
    height: size.height ?? HEIGHT,
  };
}

const path = (points: Line["points"]): string => {
  const [first, ...rest] = points;
  const last = rest[rest.length - 1];
  if (!first || !last) return "";
  const middle = (first.x + last.x) / 2;
  return `M${first.x},${first.y} C${middle},${first.y} ${middle},${last.y} ${last.x},${last.y}`;
};

/** The vertex that limits the job, and why; none while every vertex has time to spare. */
export function bottleneck(live: LiveVertex[]): { id: string; reason: string } | null {
  const busiest = [...live].sort((a, b) => b.busy - a.busy)[0];
  if (!busiest || busiest.busy < 0.5) return null;
  const held = live.some((vertex) => vertex.source && vertex.backpressured > 0.1);
  const reason = `busy ${format.percent(busiest.busy)}${held ? ", sources wait for it" : ""}`;
  return { id: busiest.id, reason };
}

export const heat = (vertex: LiveVertex | undefined): string => {
  if (!vertex) return "idle";
  if (vertex.busy >= 0.8) return "hot";
  if (vertex.backpressured > 0.5) return "held";
  if (vertex.busy >= 0.4) return "warm";
  return vertex.busy >= 0.05 ? "cool" : "idle";
};

const shorten = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

export function Graph({ job, live, selected, onSelect }: {
  job: Job;
  live: Map<string, LiveVertex>;
  selected: string | null;
  onSelect: (id: string) => void;
}) {
  const shape = JSON.stringify(job.plan.nodes.map((node) => [node.id, node.inputs]));
  const layout = useMemo(() => layOut(job), [shape]);
  const [zoom, setZoom] = useState<number | null>(null);
  const [search, setSearch] = useState("");
  const place = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  useEffect(() => {
    if (!place.current) return;
    const watch = new ResizeObserver(([entry]) => setRoom(entry?.contentRect.width ?? 0));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  const fit = room > 0 ? Math.min(1.15, Math.max(0.45, room / layout.width)) : 1;
  const scale = zoom ?? fit;
  const names = new Map(job.vertices.map((vertex) => [vertex.id, vertex]));
  const limit = job.state === "RUNNING" ? bottleneck([...live.values()]) : null;
  const found = (name: string) => search !== "" && name.toLowerCase().includes(search.toLowerCase());
  return (
    <div class="graph">
      <div class="graph-tools">
        <Legend />
        {job.plan.nodes.length > 5 && (
          <input
            type="search"
            placeholder="Find a task"
            aria-label="Find a task"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        )}
        <span class="buttons">
          <button type="button" class="small" aria-label="Zoom out" onClick={() => setZoom(Math.max(0.25, scale / 1.25))}>
            −
          </button>
          <button type="button" class="small" onClick={() => setZoom(null)}>
            Fit
          </button>
          <button type="button" class="small" aria-label="Zoom in" onClick={() => setZoom(Math.min(2, scale * 1.25))}>
            +
          </button>
        </span>
      </div>
      <div class="graph-place" ref={place}>
        <svg
          width={layout.width * scale}
          height={layout.height * scale}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
          role="group"
          aria-label="Job graph"
        >
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0,0 L8,4 L0,8 z" class="arrow" />
            </marker>
          </defs>
          {layout.lines.map((line) => {
            const middle = line.points[Math.floor(line.points.length / 2)] ?? { x: 0, y: 0 };
            const flow = live.get(line.from)?.["records-out-per-second"] ?? 0;
            const start = line.points[0] ?? middle;
            const end = line.points[line.points.length - 1] ?? middle;
            const x = (start.x + end.x) / 2;
            const y = (start.y + end.y) / 2;
            return (
              <g key={`${line.from}${line.to}${line.ship}`} class={`edge ${flow > 0 ? "flowing" : ""}`}>
                <path d={path(line.points)} marker-end="url(#arrow)" />
                <text x={x} y={y - 8} class="edge-rate">
                  {format.rate(flow)}
                </text>
                <text x={x} y={y + 16} class="edge-ship">
                  {line.ship}
                </text>
              </g>
            );
          })}
          {layout.boxes.map((box) => {
            const vertex = names.get(box.id);
            const now = live.get(box.id);
            const name = vertex ? format.taskName(vertex.name) : box.id;
            return (
              <g
                key={box.id}
                class={`vertex ${heat(now)} ${selected === box.id ? "selected" : ""} ${found(name) ? "found" : ""}`}
                transform={`translate(${box.x - WIDTH / 2},${box.y - HEIGHT / 2})`}
                tabindex={0}
                role="button"
                aria-label={`Task ${name}`}
                onClick={() => onSelect(box.id)}
                onKeyDown={(event) => {
                  if (event.key === "Enter" || event.key === " ") onSelect(box.id);
                }}
              >
                <title>{name}</title>
                <rect width={WIDTH} height={HEIGHT} rx="10" class="box" />
                <rect width={Math.max(0, (WIDTH - 24) * (now?.busy ?? 0))} x="12" y={HEIGHT - 13} height="5" rx="2.5" class="fill" />
                <rect width={WIDTH - 24} x="12" y={HEIGHT - 13} height="5" rx="2.5" class="track" />
                <text x="14" y="24" class="name">
                  {shorten(name, 24)}
                </text>
                <text x={WIDTH - 14} y="45" class="right">
                  ×{vertex?.parallelism ?? 1}
                </text>
                <text x="14" y="45" class="big">
                  {format.rate(now?.[now.source ? "records-out-per-second" : "records-in-per-second"] ?? 0)}
                </text>
                <text x="14" y="66" class="label">
                  Busy {format.percent(now?.busy ?? 0)} · Backpressured {format.percent(now?.backpressured ?? 0)}
                </text>
                <text x="14" y="84" class="label">
                  Watermark {format.watermark(now?.watermark ?? null).replace(/^\d{4}-\d\d-\d\d /, "")}
                </text>
                <text x="14" y="102" class="label">
                  Lag {format.lag(now?.lag ?? null)}
                  {now && now.skew > 50 ? ` · Skew ${Math.round(now.skew)} %` : ""}
                </text>
                {now && now["late-records"] > 0 && (
                  <text x={WIDTH - 14} y="102" class="right late">
                    ⚠ {format.count(now["late-records"])} late
                  </text>
                )}
                {limit?.id === box.id && (
                  <g class="bottleneck">
                    <rect x="10" y="-11" width="88" height="19" rx="9.5" />
                    <text x="54" y="3">
                      bottleneck
                    </text>
                    <title>{limit.reason}</title>
                  </g>
                )}
              </g>
            );
          })}
        </svg>
      </div>
    </div>
  );
}

function Legend() {
  return (
    <span class="legend">
      {[
        ["idle", "idle"],
        ["cool", "under 40 % busy"],
        ["warm", "40–80 %"],
        ["hot", "over 80 %"],
        ["held", "backpressured"],
      ].map(([kind, text]) => (
        <span key={kind}>
          <i class={`dot ${kind}`} aria-hidden="true" /> {text}
        </span>
      ))}
    </span>
  );
}
