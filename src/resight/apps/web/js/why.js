// Why an answer was found: query and answer together, with the evidence drawn on them and the facts beside them.

import { align } from "./alignment.js";
import { chance } from "./results.js";
import { form, post } from "./api.js";
import { openModal } from "./dialog.js";
import { breakable, button, facts, h, icon, iconButton, put } from "./dom.js";
import { announce, problem } from "./notifications.js";
import { fileOf } from "./thumbnails.js";
import { fieldsOf } from "./search_request.js";
import { makeStage } from "./stage.js";
import { formatBox, formatChance, formatCount, formatName, formatOrigin, formatScore, formatTime, formatValue, formatVerdict } from "./format.js";

const MODELS = {
  homography: "plane (homography)",
  similarity: "shift, scale and rotation (similarity)",
  fundamental: "pair of camera positions (fundamental matrix)",
};

const MODES = [
  ["side", "Side by side"],
  ["swipe", "Swipe"],
  ["blink", "Blink"],
];
const LAYERS = [
  ["lines", "Lines", "l"],
  ["heat", "Heat", "h"],
  ["parts", "Parts", "p"],
  ["outlines", "Outlines", "o"],
];

export function openWhy({ request, answer, rank: first, findSimilar }) {
  let rank = first;
  let mode = "side";
  let layers = new Set(["lines", "outlines"]);
  let stage = null;
  let asking = new AbortController();
  const told = new Map(); // id → evidence, while the dialog is open
  const head = h("div", { class: "why-head" });
  const tools = h("div", { class: "why-tools" });
  const picture = h("div", { class: "why-picture" });
  const aside = h("div", { class: "why-facts", tabindex: "0", role: "region", "aria-label": "Facts" });
  const dialog = h(
    "dialog",
    { class: "why", tabindex: "-1", "aria-label": "Why this answer" },
    head,
    tools,
    h("div", { class: "why-main" }, picture, aside),
  );
  dialog.addEventListener("keydown", press);
  openModal(dialog, document.activeElement, () => {
    stage?.close();
    asking.abort();
  });
  dialog.focus();
  show(rank);

  async function show(next) {
    rank = next;
    const hit = answer.hits[rank];
    asking.abort();
    asking = new AbortController();
    draw(hit, told.get(hit.id) ?? null);
    announce(
      `Answer ${rank + 1} of ${answer.hits.length}: ${hit.id}, ${formatChance(hit.probability)}, ${formatVerdict(hit.probability)}`,
    );
    if (told.has(hit.id)) {
      return;
    }
    try {
      told.set(
        hit.id,
        await post("/api/why", form({ ...fieldsOf(request), hit: hit.id }), { signal: asking.signal, patient: true }),
      );
      if (answer.hits[rank] === hit) {
        draw(hit, told.get(hit.id));
      }
    } catch (error) {
      if (error.name !== "AbortError") {
        put(
          aside,
          problem(error, () => show(rank)),
        );
      }
    }
  }

  function draw(hit, why) {
    const query = {
      src: request.source.shown ?? request.source.url,
      name: request.source.name,
      size: why?.sizes.query ?? request.source.size ?? answer.query.size,
      box: request.box,
    };
    const image = {
      src: fileOf(hit.id, 1280),
      name: hit.id,
      size: why?.sizes.image ?? hit.size,
      box: why?.box ?? hit.box,
      region: why?.region,
    };
    const alignment = why && align(why, request.box);
    const focused = document.activeElement?.dataset.key;
    stage?.close();
    stage = makeStage({ query, image }, why, alignment);
    put(picture, stage.element);
    drawHead(hit);
    drawTools(why);
    put(
      aside,
      ...(why
        ? formatFacts(hit, why, alignment)
        : [
            chance(hit.probability),
            h("p", { class: "quiet" }, h("span", { class: "spinner inline" }), "Loading the evidence…"),
          ]),
    );
    setMode(mode);
    setLayers();
    if (!dialog.contains(document.activeElement)) {
      (dialog.querySelector(`[data-key="${focused}"]:not(:disabled)`) ?? dialog).focus();
    }
  }

  function drawHead(hit) {
    put(
      head,
      iconButton("previous", "Previous answer", () => show(rank - 1), {
        disabled: rank === 0,
        data: { key: "previous" },
      }),
      iconButton("next", "Next answer", () => show(rank + 1), {
        disabled: rank === answer.hits.length - 1,
        data: { key: "next" },
      }),
      h("h2", {}, h("span", { class: "quiet" }, `${rank + 1} of ${answer.hits.length}`), " ", breakable(hit.id)),
      button(
        [icon("similar"), h("span", {}, "Find similar")],
        () => {
          dialog.close();
          findSimilar(hit.id);
        },
        { class: "tool plain" },
      ),
      iconButton("close", "Close", () => dialog.close(), { data: { key: "close" } }),
    );
  }

  function drawTools(why) {
    const there = {
      lines: Boolean(why?.match?.points.length),
      heat: Boolean(why?.heat || why?.query_heat),
      parts: Boolean(why?.pairs?.length),
      outlines: true,
    };
    const swipe = h("input", {
      type: "range",
      min: 0,
      max: 100,
      value: 50,
      "aria-label": "Share of the query shown",
      on: { input: () => stage.setSwipe(Number(swipe.value)) },
    });
    const opacity = h("input", {
      type: "range",
      min: 10,
      max: 100,
      value: 60,
      "aria-label": "Strength of the heat map",
      on: { input: () => picture.style.setProperty("--heat", opacity.value / 100) },
    });
    const pause = button(
      "Pause",
      () => {
        const paused = pause.getAttribute("aria-pressed") !== "true";
        pause.setAttribute("aria-pressed", String(paused));
        stage.setBlinking(!paused);
      },
      { class: "tool", "aria-pressed": "false" },
    );
    put(
      tools,
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "Comparison mode" },
        ...MODES.map(([name, words]) => button(words, () => setMode(name), { data: { mode: name, key: name } })),
      ),
      h("span", { class: "only-swipe" }, swipe),
      h(
        "span",
        { class: "only-blink row" },
        pause,
        button("Flip", () => stage.flip(), { class: "tool" }),
      ),
      h(
        "div",
        { class: "row layers", role: "group", "aria-label": "Layers" },
        ...LAYERS.map(([name, words]) =>
          button(words, () => toggle(name), {
            class: "tool",
            data: { layer: name, key: name },
            disabled: !there[name],
          }),
        ),
      ),
      there.heat && h("span", { class: "only-heat" }, opacity),
      h(
        "div",
        { class: "zoom" },
        iconButton("minus", "Zoom out", () => stage.zoomBy(1 / 1.5)),
        iconButton("plus", "Zoom in", () => stage.zoomBy(1.5)),
        iconButton("fit", "Whole images", () => stage.fit()),
      ),
    );
  }

  function setMode(next) {
    mode = next;
    dialog.dataset.mode = mode;
    stage.setMode(mode);
    if (mode === "swipe") {
      stage.setSwipe(Number(tools.querySelector(".only-swipe input").value));
    }
    for (const each of tools.querySelectorAll("[data-mode]")) {
      each.setAttribute("aria-pressed", String(each.dataset.mode === mode));
    }
  }

  function toggle(name) {
    layers = new Set(layers.has(name) ? [...layers].filter((one) => one !== name) : [...layers, name]);
    setLayers();
  }

  function setLayers() {
    dialog.dataset.layers = [...layers].join(" ");
    for (const each of tools.querySelectorAll("[data-layer]")) {
      each.setAttribute("aria-pressed", String(layers.has(each.dataset.layer)));
    }
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input")) {
      return;
    }
    const layer = LAYERS.find(([, , key]) => key === event.key.toLowerCase());
    const deeds = {
      ArrowRight: () => rank < answer.hits.length - 1 && show(rank + 1),
      ArrowLeft: () => rank > 0 && show(rank - 1),
      b: () => setMode(mode === "blink" ? "side" : "blink"),
      "+": () => stage.zoomBy(1.5),
      "=": () => stage.zoomBy(1.5),
      "-": () => stage.zoomBy(1 / 1.5),
      0: () => stage.fit(),
    };
    const deed = layer ? () => toggle(layer[0]) : (deeds[event.key] ?? deeds[event.key.toLowerCase()]);
    if (deed) {
      event.preventDefault();
      deed();
    }
  }
}

