// The review of pairs: which reviews there are, who looks at one, and then pair after pair (review_flow.js).

import { get } from "./api.js";
import { field, h, put } from "./dom.js";
import { empty } from "./notifications.js";
import { startReview } from "./review_flow.js";
import { link } from "./router.js";
import { formatCount } from "./format.js";

export const title = "Review";
const NAME = "resight.reviewer"; // where the browser keeps the reviewer's name

export async function show(root, route) {
  let open = null;
  let latest = 0; // an address that came while an earlier one was still being fetched wins
  const update = async (to) => {
    const mine = ++latest;
    open?.close();
    open = null;
    const [name] = to.rest;
    const opened = name ? await showReview(root, name, update, to) : await showList(root);
    if (mine === latest) { open = opened; } else { opened?.close(); }
  };
  await update(route);
  return { update, close: () => open?.close() };
}

async function showList(root) {
  const reviews = await get("/api/reviews");
  if (!reviews.length) {
    put(root, heading("Review"), empty("check", "Nothing to review", "Start the server with --review FOLDER. “resight audit” and “resight dedup --review” make such folders."));
    return null;
  }
  const reviewer = localStorage.getItem(NAME);
  const known = await Promise.all(reviews.map((one) => get(`/api/reviews/${encodeURIComponent(one.name)}`, { reviewer })));
  put(root, heading("Review"), h("ul", { class: "review-list" }, ...known.map((one) => h("li", {},
    h("a", { class: "panel", href: link("review", [one.name]) },
      h("h2", {}, one.title),
      h("p", { class: "quiet" }, formatCount(one.pairs, "pair"), one.progress && one.progress.left < one.pairs ? `, ${one.progress.left.toLocaleString("en-GB")} left for you` : ""))))));
  return null;
}

async function showReview(root, name, update, route) {
  const reviewer = localStorage.getItem(NAME);
  const about = await get(`/api/reviews/${encodeURIComponent(name)}`);
  if (!reviewer) { askName(root, about, () => update(route)); return null; }
  const rename = () => { localStorage.removeItem(NAME); update(route); };
  return startReview(root, about, reviewer, rename);
}

function askName(root, about, done) {
  const name = h("input", { name: "reviewer", required: true, maxlength: 60, autocomplete: "nickname", pattern: "\\s*[^=+@\\-\\s].*" });
  const keep = (event) => {
    event.preventDefault();
    localStorage.setItem(NAME, name.value.trim());
    done();
  };
  put(root, h("form", { class: "panel stack review-name", on: { submit: keep } },
    h("h1", {}, about.title),
    h("p", { class: "quiet" }, `${formatCount(about.pairs, "pair")} of images. For each pair, decide whether both show the same object. Your name is stored with your votes; other reviewers do not see them.`),
    field("Your name or initials", name),
    h("div", {}, h("button", { class: "tool main", type: "submit" }, "Start"))));
  name.focus();
}

function heading(words) {
  return h("div", { class: "head" }, h("h1", {}, words));
}
