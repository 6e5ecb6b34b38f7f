// The images of the collection: look through them, add, edit, delete.

import { get, post } from "./api.js";
import { uploads } from "./upload.js";
import { confirm } from "./dialog.js";
import { button, h, icon, put } from "./dom.js";
import { receiveFiles } from "./drop_zone.js";
import { filterBar } from "./filters.js";
import { announce, empty, note, problem } from "./notifications.js";
import { fileOf, picture } from "./thumbnails.js";
import { openRecord } from "./image_details.js";
import { link, rename } from "./router.js";
import { collection, collectionName, known, refresh } from "./session.js";
import { formatCount } from "./format.js";

export const title = "Images";
const PAGE = 60;

export async function show(root, route) {
  let filters = { where: route.params.getAll("where"), near: route.params.get("near") };
  let next = null;
  let total = 0;
  const chosen = new Set();
  const writable = known().mayWrite && collection()?.writable !== false;
  const grid = h("ul", { class: "tiles" });
  const below = h("div", { class: "below" });
  const count = h("p", { class: "quiet", role: "status" });
  const bar = h("div", { class: "selection", hidden: true, role: "region", "aria-label": "Selection" });
  const adding = uploads({ finished: reload });
  const chooser = h("input", {
    type: "file",
    multiple: true,
    accept: "image/*,.tif,.tiff,.heic,.heif,.avif,.jxl,.jp2",
    class: "unseen",
    tabindex: "-1",
    "aria-label": "Images to add",
    on: {
      change: () => {
        adding.add([...chooser.files]);
        chooser.value = "";
      },
    },
  });
  if (writable) {
    receiveFiles(`Drop images to add them to ${collection()?.name}`, adding.add);
  }
  put(
    root,
    h(
      "div",
      { class: "head" },
      h("div", {}, h("h1", {}, "Images"), count),
      h(
        "div",
        { class: "row" },
        filterBar(filters, changeFilters),
        writable && button([icon("plus"), "Add images"], () => chooser.click(), { class: "tool main add-images" }),
      ),
    ),
    chooser,
    adding.element,
    grid,
    below,
    bar,
  );
  await load();
  return {
    update(to) {
      filters = { where: to.params.getAll("where"), near: to.params.get("near") };
      return reload();
    },
    close() {
      receiveFiles("", null);
      adding.close();
    },
  };

  function changeFilters(changed) {
    filters = changed;
    rename(link("images", [], { ...filters, collection: collectionName() }));
    reload();
  }

  function reload() {
    next = null;
    chosen.clear();
    drawSelection();
    return load();
  }

  async function load() {
    const after = next;
    if (!after) {
      put(
        grid,
        ...Array.from({ length: 12 }, () =>
          h("li", { class: "tile", "aria-hidden": "true" }, h("div", { class: "skeleton tile-skeleton" })),
        ),
      );
    }
    try {
      const answer = await get("/api/images", { ...filters, after, limit: PAGE, collection: collectionName() });
      next = answer.next;
      total = answer.total;
      const tiles = answer.images.map(tile);
      if (after) {
        grid.append(...tiles);
        tiles[0]?.querySelector(".tile-open").focus();
      } else {
        put(grid, ...tiles);
      }
      drawBelow();
    } catch (error) {
      put(below, problem(error, load));
    }
  }

  function drawBelow() {
    const filtered = filters.where.length > 0 || Boolean(filters.near);
    const shown = grid.children.length;
    put(count, filtered ? `${formatCount(total, "image")} match the filters` : formatCount(total, "image"));
    const nothing = filtered
      ? empty("filter", "No image matches the filters", "Remove a filter and try again.")
      : empty(
          "image",
          "No images yet",
          writable ? "Drop images here, or choose them." : "This collection is empty.",
          writable && button("Choose images", () => chooser.click(), { class: "tool main" }),
        );
    put(
      below,
      total === 0 && nothing,
      next && button(`Show more (${shown} of ${total.toLocaleString("en-GB")})`, load, { class: "tool" }),
    );
  }

  function tile(record) {
    const check = h("input", {
      type: "checkbox",
      "aria-label": `Select ${record.id}`,
      on: {
        change: () => {
          if (check.checked) {
            chosen.add(record.id);
          } else {
            chosen.delete(record.id);
          }
          drawSelection();
        },
      },
    });
    return h(
      "li",
      { class: "tile", data: { id: record.id } },
      h(
        "button",
        {
          type: "button",
          class: "tile-open",
          "aria-label": `About ${record.id}`,
          on: { click: () => openRecord(record, { writable, changed: reload, remove: () => removeAll([record.id]) }) },
        },
        picture({ src: fileOf(record.id, 320), size: record.size, alt: "" }),
        h("span", { class: "tile-name" }, record.id),
      ),
      writable && h("label", { class: "tile-pick" }, check),
    );
  }

  function drawSelection() {
    bar.hidden = chosen.size === 0;
    grid.classList.toggle("choosing", chosen.size > 0);
    for (const each of grid.querySelectorAll(".tile")) {
      each.classList.toggle("chosen", chosen.has(each.dataset.id));
    }
    put(
      bar,
      h("strong", {}, `${chosen.size} selected`),
      button("Clear", clear, { class: "tool plain" }),
      button([icon("trash"), "Delete"], () => removeAll([...chosen]), { class: "tool bad" }),
    );
  }

  function clear() {
    for (const box of grid.querySelectorAll("input:checked")) {
      box.checked = false;
    }
    chosen.clear();
    drawSelection();
    grid.querySelector(".tile-open")?.focus();
  }

  // True when they are gone. Focus goes to the image that follows the first one.
  async function removeAll(ids) {
    const words =
      ids.length === 1
        ? `“${ids[0]}” will be removed from the collection.`
        : `${ids.length} images will be removed from the collection.`;
    if (
      !(await confirm(
        ids.length === 1 ? "Delete this image?" : `Delete ${ids.length} images?`,
        `${words} Files outside of the collection are not deleted.`,
        "Delete",
      ))
    ) {
      return false;
    }
    const place = [...grid.children].findIndex((each) => ids.includes(each.dataset.id));
    try {
      const { removed } = await post("/api/images/delete", {
        ids,
        ...(collectionName() && { collection: collectionName() }),
      });
      note(`${formatCount(removed, "image")} deleted`);
      announce(`${formatCount(removed, "image")} deleted`);
    } catch (error) {
      put(below, problem(error));
      return false;
    }
    await Promise.all([reload(), refresh()]);
    (
      grid.children[Math.min(place, grid.children.length - 1)]?.querySelector(".tile-open") ??
      root.querySelector(".add-images")
    )?.focus();
    return true;
  }
}
