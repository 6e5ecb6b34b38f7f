// Light, dark, or what the system says; remembered in this browser.

import { note } from "./notifications.js";

const THEMES = ["system", "light", "dark"];

export function restoreTheme() {
  apply(localStorage.getItem("theme") ?? "system");
}

export function turnTheme() {
  const next = THEMES[(THEMES.indexOf(localStorage.getItem("theme") ?? "system") + 1) % THEMES.length];
  localStorage.setItem("theme", next);
  apply(next);
  note(next === "system" ? "Colours: system" : `Colours: ${next}`);
}

function apply(theme) {
  document.documentElement.dataset.theme = theme;
}
