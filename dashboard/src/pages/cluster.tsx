import { useState } from "preact/hooks";
import { type ApiError, type Program, type Worker, send, upload } from "../api";
import * as format from "../format";
import { usePolling } from "../hooks";
import { Card, Empty, Problem, Table, Time } from "../ui";

export function WorkersPage() {
  const { data, error } = usePolling<{ taskmanagers: Worker[] }>("taskmanagers");
  return (
    <>
      <h1>Workers</h1>
      <Problem error={error} />
      {data?.taskmanagers.length === 0 && (
        <Card>
          <Empty>No worker is registered. Workers appear with the first job.</Empty>
        </Card>
      )}
      {data?.taskmanagers.map((worker) => (
        <Card key={worker.id} title={worker.id} aside={<span class="hint">{worker.path}</span>}>
          <div class="figures">
            <div class="figure">
              <span>Slots</span>
              <strong>{worker.slotsNumber}</strong>
            </div>
            <div class="figure">
              <span>Cores of the machine</span>
              <strong>{worker.hardware.cpuCores}</strong>
            </div>
            <div class="figure">
              <span>Memory of the machine</span>
              <strong>{format.bytes(worker.hardware.physicalMemory)}</strong>
            </div>
          </div>
          <Table
            columns={["Memory", "Size"]}
            numeric={[1]}
            rows={Object.entries(worker.memoryConfiguration)
              .filter(([, size]) => size > 0)
              .map(([name, size]) => [name, format.bytes(size)])}
          />
        </Card>
      ))}
    </>
  );
}

interface Environment {
  jvm: { version: string; arch: string };
  python: { version: string; executable: string; packages: string[] };
}

export function ServicePage() {
  const settings = usePolling<{ key: string; value: string }[]>("jobmanager/config", 0);
  const environment = usePolling<Environment>("jobmanager/environment", 0);
  const python = environment.data?.python;
  return (
    <>
      <h1>Service</h1>
      <Problem error={settings.error} />
      <Card title="Configuration">
        {settings.data && settings.data.length > 0 ? (
          <Table columns={["Key", "Value"]} rows={settings.data.map((one) => [<code>{one.key}</code>, one.value])} />
        ) : (
          <Empty>All settings have their defaults.</Empty>
        )}
      </Card>
      <Card title="Environment">
        {python && (
          <Table
            columns={["", "Value"]}
            rows={[
              ["Python", python.version],
              ["Executable", <code>{python.executable}</code>],
              ["Packages", <span class="packages">{python.packages.join(", ")}</span>],
            ]}
          />
        )}
      </Card>
    </>
  );
}

export function SubmitPage() {
  const { data, error, refresh } = usePolling<{ files: Program[] }>("jars", 5000);
  const [chosen, setChosen] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const attempt = async (work: () => Promise<unknown>) => {
    setProblem("");
    try {
      await work();
      refresh();
    } catch (found) {
      setProblem((found as ApiError).message);
    }
  };
  if (error?.status === 404)
    return (
      <>
        <h1>Submit a program</h1>
        <Card>
          <Empty>
            This is <code>penstock ui</code>, which only watches. <code>penstock cluster start</code> takes programs, too.
          </Empty>
        </Card>
      </>
    );
  return (
    <>
      <h1>Submit a program</h1>
      <Problem error={error} />
      <Card title="Programs">
        <label class="upload">
          Upload a .py, .zip or .whl file
          <input
            type="file"
            accept=".py,.zip,.whl"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file) void attempt(() => upload(file));
            }}
          />
        </label>
        {problem && (
          <pre class="problem" role="alert">
            {problem}
          </pre>
        )}
        {data?.files.length === 0 && <Empty>No program has been uploaded yet.</Empty>}
        {data && data.files.length > 0 && (
          <Table
            columns={["Program", "Uploaded", ""]}
            rows={data.files.map((file) => [
              file.name,
              <Time at={file.uploaded} />,
              <span class="buttons">
                <button type="button" class="small primary" onClick={() => setChosen(file.id)}>
                  Run…
                </button>
                <button type="button" class="small" onClick={() => void attempt(() => send("DELETE", `jars/${encodeURIComponent(file.id)}`))}>
                  Delete
                </button>
              </span>,
            ])}
          />
        )}
      </Card>
      {chosen && <RunForm id={chosen} />}
    </>
  );
}

function RunForm({ id }: { id: string }) {
  const [values, setValues] = useState({ parallelism: "", programArgs: "", savepointPath: "" });
  const [allow, setAllow] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const start = async () => {
    setBusy(true);
    setProblem("");
    try {
      const filled = Object.fromEntries(Object.entries(values).filter(([, value]) => value.trim() !== ""));
      const body = { ...filled, allowNonRestoredState: allow };
      const { jobid } = await send<{ jobid: string }>("POST", `jars/${encodeURIComponent(id)}/run`, body);
      window.location.hash = `#/jobs/${jobid}`;
    } catch (error) {
      setProblem((error as ApiError).message);
    }
    setBusy(false);
  };
  const fields: [keyof typeof values, string, string][] = [
    ["parallelism", "Parallelism", "the program's own"],
    ["programArgs", "Arguments", "--input orders"],
    ["savepointPath", "Savepoint to start from", "none"],
  ];
  return (
    <Card title={`Run ${id.replace(/^[^_]*_/, "")}`}>
      {fields.map(([name, label, hint]) => (
        <label key={name}>
          {label}
          <input name={name} placeholder={hint} value={values[name]} onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })} />
        </label>
      ))}
      <label class="check">
        <input type="checkbox" checked={allow} onChange={(event) => setAllow(event.currentTarget.checked)} />
        Allow state in the savepoint that the program no longer has
      </label>
      {problem && (
        <pre class="problem" role="alert">
          {problem}
        </pre>
      )}
      <div class="buttons end">
        <button type="button" class="primary" disabled={busy} onClick={() => void start()}>
          {busy ? "Starting…" : "Run"}
        </button>
      </div>
    </Card>
  );
}
