// One image of the collection: the picture, what is known of it, and what can be done with it.

import { form, put as send } from "./api.js";
import { openDialog } from "./dialog.js";
import { button, facts, h, icon, iconButton, put } from "./dom.js";
import { jobEnds } from "./jobs.js";
import { note, problem } from "./notifications.js";
import { fileOf, picture } from "./thumbnails.js";
import { link } from "./router.js";
import { collectionName } from "./session.js";
import { formatBytes } from "./format.js";

// changed() runs after attributes were stored; remove() asks, deletes and says whether it did.
export function openRecord(record, { writable, changed, remove }) {
  const [width, height] = record.size;
  const view = h(
    "div",
    { class: "mat record-picture" },
    picture({ src: fileOf(record.id, 1280), size: record.size, alt: record.id, lazy: false }),
  );
  const body = [
    view,
    h(
      "div",
      { class: "row" },
      h(
        "a",
        {
          class: "tool main",
          href: link("search", [], { id: record.id, collection: collectionName() }),
          on: { click: () => dialog.close() },
        },
        icon("similar"),
        "Find similar",
      ),
      writable &&
        button(
          [icon("trash"), "Delete"],
          async () => {
            if (await remove()) {
              dialog.close();
            }
          },
          { class: "tool bad" },
        ),
    ),
    facts([
      ["Size", `${width} × ${height} px`],
      ["File", formatBytes(record.bytes)],
      ["Path", record.path],
      ["SHA-256", record.sha256],
    ]),
    attributeEditor(record, writable, changed),
  ];
  const dialog = openDialog(record.id, body, { properties: { class: "record" } });
}

function attributeEditor(record, writable, changed) {
  const entries = Object.entries(record.attributes);
  if (!writable) {
    return (
      entries.length > 0 &&
      h("section", {}, h("h3", {}, "Attributes"), facts(entries.map(([name, value]) => [name, String(value)])))
    );
  }
  const rows = h("div", { class: "attribute-rows" });
  const readers = new Map(); // row → what it says
  const addRow = (name, value) => {
    const { row, read } = attributeRow(name, value);
    readers.set(row, read);
    rows.append(row);
    return row;
  };
  entries.forEach(([name, value]) => addRow(name, value));
  const state = h("div", {});
  const save = async (event) => {
    event.preventDefault();
    try {
      const { job } = await send(
        "/api/image",
        { id: record.id, collection: collectionName() },
        form({ attributes: JSON.stringify(Object.fromEntries([...rows.children].map((row) => readers.get(row)()))) }),
      );
      const ended = await jobEnds(job.id);
      if (ended.state !== "done" || ended.skipped.length > 0) {
        const reason = ended.error ?? ended.skipped[0]?.reason;
        throw { problem: "The attributes were not stored", actual: reason ?? "" };
      }
      put(state);
      note("Attributes stored");
      changed();
    } catch (error) {
      put(state, problem(error));
    }
  };
  return h(
    "form",
    { class: "stack tight", on: { submit: save } },
    h("h3", {}, "Attributes"),
    rows,
    state,
    h(
      "div",
      { class: "row" },
      button(
        [icon("plus"), "Add one"],
        () => {
          addRow("", "").querySelector("input").focus();
        },
        { class: "tool plain" },
      ),
      h("button", { class: "tool" }, "Save attributes"),
    ),
  );
}

// An unedited value stays as it was: "007" is not a number, and a text may have several lines.
function attributeRow(name, value) {
  const text = String(value);
  const title = h("input", { value: name, "aria-label": "Name", placeholder: "name", required: true });
  const words = { "aria-label": `Value of ${name || "the new attribute"}`, placeholder: "value" };
  const field = text.includes("\n")
    ? h("textarea", { ...words, rows: text.split("\n").length }, text)
    : h("input", { ...words, value: text });
  const row = h(
    "div",
    { class: "attribute-row field" },
    title,
    field,
    iconButton("close", `Remove ${name || "this attribute"}`, () => row.remove()),
  );
  return { row, read: () => [title.value.trim(), field.value === text && name ? value : readValue(field.value)] };
}

// Texts that read as numbers, true or false become these.
function readValue(text) {
  if (text === "true" || text === "false") {
    return text === "true";
  }
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
