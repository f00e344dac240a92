import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Theme } from "./hooks";

export interface Series {
  label: string;
  color: string;
  values: (number | null)[];
}

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A time series; `spark` leaves out the axes. Times are seconds. */
export function Chart({ times, series, text, height, spark = false, theme }: {
  times: number[];
  series: Series[];
  text: (value: number) => string;
  height: number;
  spark?: boolean;
  theme: Theme;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const target = place.current;
    if (!target) return;
    const axis: uPlot.Axis = { stroke: css("--muted"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        width: Math.max(60, target.clientWidth),
        height,
        legend: { show: !spark },
        cursor: { show: !spark, drag: { x: false, y: false } },
        padding: spark ? [2, 0, 2, 0] : [8, 8, 0, 0],
        scales: { y: { range: (_, __, high) => [0, high > 0 ? high * 1.1 : 1] } },
        axes: spark
          ? [{ show: false }, { show: false }]
          : [axis, { ...axis, size: 72, values: (_, ticks) => ticks.map(text) }],
        series: [
          {},
          ...series.map((line) => ({
            label: line.label,
            stroke: css(line.color),
            width: spark ? 1.5 : 2,
            fill: `${css(line.color)}22`,
            points: { show: false },
            value: (_: uPlot, value: number | null) => (value === null ? "–" : text(value)),
          })),
        ],
      },
      [times, ...series.map((line) => line.values)],
      target,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: Math.max(60, target.clientWidth), height }));
    resized.observe(target);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [theme, spark, height, series.map((line) => line.label).join()]);
  useEffect(() => {
    plot.current?.setData([times, ...series.map((line) => line.values)]);
  }, [times, series]);
  return <div class={spark ? "spark" : "chart"} ref={place} />;
}
