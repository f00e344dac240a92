import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "./api";

export interface Polled<T> {
  data: T | undefined;
  error: ApiError | undefined;
  refresh: () => void;
}

/** Asks every few seconds, but not in a hidden tab; keeps the last answer while the service does not reply. */
export function usePolling<T>(path: string | null, every = 2000): Polled<T> {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<ApiError>();
  const [turn, setTurn] = useState(0);
  const last = useRef<string | null>(null);
  if (last.current !== path) {
    last.current = path;
    if (data !== undefined) setData(undefined);
  }
  useEffect(() => {
    if (path === null) return;
    let ended = false;
    let timer = 0;
    const ask = async () => {
      if (!document.hidden) {
        try {
          const answer = await get<T>(path);
          if (ended) return;
          setData(() => answer);
          setError(undefined);
        } catch (problem) {
          if (ended) return;
          setError(problem as ApiError);
        }
      }
      if (!ended && every > 0) timer = window.setTimeout(ask, every);
    };
    void ask();
    return () => {
      ended = true;
      window.clearTimeout(timer);
    };
  }, [path, every, turn]);
  return { data, error, refresh: useCallback(() => setTurn((value) => value + 1), []) };
}

/** The part of the address behind `#`. */
export function useRoute(): string {
  const read = () => window.location.hash.replace(/^#/, "") || "/";
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const changed = () => setRoute(read());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

export type Theme = "light" | "dark";

export function useTheme(): [Theme, () => void] {
  const system: Theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const stored = (): Theme | null => {
    try {
      return localStorage.getItem("penstock-theme") as Theme | null;
    } catch {
      return null;
    }
  };
  const [theme, setTheme] = useState<Theme>(stored() ?? system);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const toggle = () => {
    const next = theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("penstock-theme", next);
    } catch {
      // Private windows have no storage: the choice lasts for this page.
    }
    setTheme(next);
  };
  return [theme, toggle];
}
