// Keyboard shortcuts of the whole page, and the list of all shortcuts.

import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { emit } from "./events.js";

export const SHORTCUTS = [
  ["/", "Focus the upload area"],
  ["Ctrl V", "Search with the image on the clipboard"],
  ["← →", "Previous and next answer"],
  ["Enter", "Explain the answer"],
  ["S", "Find similar: search with the answer"],
  ["Esc", "Close, or stop a search"],
  ["N P", "On the map of craters: next and previous answer"],
  ["B", "In the explanation: blink between the two images"],
  ["L H P O", "In the explanation: lines, heat, parts, outlines"],
  ["+ − 0", "In the explanation: zoom in, zoom out, reset"],
  ["?", "Show this list"],
];

export function listenForKeys() {
  document.addEventListener("keydown", (event) => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      isTyping(event.target) ||
      document.querySelector("dialog[open]")
    ) {
      return;
    }
    if (event.key === "?") {
      showShortcuts();
    }
    if (event.key === "/") {
      event.preventDefault();
      emit("pick-query");
    }
  });
}

export function isTyping(target) {
  return target.matches(
    "input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select, [contenteditable]",
  );
}

export function shortcutList() {
  return h(
    "dl",
    { class: "keys" },
    ...SHORTCUTS.map(([keys, words]) =>
      h(
        "div",
        {},
        h(
          "dt",
          {},
          keys.split(" ").flatMap((key) => [h("kbd", {}, key), " "]),
        ),
        h("dd", {}, words),
      ),
    ),
  );
}

export function showShortcuts() {
  openDialog("Keyboard shortcuts", shortcutList());
}
