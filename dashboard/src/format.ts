// Numbers with units, in the reader's time zone.

const UNITS = ["B", "KB", "MB", "GB", "TB"];

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || value < 0 || Number.isNaN(value)) return "–";
  let unit = 0;
  let rest = value;
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${UNITS[unit]}`;
}

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toFixed(2)}G`;
  if (size >= 1e6) return `${(value / 1e6).toFixed(2)}M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(1)}k`;
  return Number.isInteger(value) || size >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

export const rate = (value: number | null | undefined): string => `${count(value)}/s`;

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  if (ms < 0) return ms > -1000 ? "0 ms" : `−${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export const percent = (share: number): string => `${Math.round(share * 100)} %`;

export function dateTime(ms: number | null | undefined): string {
  if (!ms || ms <= 0) return "–";
  const date = new Date(ms);
  const pad = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${clock(ms)}`;
}

/** The name of a task, whose operators are joined by arrows that a line must not be broken in. */
export const taskName = (name: string): string => name.replaceAll(" -> ", " \u2192 ");

export function clock(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

export const utc = (ms: number | null | undefined): string =>
  ms && ms > 0 && ms < 8.64e15 ? `${new Date(ms).toISOString().replace("T", " ").replace("Z", "")} UTC` : "";

const LAST_DATE = 8.64e15;

/** A watermark: text of up to 19 digits. */
export function watermark(text: string | null): string {
  if (text === null) return "none yet";
  const value = Number(text);
  if (value > LAST_DATE) return "end of input";
  if (value < 946684800000) return text; // before 2000: numbers of the program's own, not times
  return dateTime(value);
}

/** The lag, if event time is wall-clock time at all. */
export function lag(ms: number | null): string {
  if (ms === null) return "–";
  return Math.abs(ms) > 10 * 365 * 86_400_000 ? "–" : duration(Math.max(0, ms));
}
