// Live jobs: the server draws the rows; this file decides when to ask for them again.
// Rows never jump while focus or pointer is in the table: changes are counted and wait for a button.
(() => {
  "use strict";
  const GATHER_MS = 400, FRESH_MS = 15000, SAY_MS = 10000, TICKER_ROWS = 12;
  const VERBS = { "job.submitted": "submitted", "job.started": "started", "job.ended": "ended", "job.cancelled": "cancelled" };
  const changed = new Map(); // job id -> when it changed
  let waiting = 0, unsaid = 0, timer = 0;

  const results = () => document.getElementById("live-results");
  const held = () => {
    const table = results() && results().querySelector("table");
    return Boolean(table && (table.matches(":hover") || table.contains(document.activeElement)));
  };

  function ask() {
    const place = results();
    if (!place || !window.htmx) return;
    waiting = 0;
    showWaiting();
    window.htmx.ajax("GET", window.location.pathname + window.location.search, { target: "#live-results", select: "#live-results", swap: "outerHTML" });
  }

  function showWaiting() {
    const button = document.getElementById("live-apply");
    if (!button) return;
    button.hidden = waiting === 0;
    button.textContent = waiting === 1 ? "Show 1 change" : `Show ${waiting} changes`;
  }

  function settle() {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => (held() ? showWaiting() : ask()), GATHER_MS);
  }

  function markFresh() {
    const now = Date.now();
    for (const [id, at] of changed) if (now - at > FRESH_MS) changed.delete(id);
    for (const row of document.querySelectorAll("#live-results [data-job]")) {
      const at = changed.get(row.dataset.job);
      row.classList.toggle("is-fresh", at !== undefined);
      if (at !== undefined && now - at < 2000) row.classList.add("is-new");
    }
  }

  function tick(event) {
    const list = document.getElementById("ticker");
    if (!list) return;
    const { at, name, payload } = event;
    const line = document.createElement("li");
    const time = document.createElement("time");
    time.dateTime = at;
    time.textContent = new Date(at).toLocaleTimeString("en-GB", { timeZone: list.dataset.zone || undefined });
    const body = document.createElement("div");
    const link = document.createElement("a");
    link.className = "fig";
    link.textContent = payload.job || payload.raw_id || String(event.seq);
    link.href = typeof payload.url === "string" && payload.url.startsWith("/") ? payload.url : `${window.location.pathname}?q=${encodeURIComponent(link.textContent)}`;
    body.append(link, ` ${payload.text || VERBS[name] || name}`);
    if (payload.whose) {
      const whose = document.createElement("small");
      whose.textContent = payload.whose;
      body.append(whose);
    }
    line.append(time, body);
    list.prepend(line);
    while (list.children.length > TICKER_ROWS) list.lastElementChild.remove();
  }

  document.addEventListener("gatehouse:event", ({ detail }) => {
    if (!detail.name.startsWith("job.")) return;
    const id = String(detail.payload.job_pk ?? detail.payload.job ?? "");
    if (id) changed.set(id, Date.now());
    waiting += 1;
    unsaid += 1;
    tick(detail);
    settle();
  });
  document.addEventListener("gatehouse:resync", ask);
  document.addEventListener("htmx:afterSettle", markFresh);
  document.addEventListener("click", (event) => event.target.closest("#live-apply") && ask());
  for (const kind of ["pointerout", "focusout"]) {
    document.addEventListener(kind, (event) => {
      if (waiting && event.target.closest && event.target.closest("#live-results table")) settle();
    });
  }
  window.setInterval(markFresh, 1000);
  // The ticker is no live region; this one sentence is, and at most every ten seconds.
  window.setInterval(() => {
    const status = document.getElementById("say");
    if (!unsaid || !status) return;
    status.textContent = unsaid === 1 ? "1 new event" : `${unsaid} new events`;
    unsaid = 0;
  }, SAY_MS);
})();
