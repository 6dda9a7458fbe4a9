// The frame's behaviour: theme, keys, copy link, busy marks. Pages work without any of it.
(() => {
  "use strict";
  const root = document.documentElement;
  const say = (words) => {
    const status = document.getElementById("say");
    if (status) status.textContent = words;
  };

  // Theme: the buttons post a form; with script the choice takes effect without a reload.
  function setTheme(theme) {
    const secure = window.location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `theme=${theme}; path=/; max-age=31536000; SameSite=Lax${secure}`;
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    for (const button of document.querySelectorAll(".theme button")) button.setAttribute("aria-pressed", String(button.value === theme));
    document.dispatchEvent(new CustomEvent("gatehouse:theme", { detail: theme }));
  }
  document.addEventListener("submit", (event) => {
    if (!event.target.matches(".theme")) return;
    event.preventDefault();
    if (event.submitter) setTheme(event.submitter.value);
  });

  // Keys: never in fields, and they can be switched off.
  const off = () => window.localStorage.getItem("gatehouse.keys") === "off";
  const inField = (node) => node.closest("input, textarea, select, [contenteditable]");
  function showSwitch() {
    for (const button of document.querySelectorAll("[data-keys-switch]")) {
      button.setAttribute("aria-pressed", String(!off()));
      button.textContent = off() ? "Shortcuts are off" : "Shortcuts are on";
    }
  }
  function stops() {
    const list = document.querySelector('[data-keys="list"]');
    if (list) return [...list.querySelectorAll("a.inc")];
    return [...document.querySelectorAll('[data-keys="rows"] tbody tr')].map((row) => row.querySelector("a[href]")).filter(Boolean);
  }
  function move(step) {
    const items = stops();
    const row = document.activeElement.closest && document.activeElement.closest("tr, a.inc");
    let at = items.findIndex((item) => item === document.activeElement || (row && row.contains(item)));
    if (at < 0) at = items.findIndex((item) => item.hasAttribute("aria-current"));
    const next = items[Math.min(Math.max(at + step, 0), items.length - 1)];
    if (next) next.focus();
  }
  const KEYS = {
    "/": () => { const search = document.querySelector("[data-search]"); if (search) search.focus(); },
    "?": () => { const keys = document.getElementById("keys"); if (keys) keys.togglePopover(); },
    j: () => move(1),
    k: () => move(-1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || inField(event.target)) return;
    if (off() && event.key !== "?") return;
    const act = KEYS[event.key.toLowerCase()];
    const own = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!act && !own) return;
    event.preventDefault();
    if (act) act();
    else own.click();
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-keys-switch]");
    if (!button) return;
    if (button.hasAttribute("data-keys-switch")) {
      window.localStorage.setItem("gatehouse.keys", off() ? "on" : "off");
      showSwitch();
      return;
    }
    const words = button.querySelector("[data-copy-words]") || button;
    const before = words.dataset.before || words.textContent;
    words.dataset.before = before;
    try {
      const text = button.dataset.copy;
      await navigator.clipboard.writeText(text.startsWith("/") ? new URL(text, window.location.href).href : text);
      words.textContent = "Copied";
      say("Copied");
    } catch {
      words.textContent = "Copy it by hand";
    }
    window.setTimeout(() => { words.textContent = before; }, 3000);
  });

  // Busy: what will be replaced says so; content stays readable.
  // What renews itself does so quietly: the line tells of what somebody asked for.
  const asked = ({ elt, target }) => target && elt !== target && elt !== document.body;
  document.addEventListener("htmx:beforeRequest", (event) => asked(event.detail) && event.detail.target.setAttribute("aria-busy", "true"));
  // What was left out of the first address is said once; the next choice is known.
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt.matches(".filters")) for (const note of detail.elt.querySelectorAll(".filters__note")) note.remove();
  });
  document.addEventListener("htmx:afterRequest", (event) => event.detail.target && event.detail.target.removeAttribute("aria-busy"));

  function ready(scope) {
    for (const button of scope.querySelectorAll("[data-copy][hidden]")) button.hidden = !navigator.clipboard;
    // Filters apply on change, so their button is for pages without script.
    for (const form of scope.querySelectorAll(".filters[hx-get]")) form.classList.add("is-live");
    const errors = scope.querySelector(".form-errors");
    if (errors) errors.focus();
  }
  document.addEventListener("DOMContentLoaded", () => { ready(document); showSwitch(); });
  document.addEventListener("htmx:load", (event) => ready(event.target));
})();
