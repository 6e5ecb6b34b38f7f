// One review by one reviewer: a pair, a vote, the next pair. A pair is shown only when the vote before it is on disk.

import { align } from "./alignment.js";
import { get, post } from "./api.js";
import { button, h, iconButton, put } from "./dom.js";
import { announce, problem } from "./notifications.js";
import { showEnd } from "./review_summary.js";
import { isTyping } from "./shortcuts.js";
import { makeStage } from "./stage.js";
import { formatChance, formatCount } from "./format.js";

const VERDICTS = [["same", "Same", "S"], ["different", "Different", "D"], ["unsure", "Unsure", "U"], ["skip", "Skip", "Space"]];
const SIDE = 1280; // of the pictures, in pixels
const UNKNOWN = [4, 3]; // the size of a picture that is no longer there

export async function startReview(root, about, reviewer, rename) {
  const base = `/api/reviews/${encodeURIComponent(about.name)}`;
  const flow = { pair: null, last: null, why: null, busy: false, again: false, mode: "side", lines: true, stage: null };
  const bar = h("progress", { max: about.pairs, value: 0, "aria-label": "Pairs reviewed" });
  const count = h("span", { class: "quiet" });
  const fault = h("div");
  const body = h("div", { class: "review-body" });
  const last = h("p", { class: "review-last quiet small" });
  const heading = h("h2", { class: "review-pair small quiet breaks", tabindex: "-1" });
  const machine = h("p", { class: "small" });
  const picture = h("div", { class: "review-picture" });
  const tools = { blink: toggle("Blink", "B", blink), lines: toggle("Lines", "L", turnLines) };
  const work = h("div", { class: "review-work" }, heading, picture, machine,
    h("div", { class: "review-tools row", role: "group", "aria-label": "View of the pair" }, tools.blink, tools.lines,
      iconButton("minus", "Zoom out", () => flow.stage.zoomBy(1 / 1.5)), iconButton("plus", "Zoom in", () => flow.stage.zoomBy(1.5)), iconButton("fit", "Whole images", () => flow.stage.fit()),
      button(["Undo ", h("kbd", {}, "Z")], undo, { class: "tool plain" })),
    h("div", { class: "review-verdicts", role: "group", "aria-label": "Do both show the same object?" },
      ...VERDICTS.map(([verdict, words, key]) => button([words, " ", h("kbd", {}, key)], () => vote(verdict), { class: "tool verdict", data: { verdict } }))));
  put(root, h("div", { class: "head review-head" },
    h("div", {}, h("h1", {}, about.title), h("p", { class: "quiet small" }, `You are ${reviewer}. `, button("Change", rename, { class: "tool plain small" }))),
    h("div", { class: "review-progress" }, bar, count)), fault, body, last);
  document.addEventListener("keydown", press);
  await advance();
  return { close: () => { document.removeEventListener("keydown", press); flow.stage?.close(); } };

  async function advance() {
    await showNext(await get(`${base}/next`, { reviewer, skipped: flow.again || null }));
  }

  function vote(verdict) {
    return workOnce(async () => {
      const told = await post(`${base}/votes`, { reviewer, pair: flow.pair.number, verdict }, { patient: true });
      put(last, formatVote(told));
      await advance();
    });
  }

  // The request names the pair: sent again after a lost answer, it removes no second vote.
  function undo() {
    return workOnce(async () => {
      const told = flow.last === null ? null : await post(`${base}/undo`, { reviewer, pair: flow.last }, { patient: true });
      put(last, told ? "Vote undone" : "There is no vote to undo");
      announce(last.textContent);
      if (told) { await showNext(told); }
    });
  }

  // What is pressed while a vote is being written was not meant for the next pair.
  async function workOnce(action) {
    if (flow.busy) { return; }
    flow.busy = true;
    body.setAttribute("aria-busy", "true");
    try {
      put(fault);
      await action();
    } catch (error) {
      put(fault, problem(error));
    } finally {
      flow.busy = false;
      body.removeAttribute("aria-busy");
    }
  }

  async function showNext({ pair, last: newest, progress }) {
    const seen = progress.total - progress.left;
    Object.assign(flow, { pair, last: newest, why: null });
    bar.value = seen;
    put(count, `${seen.toLocaleString("en-GB")} of ${formatCount(progress.total, "pair")}`);
    if (!pair) {
      flow.stage?.close();
      return showEnd(body, { base, progress, undo, lookAgain: () => { flow.again = true; workOnce(advance); } });
    }
    if (work.parentNode !== body) { put(body, work); }
    put(heading, `Pair ${pair.number}: `, h("b", {}, pair.a.id), " and ", h("b", {}, pair.b.id));
    put(machine, pair.probability === null ? null : formatMachine(pair));
    drawPair();
    heading.focus({ preventScroll: true }); // no button keeps the focus: the space bar would press it again
    showEvidence(pair);
    return null;
  }

  async function showEvidence(pair) {
    const why = await get(`${base}/why`, { pair: pair.number }).catch(() => null); // the pictures are enough to vote
    if (flow.pair === pair && why) {
      flow.why = why;
      drawPair();
    }
  }

  function drawPair() {
    const { pair, why } = flow;
    const side = (name) => ({
      src: `${base}/picture?pair=${pair.number}&side=${name}&size=${SIDE}`, name: pair[name].id, size: pair[name].size ?? UNKNOWN, box: null,
      label: name.toUpperCase(), alt: `Picture ${name.toUpperCase()}: ${pair[name].id}`,
    });
    flow.stage?.close();
    const [query, image] = [side("a"), side("b")];
    flow.stage = makeStage({ query, image }, why, align(why ?? { match: null, box: null, sizes: { query: query.size, image: image.size } }, null));
    put(picture, flow.stage.element);
    Object.assign(work.dataset, { pair: pair.number, evidence: why ? why.match?.inliers ?? 0 : "waiting" });
    tools.lines.disabled = !why?.match;
    showModes();
  }

  // Without motion, the key flips once each time it is pressed; the button takes the mode back.
  function blink(event) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still && flow.mode === "blink" && event?.type === "keydown") { return flow.stage.flip(); }
    flow.mode = flow.mode === "blink" ? "side" : "blink";
    return showModes();
  }

  function turnLines() {
    flow.lines = !flow.lines;
    showModes();
  }

  function showModes() {
    flow.stage.setMode(flow.mode);
    work.dataset.lines = flow.lines ? "on" : "off";
    tools.blink.setAttribute("aria-pressed", String(flow.mode === "blink"));
    tools.lines.setAttribute("aria-pressed", String(flow.lines));
  }

  function press(event) {
    const elsewhere = event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]");
    const onControl = event.key === " " && event.target.closest("button, a");
    if (elsewhere || event.repeat || onControl) { return; }
    const deeds = {
      s: () => vote("same"), d: () => vote("different"), u: () => vote("unsure"), " ": () => vote("skip"), b: () => blink(event), l: turnLines,
      "+": () => flow.stage.zoomBy(1.5), "=": () => flow.stage.zoomBy(1.5), "-": () => flow.stage.zoomBy(1 / 1.5), 0: () => flow.stage.fit(),
    };
    const deed = event.key.toLowerCase() === "z" ? undo : flow.pair && deeds[event.key.toLowerCase()];
    if (deed) { event.preventDefault(); deed(); }
  }
}

function toggle(words, key, onClick) {
  return button([words, " ", h("kbd", {}, key)], onClick, { class: "tool", "aria-pressed": "false" });
}

function formatVote({ vote, machine }) {
  return `Pair ${vote.pair}: you voted ${vote.verdict}; ${formatMachine(machine)}`;
}

function formatMachine({ probability, kind }) {
  const what = { copy: "copy", near_copy: "near-copy" }[kind] ?? "same";
  return `resight’s estimate: ${formatChance(probability)} ${what}`;
}
