// Uploads that could not be added and are kept: a list with Retry and Discard. It is hidden while there are none.

import { get, post } from "./api.js";
import { button, h, put } from "./dom.js";
import { problem } from "./notifications.js";
import { formatCount } from "./format.js";

// `changed` is called when uploads are tried again.
export function quarantine({ changed }) {
  const element = h("section", { class: "panel job", "aria-label": "Uploads in quarantine", hidden: true });
  refresh();
  return { element, refresh };

  function refresh() {
    get("/api/quarantine").then(draw, () => {});
  }

  function draw(uploads) {
    element.hidden = uploads.length === 0;
    put(
      element,
      h(
        "div",
        { class: "row between" },
        h("strong", {}, `Could not be added, kept: ${formatCount(uploads.length, "upload")}`),
        h(
          "span",
          {},
          button("Retry", () => act("retry", uploads), { class: "tool plain" }),
          button("Discard", () => act("discard", uploads), { class: "tool plain" }),
        ),
      ),
      h(
        "ul",
        { class: "quarantined" },
        ...uploads.map((each) => h("li", {}, h("b", { class: "breaks" }, each.name), ` ${each.reason}`)),
      ),
    );
  }

  async function act(action, uploads) {
    try {
      for (const collection of new Set(uploads.map((each) => each.collection))) {
        const keys = uploads.filter((each) => each.collection === collection).map((each) => each.key);
        await post(`/api/quarantine/${action}`, { keys, collection });
      }
      refresh();
      if (action === "retry") {
        changed();
      }
    } catch (error) {
      element.append(problem(error));
    }
  }
}
