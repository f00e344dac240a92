import { render } from "preact";
import type { Config, Overview } from "./api";
import { signIn } from "./api";
import { usePolling, useRoute, useTheme } from "./hooks";
import { ServicePage, SubmitPage, WorkersPage } from "./pages/cluster";
import { JobPage } from "./pages/job";
import { OverviewPage } from "./pages/overview";
import "./styles.css";

const PAGES: [string, string, string][] = [
  ["/", "Overview", "M3 3h7v9H3zM14 3h7v5h-7zM14 12h7v9h-7zM3 16h7v5H3z"],
  ["/workers", "Workers", "M3 4h18v6H3zM3 14h18v6H3zM7 7h.01M7 17h.01"],
  ["/service", "Service", "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4"],
  ["/submit", "Submit", "M12 16V4M7 9l5-5 5 5M4 20h16"],
];

function App() {
  const route = useRoute();
  const [theme, toggle] = useTheme();
  const { data: config } = usePolling<Config>("config", 0);
  const { data: cluster, error } = usePolling<Overview>("overview", 5000);
  const [, section = "", id = "", tab = "overview"] = route.split("/");
  const page =
    section === "jobs" && id ? (
      <JobPage key={id} id={id} tab={tab} config={config} theme={theme} />
    ) : section === "workers" ? (
      <WorkersPage />
    ) : section === "service" ? (
      <ServicePage />
    ) : section === "submit" ? (
      <SubmitPage />
    ) : (
      <OverviewPage />
    );
  return (
    <>
      <aside>
        <a class="brand" href="#/">
          <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
            <rect width="32" height="32" rx="8" class="brand-box" />
            <path d="M7 9h9a7 7 0 0 1 0 14H7" class="brand-pipe" />
            <path d="M7 16h8" class="brand-water" />
          </svg>
          <span>Penstock</span>
        </a>
        <nav aria-label="Pages">
          {PAGES.map(([path, label, icon]) => (
            <a key={path} href={`#${path}`} aria-current={path === `/${section}` || (path === "/" && section === "jobs") ? "page" : undefined}>
              <svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">
                <path d={icon} />
              </svg>
              <span>{label}</span>
            </a>
          ))}
        </nav>
        <div class="foot">
          <button type="button" class="small" onClick={toggle} aria-label={`Switch to ${theme === "dark" ? "light" : "dark"} colours`}>
            {theme === "dark" ? "☀ Light" : "☾ Dark"}
          </button>
          <small>{error ? <span class="offline">not connected</span> : `version ${cluster?.["penstock-version"] ?? ""}`}</small>
        </div>
      </aside>
      <main>{error?.status === 401 ? <SignIn /> : page}</main>
    </>
  );
}

/** The service asks for a token: it is kept for this tab only. */
function SignIn() {
  return (
    <form
      class="card sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        signIn(String(new FormData(event.currentTarget).get("token") ?? "").trim());
        window.location.reload();
      }}
    >
      <h2>Sign in</h2>
      <label>
        Token
        <input type="password" name="token" autocomplete="off" required />
      </label>
      <p class="hint">
        <code>penstock token create</code> makes one. It stays in this tab.
      </p>
      <button type="submit" class="primary">
        Sign in
      </button>
    </form>
  );
}

const place = document.getElementById("app");
if (place) render(<App />, place);
