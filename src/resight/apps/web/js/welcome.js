// The search view before the first search: the upload area, and sample images of the collection.

import { get } from "./api.js";
import { h, icon, put } from "./dom.js";
import { empty } from "./notifications.js";
import { fileOf, picture } from "./thumbnails.js";
import { link } from "./router.js";
import { collection, collectionName } from "./session.js";
import { formatCount } from "./format.js";

const SHOWN = 12;

export function welcome({ pick }) {
  const here = collection();
  const samples = h("div", {});
  fillSamples(samples, here);
  return h(
    "div",
    { class: "welcome" },
    h("h1", {}, "Find the same object"),
    h(
      "p",
      { class: "lead" },
      `Upload a photo. resight finds the same object in ${formatCount(here?.images ?? 0, "image")} and shows where.`,
    ),
    h(
      "button",
      { type: "button", class: "drop-area", data: { pick: "" }, on: { click: pick } },
      icon("drop"),
      h("strong", {}, "Drop an image, or choose one"),
      h("span", { class: "quiet" }, "You can also paste. Your photo is not stored."),
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
        "Add images to search them.",
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
    h("h2", {}, "Or start with one of these"),
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
    h("p", {}, h("a", { href: "#/images" }, `All ${formatCount(here.images, "image")}`)),
  );
}
