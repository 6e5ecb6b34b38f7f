// Evaluation reports that lie in the server's folder of reports, each shown in a frame of its own.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { empty } from "./notifications.js";
import { link } from "./router.js";

export const title = "Reports";

export async function show(root, route) {
  const reports = await get("/api/reports");
  const render = ({ rest }) =>
    put(
      root,
      ...(rest.length
        ? one(
            reports.find((report) => report.name === rest[0]),
            rest[0],
          )
        : all(reports)),
    );
  render(route);
  return { update: render };
}

function all(reports) {
  if (!reports.length) {
    return [
      h("h1", {}, "Reports"),
      empty(
        "image",
        "No reports",
        "resight eval --html FILE writes one; resight serve --reports FOLDER shows those of a folder.",
      ),
    ];
  }
  return [
    h(
      "div",
      { class: "reading" },
      h("h1", {}, "Reports"),
      h(
        "ul",
        { class: "panel report-list" },
        ...reports.map((report) =>
          h(
            "li",
            {},
            h("a", { href: link("reports", [report.name]) }, report.title || report.name),
            h("span", { class: "small quiet" }, formatDate(report.modified)),
          ),
        ),
      ),
    ),
  ];
}

function one(report, name) {
  if (!report) {
    return [
      empty(
        "alert",
        "No such report",
        `${name} is not in the folder of reports.`,
        h("a", { class: "tool", href: "#/reports" }, "All reports"),
      ),
    ];
  }
  const address = `/reports/${encodeURIComponent(report.name)}`;
  return [
    h(
      "div",
      { class: "head" },
      h("h1", { class: "breaks" }, report.title || report.name),
      h(
        "div",
        { class: "row" },
        h("a", { class: "tool", href: address, target: "_blank", rel: "noopener" }, "Open alone"),
        h("a", { class: "tool", href: "#/reports" }, "All reports"),
      ),
    ),
    h("iframe", { class: "frame", src: address, title: report.title || report.name }),
  ];
}

function formatDate(modified) {
  return new Date(modified * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
