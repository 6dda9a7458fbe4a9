// Live jobs: the server draws the rows; this file decides when to ask for them again.
// Rows never jump while focus or pointer is in the table: changes are counted and wait for a button.
(() => {
  "use strict";
  const GATHER_MS = 150, APART_MS = 600, AGES_MS = 30000, FRESH_MS = 15000, SAY_MS = 10000, TICKER_ROWS = 12;
  const VERBS = { "job.submitted": "submitted", "job.started": "started", "job.ended": "ended" };
  const changed = new Map(); // "cluster:raw id" -> when it changed
  let waiting = 0, unsaid = 0, timer = 0, asked = 0, paused = false;

  const results = () => document.getElementById("live-results");
  const held = () => {
    const place = results(), table = place && place.querySelector("table");
    return Boolean(table && (table.matches(":hover") || place.contains(document.activeElement)));
  };
  const known = () => Number(document.querySelector("[data-live]")?.dataset.known || 0);
  const key = (payload) => (payload.cluster && payload.raw_id ? `${payload.cluster}:${payload.raw_id}` : "");

  function ask() {
    const place = results();
    if (!place || !window.htmx) return;
    waiting = 0;
    asked = Date.now();
    showWaiting();
    window.htmx.ajax("GET", window.location.pathname + window.location.search, { target: "#live-results", select: "#live-results", swap: "outerHTML" });
  }

  function showWaiting() {
    const button = document.getElementById("live-apply");
    if (!button) return;
    button.hidden = waiting === 0;
    button.textContent = waiting === 1 ? "Show 1 change" : `Show ${waiting} changes`;
  }

  // The first change starts the clock and later ones do not put it back: a busy cluster must not starve the page.
  function settle() {
    if (timer) return;
    const wait = Math.max(GATHER_MS, asked + APART_MS - Date.now());
    timer = window.setTimeout(() => {
      timer = 0;
      if (held()) showWaiting();
      else ask();
    }, wait);
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

  // Everything here came from outside: it is set as text, and the address is built from checked parts.
  function tick(event) {
    const list = document.getElementById("ticker");
    if (!list) return;
    const { at, name, payload } = event;
    const zone = document.querySelector("[data-live]")?.dataset.zone;
    const line = document.createElement("li");
    const time = document.createElement("time");
    time.dateTime = at;
    time.textContent = new Date(at).toLocaleTimeString("en-GB", { timeZone: zone || undefined });
    const body = document.createElement("div");
    const link = document.createElement("a");
    link.className = "fig";
    link.textContent = payload.job_id || String(payload.raw_id || event.seq);
    if (key(payload)) link.href = `/jobs/${encodeURIComponent(payload.cluster)}/${encodeURIComponent(payload.raw_id)}/`;
    body.append(link, ` ${payload.text || VERBS[name] || name}`);
    if (payload.user) {
      const whose = document.createElement("small");
      whose.textContent = payload.user;
      body.append(whose);
    }
    line.append(time, body);
    list.prepend(line);
    while (list.children.length > TICKER_ROWS) list.lastElementChild.remove();
    const empty = document.getElementById("ticker-empty");
    if (empty) empty.hidden = true;
  }

  document.addEventListener("gatehouse:event", ({ detail }) => {
    if (!detail.name.startsWith("job.")) return;
    const cursor = document.getElementById("live-cursor");
    if (cursor) cursor.textContent = detail.seq.toLocaleString("en-GB");
    tick(detail);
    // What had happened when the page was drawn is in its rows: it is told for the ticker, and nothing changed.
    if (detail.seq <= known()) return;
    const id = key(detail.payload);
    if (id) changed.set(id, Date.now());
    waiting += 1;
    unsaid += 1;
    if (held()) showWaiting();
    settle();
  });
  document.addEventListener("gatehouse:live", ({ detail }) => { paused = detail.state === "paused"; });
  document.addEventListener("gatehouse:resync", ask);
  document.addEventListener("htmx:afterSettle", markFresh);
  // Counts by state come along with the rows; a reader who stands in them keeps the place.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.contains(document.activeElement)) event.detail.shouldSwap = false;
  });
  document.addEventListener("click", (event) => event.target.closest("#live-apply") && ask());
  for (const kind of ["pointerout", "focusout"]) {
    document.addEventListener(kind, (event) => {
      if (waiting && event.target.closest && event.target.closest("#live-results")) settle();
    });
  }
  window.setInterval(markFresh, 1000);
  // Ages and running times move even where nothing happens.
  window.setInterval(() => {
    if (!paused && !document.hidden && !held() && Date.now() - asked > AGES_MS) ask();
  }, AGES_MS / 2);
  // The ticker is no live region; this one sentence is, and at most every ten seconds.
  window.setInterval(() => {
    const status = document.getElementById("say");
    if (!unsaid || !status) return;
    status.textContent = unsaid === 1 ? "1 new event" : `${unsaid} new events`;
    unsaid = 0;
  }, SAY_MS);
})();
