// The live stream: one socket to /ws/events/, resumed at its cursor; long-poll where sockets do not pass.
// Use: <div data-live data-topics="jobs:aster" data-cursor="123"> … dispatches on document:
//   gatehouse:event  {seq, name, at, topics, payload}
//   gatehouse:resync {seq}               the cursor was too old: fetch the page's rows again
//   gatehouse:live   {state, since, missed}   state live | reconnecting | paused | closed
(() => {
  "use strict";
  const FIRST_MS = 500, LONGEST_MS = 30000, TRIES_BEFORE_POLL = 3, POLL_GAP_MS = 1000, POLL_FOR_MS = 30000;

  class Live {
    constructor(topics, cursor) {
      this.topics = topics;
      this.cursor = cursor;
      this.failures = 0;
      this.state = "";
      this.lostAt = null;
      this.missed = 0;
      this.socket = null;
      this.timer = 0;
      this.stop = null;
      this.pollsSince = null;
    }

    address(path) {
      const url = new URL(path, window.location.href);
      if (this.cursor !== null) url.searchParams.set("after", String(this.cursor));
      if (this.topics) url.searchParams.set("topics", this.topics);
      return url;
    }

    start() {
      if (this.state === "closed") return;
      window.clearTimeout(this.timer);
      if (this.failures >= TRIES_BEFORE_POLL) this.poll();
      else this.connect();
    }

    connect() {
      const url = this.address("/ws/events/");
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      const socket = new WebSocket(url);
      this.socket = socket;
      socket.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
      socket.addEventListener("close", () => {
        if (this.socket !== socket) return;
        this.socket = null;
        this.lost();
      });
    }

    async poll() {
      this.stop = new AbortController();
      try {
        const answer = await fetch(this.address("/live/events/"), { credentials: "same-origin", signal: this.stop.signal });
        if (answer.status === 401 || answer.status === 403) return this.receive({ type: "closed", code: answer.status });
        if (!answer.ok) throw new Error(String(answer.status));
        const body = await answer.json();
        this.live();
        for (const message of body.events || []) this.receive({ type: "event", ...message });
        if (body.resync) this.receive({ type: "resync", seq: body.next });
        else this.cursor = Math.max(this.cursor ?? 0, body.next);
        this.timer = window.setTimeout(() => this.state === "live" && this.pollOrConnect(), POLL_GAP_MS);
      } catch {
        if (this.state !== "paused") this.lost();
      }
      return undefined;
    }

    // A server that was away for a while is no proxy without sockets: one more try now and then.
    pollOrConnect() {
      this.pollsSince ??= Date.now();
      if (Date.now() - this.pollsSince < POLL_FOR_MS) return this.poll();
      this.pollsSince = null;
      this.failures = TRIES_BEFORE_POLL - 1;
      return this.connect();
    }

    receive(message) {
      if (message.type === "closed") return this.tell("closed", message.code);
      this.live();
      if (message.type === "resync") {
        this.cursor = message.seq;
        this.dispatch("gatehouse:resync", { seq: message.seq });
      } else if (message.type === "event") {
        if (this.cursor !== null && message.seq <= this.cursor) return undefined;
        this.cursor = message.seq;
        if (this.catching) this.missed += 1;
        this.dispatch("gatehouse:event", message);
      } else if (message.type === "hello" && this.cursor === null) this.cursor = message.seq;
      return undefined;
    }

    // Connected again: what arrives in the next second was missed, and is counted.
    live() {
      this.failures = this.socket ? 0 : this.failures;
      if (this.state === "live") return;
      const again = this.lostAt !== null;
      this.lostAt = null;
      this.missed = 0;
      this.catching = again;
      this.tell("live");
      if (again) window.setTimeout(() => { this.catching = false; this.tell("live"); }, 1000);
    }

    lost() {
      if (this.state === "paused" || this.state === "closed") return;
      this.failures += 1;
      if (this.lostAt === null) this.lostAt = new Date();
      this.tell("reconnecting");
      const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.failures - 1));
      this.timer = window.setTimeout(() => this.start(), wait * (0.5 + Math.random() / 2));
    }

    pause() {
      this.tell("paused");
      window.clearTimeout(this.timer);
      if (this.stop) this.stop.abort();
      const socket = this.socket;
      this.socket = null;
      if (socket) socket.close(1000);
    }

    resume() {
      this.lostAt = new Date();
      this.failures = 0;
      this.start();
    }

    tell(state, code) {
      this.state = state;
      this.dispatch("gatehouse:live", { state, since: this.lostAt, missed: this.missed, code });
    }

    dispatch(name, detail) {
      document.dispatchEvent(new CustomEvent(name, { detail }));
    }
  }

  // The state in words, wherever the page shows it.
  const clock = (at) => at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: document.querySelector("[data-live]")?.dataset.zone || undefined });
  function words({ state, since, missed }) {
    if (state === "paused") return "paused";
    if (state === "closed") return "closed; reload to sign in again";
    if (state === "reconnecting") return since ? `reconnecting, showing ${clock(since)}` : "reconnecting";
    return missed ? `connected, caught up on ${missed} missed` : "connected";
  }
  document.addEventListener("gatehouse:live", (event) => {
    for (const node of document.querySelectorAll("[data-live-state]")) {
      node.querySelector("[data-live-words]").textContent = words(event.detail);
      node.querySelector(".dot").className = event.detail.state === "live" ? "dot" : "dot dot--caution";
    }
    for (const button of document.querySelectorAll("[data-live-pause]")) {
      button.setAttribute("aria-pressed", String(event.detail.state === "paused"));
      const label = button.querySelector("[data-live-pause-words]") || button;
      label.textContent = event.detail.state === "paused" ? "Resume updates" : "Pause updates";
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector("[data-live]");
    if (!place) return;
    const cursor = place.dataset.cursor;
    const live = new Live(place.dataset.topics || "", cursor ? Number(cursor) : null);
    window.gatehouseLive = live;
    document.addEventListener("click", (event) => {
      if (!event.target.closest("[data-live-pause]")) return;
      if (live.state === "paused") live.resume();
      else live.pause();
    });
    window.addEventListener("pagehide", () => live.state !== "closed" && live.pause());
    window.addEventListener("pageshow", (event) => event.persisted && live.resume());
    live.start();
  });
})();
