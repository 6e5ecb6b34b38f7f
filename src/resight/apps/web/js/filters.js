// Conditions on attributes and a circle on the map: shown as chips, added from what the collection knows.

import { get } from "./api.js";
import { button, field, h, icon, put } from "./dom.js";
import { link } from "./router.js";
import { collection, collectionName } from "./session.js";
import { formatMetres, formatValue } from "./format.js";

const SIGNS = [
  [">=", "at least"],
  ["<=", "at most"],
  ["=", "exactly"],
];

// changed({ where, near }) is called with the filters that shall hold from now on.
export function filterBar({ where, near }, changed) {
  let current = { where, near };
  const element = h("div", { class: "filters", role: "group", "aria-label": "Filters" });
  draw();
  return element;

  function apply(next) {
    current = { ...current, ...next };
    draw();
    changed(current);
  }

  function draw() {
    const chips = current.where.map((condition, place) =>
      chip(formatCondition(condition), () => apply({ where: current.where.toSpliced(place, 1) })),
    );
    const circle = current.near && chip(formatCircle(current.near), () => apply({ near: null }));
    const panel = h("form", { class: "filter-form" });
    const menu = h(
      "details",
      {
        class: "menu",
        on: {
          toggle: () => {
            if (menu.open) {
              fillForm(panel, (condition) => apply({ where: [...new Set([...current.where, condition])] }));
            }
          },
        },
      },
      h("summary", { class: "tool" }, icon("filter"), "Filter"),
      h("div", {}, panel),
    );
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.open) {
        event.stopPropagation();
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    });
    put(element, menu, ...chips, circle);
  }
}

function chip(words, remove) {
  return h(
    "span",
    { class: "chip" },
    h("span", {}, words),
    button(icon("close"), remove, { "aria-label": `Remove the filter ${words}` }),
  );
}

async function fillForm(panel, add) {
  put(panel, h("p", { class: "quiet small" }, "Loading the attributes…"));
  const told = await get("/api/collections/attributes", { collection: collectionName() }).catch(() => ({
    attributes: [],
  }));
  const place =
    collection()?.positions &&
    h(
      "a",
      { href: link("map", [], { choose: "near", collection: collectionName() }), class: "small" },
      "A place on the map",
    );
  if (!told.attributes.length) {
    return put(panel, h("p", { class: "quiet small" }, "The images have no attributes to filter by."), place);
  }
  const names = h("select", {}, ...told.attributes.map((one) => h("option", { value: one.name }, one.name)));
  const value = h("div", { class: "filter-value" });
  let read = () => "";
  const choose = () => {
    read = valueControl(
      value,
      told.attributes.find((one) => one.name === names.value),
    );
  };
  names.addEventListener("change", choose);
  panel.onsubmit = (event) => {
    event.preventDefault();
    const condition = read();
    if (condition) {
      add(condition);
    }
  };
  put(panel, field("Attribute", names), value, h("button", { class: "tool main" }, "Add the filter"), place);
  choose();
  names.focus();
}

// Fills `root` with what a value is given by; gives the function that reads the condition.
function valueControl(root, attribute) {
  if (attribute.kind === "number") {
    const sign = h("select", {}, ...SIGNS.map(([each, words]) => h("option", { value: each }, words)));
    const number = h("input", {
      type: "number",
      step: "any",
      required: true,
      placeholder: `${formatValue(attribute.min)} to ${formatValue(attribute.max)}`,
    });
    put(root, field("Is", sign), field("Number", number));
    return () => number.value && `${attribute.name}${sign.value}${number.value}`;
  }
  if (attribute.kind === "boolean") {
    const choice = h("select", {}, h("option", { value: "true" }, "yes"), h("option", { value: "false" }, "no"));
    put(root, field("Is", choice));
    return () => `${attribute.name}=${choice.value}`;
  }
  const options = (attribute.values ?? []).map((one) =>
    h("option", { value: one.value }, `${formatValue(one.value)} (${one.count})`),
  );
  const known = options.length > 0;
  const text = known ? h("select", {}, ...options) : h("input", { required: true });
  put(root, field("Is", text));
  return () => text.value && `${attribute.name}=${quote(text.value)}`;
}

// A value that holds a word of the syntax of conditions stands in quotes.
function quote(value) {
  if (!/\s(and|or)([\s(]|$)|^["']/i.test(value)) return value;
  const mark = ['"', "'"].find((one) => !value.includes(one));
  return mark ? `${mark}${value}${mark}` : value;
}

function formatCondition(condition) {
  const [, name, sign, value] = condition.match(/^(.*?)(!=|<=|>=|=|<|>)(.*)$/s) ?? [null, condition, "", ""];
  return `${name} ${{ ">=": "≥", "<=": "≤", "!=": "≠", "=": "is" }[sign] ?? sign} ${value}`;
}

function formatCircle(near) {
  const [lat, lon, metres] = near.split(",").map(Number);
  return `within ${formatMetres(metres)} of ${lat.toFixed(4)}, ${lon.toFixed(4)}`;
}
