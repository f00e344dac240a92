import { useEffect, useState } from "preact/hooks";
import { type ApiError, type StateEntry, type StateFound, type StateOperator, get } from "../api";
import * as format from "../format";
import { Card, Empty } from "../ui";

/** What the job's operators remember: read at the last commit, only when asked for. */
export function StateTab({ id, over }: { id: string; over: boolean }) {
  const [operators, setOperators] = useState<StateOperator[]>();
  const [chosen, setChosen] = useState<string | null>(null);
  const [search, setSearch] = useState("");
  const [exact, setExact] = useState(false);
  const [found, setFound] = useState<StateFound>();
  const [problem, setProblem] = useState("");
  const [turn, setTurn] = useState(0);
  const [open, setOpen] = useState<string | null>(null);
  useEffect(() => {
    if (over) return;
    setProblem("");
    get<{ operators: StateOperator[] }>(`penstock/jobs/${id}/state`).then(
      (answer) => {
        setOperators(answer.operators);
        setChosen((before) => before ?? answer.operators[0]?.id ?? null);
      },
      (error: ApiError) => setProblem(error.message),
    );
  }, [id, over]);
  useEffect(() => {
    if (chosen === null || over) return;
    let ended = false;
    const question = search !== "" && exact ? `key=${encodeURIComponent(search)}` : `search=${encodeURIComponent(search)}`;
    setProblem("");
    get<StateFound>(`penstock/jobs/${id}/state/${encodeURIComponent(chosen)}?${question}`).then(
      (answer) => {
        if (!ended) setFound(answer);
      },
      (error: ApiError) => {
        if (!ended) setProblem(error.message);
      },
    );
    return () => {
      ended = true;
    };
  }, [id, chosen, search, exact, turn, over]);
  if (over)
    return (
      <Card title="State">
        <Empty>
          The job has ended, and its state with it. <code>penstock savepoint show</code> lists what a savepoint holds.
        </Empty>
      </Card>
    );
  return (
    <>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {operators?.length === 0 && (
        <Card title="State">
          <Empty>No operator of this job has keyed state.</Empty>
        </Card>
      )}
      {operators && operators.length > 0 && (
        <div class="browser">
          <Card title="Operators" class="operator-list">
            {operators.map((operator) => (
              <button
                type="button"
                key={operator.id}
                class={operator.id === chosen ? "choice chosen" : "choice"}
                aria-pressed={operator.id === chosen}
                onClick={() => {
                  setChosen(operator.id);
                  setFound(undefined);
                  setOpen(null);
                }}
              >
                <strong>{operator.name}</strong>
                <small>{format.bytes(operator.bytes)}</small>
                {operator.states.map((state) => (
                  <span key={state.name}>
                    <code>{state.name}</code> {state.kind}
                  </span>
                ))}
              </button>
            ))}
          </Card>
          <Card
            title="Keys"
            aside={
              <span class="buttons">
                <input
                  type="search"
                  placeholder={exact ? "A key: ann, 17 or [1, \"a\"]" : "Find in keys"}
                  aria-label="Key"
                  value={search}
                  onChange={(event) => setSearch(event.currentTarget.value.trim())}
                />
                <label class="inline">
                  <input type="checkbox" checked={exact} onChange={(event) => setExact(event.currentTarget.checked)} /> exactly this key
                </label>
                <button type="button" class="small" onClick={() => setTurn(turn + 1)}>
                  Read again
                </button>
              </span>
            }
          >
            {!found && !problem && <Empty>Reading the last commit…</Empty>}
            {found?.entries.length === 0 && <Empty>{search ? "No such key has state." : "No key has state yet."}</Empty>}
            {found && found.entries.length > 0 && (
              <ul class="keys">
                {found.entries.map((entry) => (
                  <Entry key={entry.key} entry={entry} open={open === entry.key} onOpen={() => setOpen(open === entry.key ? null : entry.key)} />
                ))}
              </ul>
            )}
            {found && !found.complete && <p class="hint">There are more. Search for a part of the key, or for exactly one.</p>}
          </Card>
        </div>
      )}
    </>
  );
}

const short = (value: unknown): string => {
  const text = JSON.stringify(value);
  return text.length > 90 ? `${text.slice(0, 89)}…` : text;
};

function Entry({ entry, open, onOpen }: { entry: StateEntry; open: boolean; onOpen: () => void }) {
  const states = Object.entries(entry.states);
  const timers = [...entry["event-timers"].map((one) => ({ ...one, kind: "event time" })), ...entry["processing-timers"].map((one) => ({ ...one, kind: "processing time" }))];
  return (
    <li class={open ? "open" : ""}>
      <button type="button" class="key" aria-expanded={open} onClick={onOpen}>
        <code>{entry.key}</code>
        <span>{states.map(([name, state]) => `${name}: ${short(state.value)}`).join(" · ")}</span>
        {timers.length > 0 && <small>{timers.length === 1 ? "1 timer" : `${timers.length} timers`}</small>}
      </button>
      {open && (
        <div class="value">
          {states.map(([name, state]) => (
            <section key={name}>
              <h3>
                {name} <small>{state.kind}</small>
              </h3>
              <pre>{JSON.stringify(state.value, null, 2)}</pre>
            </section>
          ))}
          {timers.length > 0 && (
            <section>
              <h3>Timers</h3>
              <pre>
                {timers.map((timer) => `${timer.kind}  ${format.watermark(timer.time)}${timer.window ? `  ${timer.window}` : ""}`).join("\n")}
              </pre>
            </section>
          )}
        </div>
      )}
    </li>
  );
}
