// The list of answers: the shortlist first, then the verified answers in the same cards, which move to their ranks.

import { breakable, button, facts, h, icon, put } from "./dom.js";
import { empty } from "./notifications.js";
import { collection } from "./session.js";
import { fileOf, picture } from "./thumbnails.js";
import { isTyping } from "./shortcuts.js";
import { isLikely, formatChance, formatCount, formatName, formatOrigin, formatTime, formatVerdict } from "./format.js";

const GLIDE = { duration: 420, easing: "cubic-bezier(.2, .7, .2, 1)" };
const PLACEHOLDERS = 6;

// explain(answer, rank) opens the explanation of an answer; findSimilar(id) searches with it.
export function answerList({ explain, findSimilar }) {
  const element = h("div", { class: "answer-list", tabindex: "-1" });
  const cards = new Map(); // id → its card, kept from the shortlist to the answer
  element.addEventListener("keydown", (event) => walk(element, event, findSimilar));
  return { element, wait, show, clear: () => put(element) };

  function wait() {
    cards.clear();
    put(
      element,
      h(
        "ol",
        { class: "cards", "aria-hidden": "true" },
        ...Array.from({ length: PLACEHOLDERS }, () =>
          h(
            "li",
            { class: "card" },
            h("div", { class: "mat skeleton" }),
            h(
              "div",
              { class: "card-body" },
              h("div", { class: "skeleton line wide" }),
              h("div", { class: "skeleton line" }),
            ),
          ),
        ),
      ),
    );
  }

  // Returns the numbers of likely and unlikely answers.
  function show(answer, verified) {
    const places = new Map([...cards].map(([id, card]) => [id, card.getBoundingClientRect()]));
    const focused = document.activeElement?.closest?.(".card")?.dataset.id;
    const all = answer.hits.map((hit, rank) => cardOf(hit, rank, answer, verified));
    const likely = all.filter((_, rank) => isLikely(answer.hits[rank].probability));
    const unlikely = all.filter((card) => !likely.includes(card));
    put(
      element,
      ...(verified
        ? [positionLine(answer) ?? craterLine(answer), ...groups(answer, likely, unlikely), about(answer)]
        : [h("ol", { class: "cards" }, ...all)]),
    );
    glide(places);
    if (focused) {
      cards.get(focused)?.querySelector(".card-open")?.focus({ preventScroll: true });
    }
    return { likely: likely.length, unlikely: unlikely.length };
  }

  function cardOf(hit, rank, answer, verified) {
    const card = cards.get(hit.id) ?? h("li", { class: "card", data: { id: hit.id } });
    cards.set(hit.id, card);
    card.classList.toggle("likely", verified && isLikely(hit.probability));
    const kept = card.querySelector(".mat img"); // reuse the loaded image
    const view = picture({ src: kept?.src ?? fileOf(hit.id, 640), size: hit.size, alt: "", box: hit.box, others: hit.other_boxes });
    const words = verified
      ? `${hit.id}: ${formatChance(hit.probability)}, ${formatVerdict(hit.probability)}. Explain`
      : `${hit.id}, not verified yet`;
    put(
      card,
      h(
        "button",
        {
          type: "button",
          class: "mat card-open",
          "aria-label": words,
          disabled: !verified,
          on: { click: () => explain(answer, rank) },
        },
        view,
      ),
      h(
        "div",
        { class: "card-body" },
        verified
          ? chance(hit.probability)
          : h("div", { class: "chance" }, h("div", { class: "skeleton line big" }), h("span", {}, "not verified yet")),
        h("h3", {}, breakable(hit.id)),
        verified && hit.box && h("p", { class: "small quiet located" }, `Location: ${formatOrigin(hit.located_by)}`),
        verified &&
          hit.other_boxes.length > 0 &&
          h("p", { class: "small quiet" }, `Found ${hit.other_boxes.length + 1} times in this image`),
        verified &&
          h(
            "div",
            { class: "row card-tools" },
            button([icon("why"), "Why"], () => explain(answer, rank), {
              class: "tool plain",
              "aria-label": `Why ${hit.id}`,
            }),
            button([icon("similar"), h("span", {}, "Find similar")], () => findSimilar(hit.id), {
              class: "tool plain",
              "aria-label": `Find similar to ${hit.id}`,
            }),
          ),
      ),
    );
    return card;
  }

  function glide(places) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      return;
    }
    for (const [id, card] of cards) {
      const from = places.get(id);
      if (!from || !card.isConnected) {
        continue;
      }
      const to = card.getBoundingClientRect();
      const [dx, dy] = [from.left - to.left, from.top - to.top];
      if (dx || dy) {
        card.animate([{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }], GLIDE);
      }
    }
  }
}

