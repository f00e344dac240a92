import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "./api";
import * as format from "./format";

export function Badge({ state }: { state: string }) {
  return (
    <span class={`badge state-${state.toLowerCase()}`}>
      <i aria-hidden="true" />
      {state}
    </span>
  );
}

export function Time({ at }: { at: number | null | undefined }) {
  return <time title={format.utc(at)}>{format.dateTime(at)}</time>;
}

export function Card({ title, aside, children, class: name = "" }: {
  title?: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`card ${name}`}>
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Problem({ error }: { error: ApiError | undefined }) {
  if (!error) return null;
  return (
    <p class="problem" role="alert">
      {error.message}
    </p>
  );
}

export function Table({ columns, rows, numeric = [] }: {
  columns: string[];
  rows: ComponentChildren[][];
  numeric?: number[];
}) {
  const kind = (index: number) => (numeric.includes(index) ? "num" : "");
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={column} scope="col" class={kind(index)}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, index) => (
                <td key={index} class={kind(index)} data-label={columns[index]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Meter({ share, kind }: { share: number; kind: "busy" | "waiting" | "memory" }) {
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    bar.current?.style.setProperty("width", `${Math.min(100, Math.max(0, share * 100))}%`);
  }, [share]);
  return (
    <span class={`meter ${kind}`}>
      <i ref={bar} />
      <b>{format.percent(share)}</b>
    </span>
  );
}

export function Dialog({ title, onClose, children }: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

export function Copy({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    window.setTimeout(() => setDone(false), 1500);
  };
  return (
    <span class="copy">
      <code>{text}</code>
      <button type="button" class="small" onClick={() => void copy()}>
        {done ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
