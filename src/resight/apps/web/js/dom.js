// Elements from names, properties and children. Data becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

// h("button", { class: "tool", on: { click: save }, disabled: true }, "Save")
// `on` holds listeners and `data` the data- attributes; null, undefined and false leave an attribute out, true sets it empty.
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

// An icon of icons.svg; it says nothing to a screen reader, so the words stand beside it or in aria-label.
export function icon(name) {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("use", { href: `/assets/icons.svg#${name}` }),
  );
}

export function button(words, onClick, properties = {}) {
  return h("button", { type: "button", ...properties, on: { click: onClick } }, words);
}

// A button that shows only its icon; `words` is what it is called.
export function iconButton(name, words, onClick, properties = {}) {
  return h(
    "button",
    { type: "button", class: "round", "aria-label": words, title: words, ...properties, on: { click: onClick } },
    icon(name),
  );
}

export function field(label, control, properties = {}) {
  return h("label", { class: "field", ...properties }, h("span", {}, label), control);
}

// The children of `element` are exactly these afterwards.
export function put(element, ...children) {
  element.replaceChildren(...flatten(children));
  return element;
}

// A list of facts: [[name, value], …]; values may be nodes, and rows with null are left out.
export function facts(rows, properties = {}) {
  const shown = rows.filter((row) => row && row[1] !== null && row[1] !== undefined && row[1] !== "");
  return h("dl", properties, ...shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// A long name that breaks where its parts end, and anywhere only if it must.
export function breakable(name) {
  return h("span", { class: "breaks" }, ...name.split(/(?=[/._-])/).flatMap((part) => [part, h("wbr")]));
}

function fill(element, { on = {}, data = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const [event, listener] of Object.entries(on)) {
    element.addEventListener(event, listener);
  }
  Object.assign(element.dataset, data);
  element.append(...flatten(children));
  return element;
}

function flatten(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}