function formatFacts(hit, why, alignment) {
  const { match } = why;
  return [
    chance(why.probability),
    facts([
      ["Where", why.box && formatBox(why.box)],
      ["Location", why.box && formatOrigin(why.located_by)],
      [
        "Matches",
        match &&
          `${formatCount(match.inliers, "point")} of ${match.tentative} agree on one ${MODELS[match.model] ?? match.model}`,
      ],
      ["Region", why.region && formatBox(why.region)],
      ["Overlay", alignment.words],
    ]),
    h(
      "section",
      {},
      h("h3", {}, "Scores by stage"),
      facts(Object.entries(why.stages).map(([name, score]) => [formatName(name), formatScore(score)])),
    ),
    Object.keys(why.seconds).length > 0 &&
      h(
        "section",
        {},
        h("h3", {}, "Time"),
        facts(Object.entries(why.seconds).map(([name, each]) => [formatName(name), formatTime(each)])),
      ),
    (why.heat || why.query_heat) &&
      h(
        "figure",
        { class: "legend" },
        h("div", { class: "scale", "aria-hidden": "true" }),
        h("figcaption", { class: "small quiet" }, "Heat: dark = no match, bright = strong match"),
      ),
    Object.keys(hit.attributes).length > 0 &&
      h(
        "section",
        {},
        h("h3", {}, "About the image"),
        facts(Object.entries(hit.attributes).map(([name, value]) => [name, formatValue(value)])),
      ),
  ];
}
