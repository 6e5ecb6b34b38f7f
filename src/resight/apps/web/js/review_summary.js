// The end of a review: what this reviewer has said, how far reviewers agree, and where the votes can be had.

import { get } from "./api.js";
import { button, facts, h, icon, put } from "./dom.js";
import { formatCount } from "./format.js";

export async function showEnd(root, { base, progress, undo, lookAgain }) {
  const heading = h("h2", { tabindex: "-1" }, icon("check"), `You have reviewed all ${formatCount(progress.total, "pair")}`);
  const agreement = h("div", { class: "stack" });
  const skipped = progress.counts.skip ?? 0;
  put(root, h("section", { class: "panel stack review-end" },
    heading,
    facts([["Same", progress.counts.same ?? 0], ["Different", progress.counts.different ?? 0], ["Unsure", progress.counts.unsure ?? 0], ["Skipped", skipped]].map(([name, count]) => [name, String(count)])),
    agreement,
    h("div", { class: "row" },
      skipped > 0 && button(`Review the ${formatCount(skipped, "skipped pair")} again`, lookAgain, { class: "tool main" }),
      h("a", { class: "tool", href: `${base}/votes.csv`, download: "votes.csv" }, icon("export"), "All votes as CSV"),
      button(["Undo ", h("kbd", {}, "Z")], undo, { class: "tool plain" }))));
  heading.focus({ preventScroll: true });
  showAgreement(agreement, await get(`${base}/agreement`));
}

function showAgreement(root, { reviewers, two, pairs, fleiss }) {
  const names = Object.keys(reviewers);
  if (names.length < 2) {
    return put(root, h("p", { class: "quiet" }, "Agreement is shown once a second reviewer has voted."));
  }
  return put(root,
    h("h3", {}, "Agreement"),
    h("div", { class: "review-table", tabindex: "0", role: "region", "aria-label": "Agreement of each two reviewers" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Reviewers", "Both voted on", "Agreed", "Cohen’s kappa"].map((words, at) => h("th", { scope: "col", class: at && "number" }, words)))),
      h("tbody", {}, ...two.map((row) => h("tr", {},
        h("th", { scope: "row" }, `${row.first} and ${row.second}`),
        [row.pairs, row.agreed, formatKappa(row.kappa)].map((value) => h("td", { class: "number" }, String(value)))))))),
    names.length > 2 && h("p", {}, `Fleiss’ kappa of all ${names.length} reviewers over ${formatCount(pairs, "pair")}: ${formatKappa(fleiss)}`),
    h("p", { class: "quiet small" }, "1 is full agreement, 0 is chance. Skipped pairs do not count; unsure counts like any other vote."));
}

function formatKappa(kappa) {
  return kappa === null ? "not defined" : kappa.toFixed(2);
}