export function chance(probability) {
  const level = h("span", { class: "level" });
  level.style.width = `${Math.max(1.5, (probability ?? 0) * 100)}%`;
  return h(
    "div",
    { class: `chance ${isLikely(probability) ? "likely" : ""}` },
    h("strong", {}, formatChance(probability)),
    h("span", {}, formatVerdict(probability)),
    probability !== null && h("span", { class: "bar", "aria-hidden": "true" }, level),
  );
}

function groups(answer, likely, unlikely) {
  if (!answer.hits.length) {
    return [
      empty(
        "filter",
        "No images to search",
        "No image matches the filters. Remove a filter and try again.",
      ),
    ];
  }
  const found = likely.length
    ? h("ol", { class: "cards", "aria-label": "Likely answers" }, ...likely)
    : empty(
        "search",
        "No likely match",
        "The closest images are below. Mark the object with a box, or try another photo of it.",
      );
  return [
    found,
    unlikely.length > 0 &&
      h(
        "section",
        { class: "unlikely" },
        h(
          "h2",
          {},
          "Unlikely ",
          h("span", { class: "quiet" }, `${unlikely.length.toLocaleString("en-GB")} closest other ${unlikely.length === 1 ? "image" : "images"}`),
        ),
        h("ol", { class: "cards small-cards", "aria-label": "Unlikely answers" }, ...unlikely),
      ),
  ];
}

function positionLine({ position }) {
  if (!position?.known) {
    return null;
  }
  const words = `Taken at ${position.lat.toFixed(5)}, ${position.lon.toFixed(5)}, within ${Math.round(position.metres)} m (${formatChance(position.probability)})`;
  return h("p", { class: "position-line" }, icon("place"), h("span", {}, words), h("a", { href: "#/map" }, "Map"));
}

function craterLine(answer) {
  return collection()?.craters && answer.hits.length > 0
    ? h("p", { class: "position-line" }, icon("place"), h("a", { href: "#/map" }, "Show the answers on the map"))
    : null;
}

function about(answer) {
  const seconds = Object.entries(answer.seconds);
  const total = seconds.reduce((sum, [, each]) => sum + each, 0);
  return h(
    "details",
    { class: "about-answer" },
    h("summary", {}, `Searched ${formatCount(answer.images, "image")} in ${formatTime(total)}`),
    facts([
      ...seconds.map(([stage, each]) => [formatName(stage), formatTime(each)]),
      ["proof", answer.proof],
      ["version", String(answer.version)],
    ]),
  );
}

// Arrow keys go from card to card, S searches with the one that has focus.
function walk(element, event, findSimilar) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
    return;
  }
  const all = [...element.querySelectorAll(".card-open:not(:disabled)")];
  const here = all.indexOf(event.target.closest(".card")?.querySelector(".card-open"));
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (here < 0) {
    return step > 0 && all[0]?.focus();
  }
  if (step) {
    event.preventDefault();
    all[Math.min(Math.max(here + step, 0), all.length - 1)].focus();
  }
  if (event.key.toLowerCase() === "s") {
    event.preventDefault();
    findSimilar(all[here].closest(".card").dataset.id);
  }
}
