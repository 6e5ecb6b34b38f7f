// Keys that work anywhere on the page, and the list of all of them.

import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { tell } from "./watchers.js";

export const SHORTCUTS = [
  ["/", "go to where an image is chosen; Enter opens the files"],
  ["Ctrl V", "search with the image on the clipboard"],
  ["← →", "go from answer to answer; in the explanation, to the next answer"],
  ["Enter", "explain the answer: why was it found?"],
  ["S", "search with the answer itself: find similar"],
  ["Esc", "close, or stop a search"],
  ["B", "in the explanation: blink between the two pictures"],
  ["L H P O", "in the explanation: lines, heat, parts, outlines"],
  ["+ − 0", "in the explanation: zoom in, out, and back"],
  ["?", "this list"],
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
      tell("pick-query");
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
