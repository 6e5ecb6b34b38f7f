// The search before anything is looked for: how to begin, and images of the collection to begin with.

import { get } from "./api.js";
import { h, icon, put } from "./dom.js";
import { empty } from "./notes.js";
import { fileOf, picture } from "./pictures.js";
import { link } from "./router.js";
import { collection, collectionName } from "./session.js";
import { sayCount } from "./wording.js";

const SHOWN = 12;

export function welcome({ pick }) {
  const here = collection();
  const samples = h("div", {});
  fillSamples(samples, here);
  return h(
    "div",
    { class: "welcome" },
    h("h1", {}, "Find the very same thing"),
    h(
      "p",
      { class: "lead" },
      `Give a picture of it. You see where it is in ${sayCount(here?.images ?? 0, "image")}, and how sure that is.`,
    ),
    h(
      "button",
      { type: "button", class: "drop-area", data: { pick: "" }, on: { click: pick } },
      icon("drop"),
      h("strong", {}, "Drop an image, or choose one"),
      h("span", { class: "quiet" }, "Paste works too. It is not kept on the server."),
    ),
    samples,
  );
}

async function fillSamples(root, here) {
  if (!here?.images) {
    return put(
      root,
      empty(
        "image",
        "This collection is empty",
        "Add images first; then they can be searched.",
        h("a", { class: "tool main", href: "#/images" }, "Add images"),
      ),
    );
  }
  const answer = await get("/api/images", { limit: SHOWN, collection: collectionName() }).catch(() => ({ images: [] }));
  if (!answer.images.length) {
    return;
  }
  put(
    root,
    h("h2", {}, "Or begin with one of these"),
    h(
      "ul",
      { class: "samples" },
      ...answer.images.map((record) =>
        h(
          "li",
          {},
          h(
            "a",
            {
              href: link("search", [], { id: record.id, collection: collectionName() }),
              "aria-label": `Search with ${record.id}`,
              title: record.id,
            },
            picture({ src: fileOf(record.id, 320), size: record.size, alt: "" }),
          ),
        ),
      ),
    ),
    h("p", {}, h("a", { href: "#/images" }, `All ${sayCount(here.images, "image")}`)),
  );
}
