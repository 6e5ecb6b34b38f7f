// A map, its zoom buttons, and the list beside it.

import { h, iconButton } from "./dom.js";

export function frameMap(element, aside, { zoomBy, fit }) {
  return h(
    "div",
    { class: "map-frame" },
    h(
      "div",
      { class: "map-view" },
      element,
      h(
        "div",
        { class: "map-zoom" },
        iconButton("plus", "Zoom in", () => zoomBy(2)),
        iconButton("minus", "Zoom out", () => zoomBy(0.5)),
        iconButton("fit", "Show all", fit),
      ),
    ),
    aside,
  );
}
