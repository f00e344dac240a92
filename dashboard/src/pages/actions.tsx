import { useState } from "preact/hooks";
import { type ApiError, type Config, type Job, finish, send } from "../api";
import { Copy, Dialog } from "../ui";

type Action = "savepoint" | "stop" | "cancel" | "rescale";

const TEXT: Record<Action, { button: string; title: string; what: string }> = {
  savepoint: {
    button: "Savepoint",
    title: "Take a savepoint",
    what: "The job keeps running. The savepoint holds all state and the positions of the sources behind the next batch.",
  },
  stop: {
    button: "Stop",
    title: "Stop with a savepoint",
    what: "Sinks commit everything up to the savepoint, then the job ends as FINISHED. Start it again from the savepoint and no record is lost or repeated.",
  },
  cancel: {
    button: "Cancel",
    title: "Cancel the job",
    what: "The job ends now, without a savepoint. Its last checkpoint remains if the job keeps checkpoints.",
  },
  rescale: {
    button: "Rescale",
    title: "Change the parallelism",
    what: "The job pauses at the next batch, its state is redistributed, and it resumes. If that fails, the old parallelism stays.",
  },
};

async function run(action: Action, id: string, directory: string, drain: boolean, parallelism: string): Promise<string> {
  const job = `jobs/${id}`;
  const target = directory === "" ? undefined : directory;
  switch (action) {
    case "savepoint":
      return finish(`${job}/savepoints`, await send("POST", `${job}/savepoints`, { "target-directory": target }));
    case "stop":
      return finish(`${job}/savepoints`, await send("POST", `${job}/stop`, { targetDirectory: target, drain }));
    case "cancel":
      await send("PATCH", `${job}?mode=cancel`);
      return "";
    case "rescale":
      return finish(`${job}/rescaling`, await send("PATCH", `${job}/rescaling?parallelism=${encodeURIComponent(parallelism)}`));
  }
}

export function Actions({ job, over, features, onDone }: { job: Job; over: boolean; features?: Config["features"]; onDone: () => void }) {
  const [open, setOpen] = useState<Action | null>(null);
  // A dialog stays open to show its result, even if the job has ended by it.
  const offered: Action[] = over ? [] : ["savepoint", "stop"];
  if (!over && features?.["web-rescale"] && job.schedulerType === "Adaptive") offered.push("rescale");
  if (!over && features?.["web-cancel"]) offered.push("cancel");
  return (
    <div class="buttons">
      {offered.map((action) => (
        <button type="button" key={action} class={action === "cancel" ? "danger" : ""} onClick={() => setOpen(action)}>
          {TEXT[action].button}
        </button>
      ))}
      {open && (
        <ActionDialog
          action={open}
          job={job}
          onClose={() => {
            setOpen(null);
            onDone();
          }}
        />
      )}
    </div>
  );
}

function ActionDialog({ action, job, onClose }: { action: Action; job: Job; onClose: () => void }) {
  const [directory, setDirectory] = useState("");
  const [drain, setDrain] = useState(false);
  const [parallelism, setParallelism] = useState(String(Math.max(1, ...job.vertices.map((vertex) => vertex.parallelism))));
  const [state, setState] = useState<"asking" | "running" | "done">("asking");
  const [result, setResult] = useState("");
  const [problem, setProblem] = useState("");
  const text = TEXT[action];
  const confirm = async () => {
    setState("running");
    setProblem("");
    try {
      setResult(await run(action, job.jid, directory.trim(), drain, parallelism));
      setState("done");
    } catch (error) {
      setProblem((error as ApiError).message);
      setState("asking");
    }
  };
  return (
    <Dialog title={text.title} onClose={onClose}>
      <p>{text.what}</p>
      {state !== "done" && (action === "savepoint" || action === "stop") && (
        <label>
          Directory
          <input
            name="directory"
            placeholder="the job's savepoint directory"
            value={directory}
            onInput={(event) => setDirectory(event.currentTarget.value)}
          />
        </label>
      )}
      {state !== "done" && action === "stop" && (
        <label class="check">
          <input type="checkbox" checked={drain} onChange={(event) => setDrain(event.currentTarget.checked)} />
          Drain: fire all windows and timers first. Choose this only if the job will not be started again.
        </label>
      )}
      {state !== "done" && action === "rescale" && (
        <label>
          Parallelism
          <input name="parallelism" type="number" min="1" value={parallelism} onInput={(event) => setParallelism(event.currentTarget.value)} />
        </label>
      )}
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {state === "done" && <p class="done">{result ? <Copy text={result} /> : "Done."}</p>}
      <div class="buttons end">
        <button type="button" onClick={onClose}>
          {state === "done" ? "Close" : "Back"}
        </button>
        {state !== "done" && (
          <button type="button" class={action === "cancel" ? "danger" : "primary"} disabled={state === "running"} onClick={() => void confirm()}>
            {state === "running" ? "Working…" : text.title}
          </button>
        )}
      </div>
    </Dialog>
  );
}
