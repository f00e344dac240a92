import { useState } from "preact/hooks";
import { type ApiError, type Job, type PlanNode, type Program, type Worker, get, getText, send, upload } from "../api";
import { Graph } from "../graph";
import * as format from "../format";
import { usePolling } from "../hooks";
import { Card, Empty, Meter, Problem, Table, Time } from "../ui";

const MEMORY = ["Status.JVM.Memory.Heap.Used", "Status.JVM.Memory.Heap.Max", "Status.Python.Memory.Rss", "Status.CPU.Time", "Status.Python.Threads.Count"];

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
        <WorkerCard key={worker.id} worker={worker} />
      ))}
    </>
  );
}

const words = (name: string) => name.replace(/([A-Z])/g, " $1").toLowerCase().replace("flink memory", "Flink memory").replace("jvm", "JVM").replace(/^./, (first) => first.toUpperCase());

function WorkerCard({ worker }: { worker: Worker }) {
  const path = `taskmanagers/${encodeURIComponent(worker.id)}`;
  const { data } = usePolling<{ id: string; value: string }[]>(`${path}/metrics?get=${MEMORY.join(",")}`);
  const metrics = new Map(data?.map((one) => [one.id, Number(one.value)]));
  const used = metrics.get("Status.JVM.Memory.Heap.Used") ?? metrics.get("Status.Python.Memory.Rss");
  const most = metrics.get("Status.JVM.Memory.Heap.Max") ?? worker.hardware.physicalMemory ?? 0;
  const cpu = metrics.get("Status.CPU.Time");
  return (
    <Card title={worker.id} aside={<span class="hint">{worker.path}</span>}>
      <div class="figures">
        <Fact label="Slots" value={`${worker.slotsNumber}`} note={`${worker.freeSlots} free`} />
        <Fact label="Cores" value={`${worker.hardware.cpuCores ?? "–"}`} note={cpu === undefined ? "" : `${format.duration(cpu)} used`} />
        <Fact label="Memory used" value={format.bytes(used)} note={used !== undefined && most > 0 ? `${format.percent(used / most)} of ${format.bytes(most)}` : ""} />
        <Fact label="Threads" value={format.count(metrics.get("Status.Python.Threads.Count"))} note="in Python" />
      </div>
      {used !== undefined && most > 0 && <Meter share={used / most} kind="memory" />}
      <Table
        columns={["Memory", "Size"]}
        numeric={[1]}
        rows={Object.entries(worker.memoryConfiguration)
          .filter(([, size]) => size > 0)
          .map(([name, size]) => [words(name), format.bytes(size)])}
      />
      <Files path={path} />
    </Card>
  );
}

function Fact({ label, value, note }: { label: string; value: string; note: string }) {
  return (
    <div class="figure">
      <span>{label}</span>
      <strong>{value}</strong>
      <small>{note}</small>
    </div>
  );
}

interface ThreadInfo {
  threadName: string;
  stringifiedThreadInfo: string;
}

/** Logs and the stacks of all threads, loaded when asked for. */
function Files({ path }: { path: string }) {
  const { data } = usePolling<{ logs: { name: string; size: number; mtime: number }[] }>(`${path}/logs`, 10_000);
  const [shown, setShown] = useState<{ name: string; text: string } | null>(null);
  const show = async (name: string, load: () => Promise<string>) => {
    try {
      setShown({ name, text: await load() });
    } catch (error) {
      setShown({ name, text: (error as ApiError).message });
    }
  };
  const threads = async () => (await get<{ threadInfos: ThreadInfo[] }>(`${path}/thread-dump`)).threadInfos.map((one) => one.stringifiedThreadInfo).join("\n");
  return (
    <>
      <p class="buttons files">
        {data?.logs.map((log) => (
          <button type="button" class="small" key={log.name} onClick={() => void show(log.name, () => getText(`${path}/logs/${encodeURIComponent(log.name)}`))}>
            {log.name} ({format.bytes(log.size)})
          </button>
        ))}
        <button type="button" class="small" onClick={() => void show("Thread dump", threads)}>
          Thread dump
        </button>
        {shown && (
          <button type="button" class="small" onClick={() => setShown(null)}>
            Hide
          </button>
        )}
      </p>
      {shown && (
        <pre class="log" aria-label={shown.name}>
          {shown.text || "The file is empty."}
        </pre>
      )}
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
      <Card title="Logs and threads of the service">
        <Files path="jobmanager" />
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
  const [values, setValues] = useState({ entryClass: "", parallelism: "", programArgs: "", savepointPath: "" });
  const [plan, setPlan] = useState<Job | null>(null);
  const [allow, setAllow] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const attempt = async (work: (body: unknown) => Promise<void>) => {
    setBusy(true);
    setProblem("");
    try {
      const filled = Object.fromEntries(Object.entries(values).filter(([, value]) => value.trim() !== ""));
      await work({ ...filled, allowNonRestoredState: allow });
    } catch (error) {
      setProblem((error as ApiError).message);
    }
    setBusy(false);
  };
  const program = `jars/${encodeURIComponent(id)}`;
  const start = () =>
    attempt(async (body) => {
      const { jobid } = await send<{ jobid: string }>("POST", `${program}/run`, body);
      window.location.hash = `#/jobs/${jobid}`;
    });
  const preview = () => attempt(async (body) => setPlan(planned((await send<{ plan: Plan }>("POST", `${program}/plan`, body)).plan)));
  const fields: [keyof typeof values, string, string][] = [
    ["entryClass", "Module or function", "the file itself; pkg.job or pkg.job:main"],
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
        <button type="button" disabled={busy} onClick={() => void preview()}>
          Show plan
        </button>
        <button type="button" class="primary" disabled={busy} onClick={() => void start()}>
          {busy ? "Starting…" : "Run"}
        </button>
      </div>
      {plan && <Graph job={plan} live={new Map()} selected={null} onSelect={() => undefined} />}
    </Card>
  );
}

interface Plan {
  name: string;
  nodes: (PlanNode & { description?: string })[];
}

const ENTITIES: Record<string, string> = { "&gt;": ">", "&lt;": "<", "&amp;": "&", "&quot;": '"', "&#39;": "'" };

/** A plan as a job that has not started. Descriptions come escaped, for browsers that insert them as HTML. */
function planned(plan: Plan): Job {
  const name = (node: Plan["nodes"][number]) => (node.description ?? node.id).replace(/<br\/?>/g, " ").replace(/&[a-z0-9#]+;/g, (entity) => ENTITIES[entity] ?? entity);
  const vertices = plan.nodes.map((node) => ({ id: node.id, name: name(node), parallelism: node.parallelism, maxParallelism: 0, status: "CREATED", duration: 0, metrics: {} }));
  return { jid: "", name: plan.name, state: "CREATED", "job-type": "STREAMING", "start-time": 0, "end-time": -1, duration: 0, vertices, plan };
}
