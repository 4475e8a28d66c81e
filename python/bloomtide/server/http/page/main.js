// Puts the page together: the stream of pictures, the key that is looked at, the token, the theme.

import { listen, Problem, setToken } from "./api.js";
import { choose, isChosen, refresh, setView, written } from "./key.js";
import { showLive, showLoading } from "./live.js";
import { Past } from "./past.js";
import { $, el, moment, say } from "./words.js";

// Only the state is announced to who listens to the page, not what changes every second.
const state = (name, text, clock) => {
  $("status").dataset.state = $("main").dataset.state = name;
  say("state", text);
  say("clock", clock);
};

function notice(problem) {
  $("notice").hidden = !problem;
  $("notice").replaceChildren(...(problem ? [problem.message, el("small", {}, problem.hint || "")] : []));
}
// A server that is gone is told by the stream. What is no problem of the server's is a mistake of ours.
const failed = (problem) => {
  if (!(problem instanceof Problem)) reportError(problem);
  else if (problem.status) notice(problem);
};

function select(item) {
  if (!item.key_base64 && typeof item.key === "string") history.replaceState(null, "", `#${new URLSearchParams({ key: item.key })}`);
  notice(null);
  return choose(item).catch(failed);
}

showLoading();
const past = new Past({ choose: select, moved: (view) => setView(view)?.catch(failed), failed });

$("lookup").addEventListener("submit", (event) => {
  event.preventDefault();
  select(written($("key-text").value));
});

// --- the token: from the address once, or asked for

const given = new URLSearchParams(location.hash.slice(1));
if (given.has("token")) {
  setToken(given.get("token"));
  history.replaceState(null, "", location.pathname);
}
if (given.get("key")) select({ key: given.get("key") });
let again = null;
$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken($("token-text").value);
  $("token").hidden = true;
  again?.();
});

// --- the theme: system, light, dark, and round again

const THEMES = ["system", "light", "dark"];
const theme = () => document.documentElement.dataset.theme || "system";
const showTheme = () => say("theme", `Theme: ${theme()}`);
$("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try { next === "system" ? localStorage.removeItem("theme") : localStorage.setItem("theme", next); } catch { /* not kept */ }
  showTheme();
});
showTheme();

// --- the stream

let last = null;
let heard = 0;
listen({
  picture(told) {
    last = told.time;
    state("live", "Live", moment(told.time, 1));
    $("old").hidden = !told.old;
    if (told.old) say("old-now", moment(told.monitor.now, 1));
    if (!$("notice").hidden && ++heard % 5 === 0) notice(null);
    showLive(told, select);
    past.learn(told);
    if (!isChosen() && told.hot?.length) choose(told.hot[0]).catch(failed);
    if (isChosen() && Math.round(told.time) % 5 === 0) refresh().catch(failed);
  },
  problem({ error }) { notice({ message: error.message, hint: error.hint }); },
  async lost(problem, wait) {
    const known = last ? `Numbers are from ${moment(last, 1)}.` : "";
    if (problem.status === 401) {
      state("lost", "Token needed", "");
      $("token").hidden = false;
      $("token-text").focus();
      return new Promise((resolve) => { again = resolve; });
    }
    if (problem.status) notice(problem);
    for (let left = wait; left > 0; left -= 1) {
      state("lost", "Connection lost", `Trying again in ${left} s. ${known}`);
      await new Promise((resolve) => { setTimeout(resolve, 1000); window.addEventListener("online", resolve, { once: true }); });
    }
    state(last ? "lost" : "loading", "Connecting", known);
  },
});
