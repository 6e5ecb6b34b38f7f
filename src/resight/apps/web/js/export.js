// Export of the answers: as JSON, as CSV, as a link, or as a curl command.

import { button, h, icon } from "./dom.js";
import { note } from "./notifications.js";
import { fieldsOf, linkTo } from "./search_request.js";

const COLUMNS = ["rank", "id", "probability", "score", "x0", "y0", "x1", "y1", "located_by"];

export function exportMenu(request, answer) {
  const choices = [
    ["export", "Answers as JSON", () => save("answers.json", "application/json", JSON.stringify(answer, null, 2))],
    ["export", "Answers as CSV", () => save("answers.csv", "text/csv", writeCsv(answer))],
    ["link", "Copy the curl command", () => copy(writeCurl(request), "The command is on the clipboard")],
    request.source.id !== undefined && [
      "link",
      "Copy a link to this search",
      () => copy(location.origin + location.pathname + linkTo(request), "The link is on the clipboard"),
    ],
  ];
  const menu = h(
    "details",
    { class: "menu" },
    h("summary", { class: "tool" }, icon("export"), "Export"),
    h(
      "div",
      {},
      ...choices.filter(Boolean).map(([picture, words, deed]) =>
        button([icon(picture), words], () => {
          menu.open = false;
          deed();
        }),
      ),
    ),
  );
  menu.addEventListener("focusout", (event) => {
    if (!menu.contains(event.relatedTarget)) {
      menu.open = false;
    }
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.open) {
      event.stopPropagation();
      menu.open = false;
      menu.firstChild.focus();
    }
  });
  return menu;
}

export function writeCsv({ hits }) {
  const rows = hits.map((hit, place) => [
    place + 1,
    hit.id,
    hit.probability,
    hit.score,
    ...(hit.box ?? [null, null, null, null]),
    hit.located_by,
  ]);
  return `${[COLUMNS, ...rows].map((row) => row.map(quote).join(",")).join("\r\n")}\r\n`;
}

export function writeCurl(request) {
  const { image, ...fields } = fieldsOf(request);
  const texts = Object.entries(fields).flatMap(([name, value]) =>
    [value]
      .flat()
      .filter((one) => one !== null && one !== undefined && one !== "")
      .map((one) => `${name}=${one}`),
  );
  const parts = [
    ...(image ? [`-F ${shell(`image=@${image.name}`)}`] : []),
    ...texts.map((text) => `--form-string ${shell(text)}`),
  ];
  return ["curl", ...parts, shell(`${location.origin}/api/search`)].join(" ");
}

function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// A cell that a spreadsheet would take for a formula is led by an apostrophe.
function quote(value) {
  if (value === null || value === undefined) {
    return "";
  }
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function copy(text, words) {
  await navigator.clipboard.writeText(text).then(
    () => note(words),
    () => note(text),
  );
}
