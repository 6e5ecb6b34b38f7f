// About this server: version, collections, shortcuts, and the API.

import { get, remove } from "./api.js";
import { button, h, put } from "./dom.js";
import { known } from "./session.js";
import { shortcutList } from "./shortcuts.js";

export const title = "About";

export async function show(root) {
  const [health, api] = await Promise.all([get("/api/health"), get("/api/openapi.json").catch(() => null)]);
  const { collections, needsKey } = known();
  put(
    root,
    h(
      "div",
      { class: "reading" },
      h(
        "div",
        { class: "head" },
        h(
          "div",
          {},
          h("h1", {}, "About"),
          h(
            "p",
            { class: "quiet" },
            `resight ${health.version}: finds the same object in other images, shows where it is and how sure the answer is.`,
          ),
        ),
        needsKey &&
          button(
            "Sign out",
            async () => {
              await remove("/api/session");
              location.reload();
            },
            { class: "tool" },
          ),
      ),
      h("section", { class: "panel stack" }, h("h2", {}, "Collections"), collectionTable(collections)),
      h("section", { class: "panel stack" }, h("h2", {}, "Keyboard shortcuts"), shortcutList()),
      h(
        "section",
        { class: "panel stack" },
        h("h2", {}, "For programs"),
        api ? operationList(api) : h("p", { class: "quiet" }, "This server does not publish its API description."),
      ),
    ),
  );
}

function collectionTable(collections) {
  return h(
    "div",
    { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Collections" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Name"),
          h("th", { scope: "col", class: "number" }, "Images"),
          h("th", { scope: "col" }, "Recipe"),
          h("th", { scope: "col" }, "Encoders"),
        ),
      ),
      h(
        "tbody",
        {},
        ...collections.map((one) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, one.name),
            h("td", { class: "number" }, one.images.toLocaleString("en-GB")),
            h("td", {}, String(one.recipe)),
            h("td", {}, [one.encoders].flat().join(", ")),
          ),
        ),
      ),
    ),
  );
}

function operationList(api) {
  const rows = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, words: operation.summary ?? "" })),
  );
  return [
    h(
      "p",
      { class: "quiet" },
      "Everything here is available by API: ",
      h("a", { href: "/docs" }, "read and try it"),
      ", or see ",
      h("a", { href: "/api/openapi.json" }, "openapi.json"),
      ".",
    ),
    h(
      "ul",
      { class: "operations" },
      ...rows.map(({ path, method, words }) =>
        h(
          "li",
          {},
          h("code", {}, h("b", {}, method.toUpperCase()), " ", path),
          h("span", { class: "quiet small" }, words),
        ),
      ),
    ),
  ];
}
