// Uploads to the collection in parcels; each is a job whose progress the server sends.

import { form, get, post, remove } from "./api.js";
import { button, h, put } from "./dom.js";
import { announce, problem } from "./notifications.js";
import { collectionName, refresh } from "./session.js";
import { watchJob } from "./jobs.js";
import { formatCount } from "./format.js";
import { quarantine } from "./quarantine.js";

const PARCEL_FILES = 20;
const PARCEL_BYTES = 20e6; // below the server's limit of a request

// add(files) uploads them; `finished` is called when a job has ended.
export function uploads({ finished }) {
  const element = h("div", { class: "jobs", role: "region", "aria-label": "Images being added" });
  const stops = new Set();
  const kept = quarantine({ changed: refreshJobs });
  element.append(kept.element);
  refreshJobs();
  return { element, add, close: () => stops.forEach((stop) => stop()) };

  function refreshJobs() {
    get("/api/jobs").then(
      (jobs) => jobs.filter((job) => ["waiting", "running"].includes(job.state)).forEach((job) => follow(job, panel())),
      () => {},
    );
  }

  async function add(files) {
    for (const parcel of parcels(files)) {
      const root = panel();
      put(root, h("p", {}, h("span", { class: "spinner inline" }), `Sending ${formatCount(parcel.length, "file")}…`));
      try {
        const { job } = await post("/api/images", form({ images: parcel, collection: collectionName() }));
        follow(job, root);
      } catch (error) {
        put(
          root,
          problem(error),
          button("Dismiss", () => root.remove(), { class: "tool plain" }),
        );
      }
    }
  }

  function panel() {
    const root = h("section", { class: "panel job" });
    element.append(root);
    return root;
  }

  function follow(job, root) {
    draw(job, root);
    const stop = watchJob(job.id, (now) => {
      draw(now, root);
      if (!["waiting", "running"].includes(now.state)) {
        stops.delete(stop);
        announce(formatJob(now));
        kept.refresh();
        refresh();
        finished();
      }
    });
    stops.add(stop);
  }

  function draw(job, root) {
    const over = !["waiting", "running"].includes(job.state);
    const progress = h("progress", { max: Math.max(job.total, 1), value: job.done, "aria-label": "Progress" });
    put(
      root,
      h(
        "div",
        { class: "row between" },
        h("strong", {}, formatJob(job)),
        over
          ? button("Dismiss", () => root.remove(), { class: "tool plain" })
          : button("Cancel", () => remove(`/api/jobs/${encodeURIComponent(job.id)}`).catch(() => {}), {
              class: "tool plain",
            }),
      ),
      !over && progress,
      job.error && problem(typeof job.error === "string" ? { problem: job.error } : job.error),
      job.skipped.length > 0 &&
        h(
          "details",
          { open: over },
          h("summary", {}, `${formatCount(job.skipped.length, "file")} not added`),
          h(
            "ul",
            { class: "skipped" },
            ...job.skipped.map((each) => h("li", {}, h("b", { class: "breaks" }, each.path), ` ${each.reason}`)),
          ),
        ),
    );
  }
}

function formatJob(job) {
  if (job.state === "waiting") {
    return `Waiting to add ${formatCount(job.total, "image")}`;
  }
  if (job.state === "running") {
    return `Adding ${job.done} of ${formatCount(job.total, "image")}`;
  }
  const done = [
    [job.added, "added"],
    [job.updated, "updated"],
  ]
    .filter(([count]) => count)
    .map(([count, words]) => `${formatCount(count, "image")} ${words}`)
    .join(", ");
  return {
    done: done || "Nothing new",
    cancelled: `Cancelled; ${done || "nothing added"}`,
    failed: `Failed; ${done || "nothing added"}`,
  }[job.state];
}

function parcels(files) {
  const made = [];
  let [parcel, bytes] = [[], 0];
  for (const file of files) {
    if (parcel.length && (parcel.length === PARCEL_FILES || bytes + file.size > PARCEL_BYTES)) {
      made.push(parcel);
      [parcel, bytes] = [[], 0];
    }
    parcel.push(file);
    bytes += file.size;
  }
  return parcel.length ? [...made, parcel] : made;
}
