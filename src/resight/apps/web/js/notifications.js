// Messages of the page: short messages, errors with their fix, the banner for a server that is away.

import { button, facts, h, icon, put } from "./dom.js";
import { watch } from "./events.js";

const SHOWN_FOR = 5000; // milliseconds
const corner = document.getElementById("notes");

// Read out by a screen reader, not shown. What lies behind a modal dialog is silent, so a dialog has a place of its own.
export function announce(words) {
  const live = document.querySelector("dialog[open] [data-live]") ?? document.getElementById("live");
  live.textContent = words;
}

// A message in the corner that goes away; `action` is [words, function].
export function note(words, action = null) {
  const box = h(
    "div",
    { class: "note" },
    h("span", {}, words),
    action &&
      button(
        action[0],
        () => {
          box.remove();
          action[1]();
        },
        { class: "tool plain" },
      ),
  );
  corner.append(box);
  (document.querySelector("dialog[open]") ?? document.body).append(corner); // a dialog covers all that is not in it
  announce(words);
  setTimeout(() => box.remove(), SHOWN_FOR);
}

// An error as a panel: what is wrong, what was expected, what came, what to do.
export function problem(error, again = null) {
  const told = error.problem
    ? error
    : { problem: "Something went wrong on this page", actual: String(error), fix: "Reload the page" };
  return h(
    "section",
    { class: "problem", role: "alert" },
    h("h2", {}, icon("alert"), told.problem),
    facts([
      ["Expected", told.expected],
      ["Actual", told.actual],
      ["What to do", told.fix],
    ]),
    told.requestId && h("p", { class: "small" }, `Request ${told.requestId}`),
    again && h("div", {}, button("Try again", again, { class: "tool" })),
  );
}

export function empty(picture, title, words, ...more) {
  return h("div", { class: "empty" }, icon(picture), h("h2", {}, title), h("p", {}, words), ...more);
}

export function watchServer() {
  const banner = document.getElementById("banner");
  const show = (words, calm) => {
    put(banner, words);
    banner.hidden = !words;
    banner.classList.toggle("calm", calm);
  };
  watch("offline", (away) =>
    show(away ? "The server does not answer. Reconnecting automatically …" : "", false),
  );
  watch("waiting", (left) => show(left ? `The server is busy: trying again in ${left} s` : "", true));
}
