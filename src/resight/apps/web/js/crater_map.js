// The craters of a collection on their globe: the query and the answers of the last search among all others.
//
// Map and lists are linked: what the pointer or the keyboard comes to in one is marked in the other, and a click opens
// the image.

import { address, get } from "./api.js";
import { breakable, button, h, icon, put } from "./dom.js";
import { openRecord } from "./image_details.js";
import { drawMap } from "./map_canvas.js";
import { frameMap } from "./map_frame.js";
import { formatDegrees, globePlane } from "./map_projection.js";
import { announce, note } from "./notifications.js";
import { remembered, withoutItself } from "./search_request.js";
import { collection, collectionName } from "./session.js";
import { fileOf, picture } from "./thumbnails.js";
import { formatChance, formatCount, formatKilometres, isLikely } from "./format.js";

const LISTED = 24;
const LIKELY_ONES = 20; // answers on the map

export async function showCraters(root) {
  const craters = await get("/api/collections/craters", { collection: collectionName() });
  const image = craters.mosaic && (await loadPicture(address("/api/mosaic")));
  const latest = remembered()?.answer.collection === collection()?.name ? remembered() : null;
  const marks = latest ? marksOf(craters, latest) : [];
  let west = craters.lons.some((lon) => lon > 180) ? 0 : -180;
  let map = null;
  let step = -1; // of the marks, by keyboard
  const place = h("div", { class: "map-fill" });
  const answers = h("div", {});
  const inView = h("div", {});
  const aside = h("aside", { class: "map-side", "aria-label": "Craters" }, answers, inView);
  const turn = button("", () => draw(west === 0 ? -180 : 0), { class: "tool" });
  put(
    root,
    h(
      "div",
      { class: "head" },
      h("div", {}, h("h1", {}, "Map"), h("p", { class: "quiet" }, formatTotal(craters))),
      h("div", { class: "row" }, turn),
    ),
    frameMap(place, aside, { zoomBy: (factor) => map.zoomBy(factor), fit: () => map.fit() }),
    h(
      "p",
      { class: "small quiet" },
      "Dots are craters too small to draw: zoom in. Click a circle to open its image. On the map, arrow keys move, plus and minus zoom, N and P go through the answers, Enter opens.",
    ),
  );
  listAnswers();
  draw(west);
  return { close: () => map.close() };

  function draw(from) {
    west = from;
    map?.close();
    turn.textContent = west === 0 ? "Longitude 0° to 360° E" : "Longitude 180° W to 180° E";
    turn.setAttribute("aria-label", `${turn.textContent}. Change`);
    map = drawMap({
      positions: craters,
      marks,
      viewed: list,
      picked: open,
      pointed: point,
      globe: {
        plane: globePlane(craters.radius_km, west),
        radii: craters.diameters_km.map((km) => (km / 2 / craters.radius_km) * (180 / Math.PI)),
        mosaic: image && { image, ...craters.mosaic },
        words: (k) => `${craters.labels[k] || craters.images[k][0]}, ${formatKilometres(craters.diameters_km[k])}`,
      },
    });
    map.element.addEventListener("keydown", walk);
    put(place, map.element);
    map.fit();
  }

  // The circle and its entries in the lists.
  function point(k) {
    map.highlight(k);
    for (const entry of aside.querySelectorAll("[data-place]")) {
      entry.classList.toggle("pointed", Number(entry.dataset.place) === k);
    }
  }

  function walk(event) {
    const by = { n: 1, p: -1 }[event.key.toLowerCase()];
    if (by && marks.length) {
      step = (step + by + marks.length) % marks.length;
      map.centreOn(marks[step].place);
      point(marks[step].place);
      announce(marks[step].words);
    }
    if (event.key === "Enter" && map.highlighted() !== null) {
      open(map.highlighted());
    }
  }

  async function open(k) {
    point(k);
    try {
      openRecord(await get("/api/image", { id: bestImage(k), collection: collectionName() }), { writable: false });
    } catch (error) {
      note(error.problem ?? String(error));
    }
  }

  // Of a crater's images the one that the search found.
  function bestImage(k) {
    return marks.find((mark) => mark.place === k)?.id ?? craters.images[k][0];
  }

  function listAnswers() {
    put(
      answers,
      marks.length > 0 && h("h2", {}, "Last search"),
      marks.length > 0 &&
        h("ol", { class: "map-answers" }, ...marks.map((mark) => h("li", {}, entry(mark.place, mark)))),
    );
  }

  function list(places) {
    const shown = places.slice(0, LISTED);
    put(
      inView,
      h("h2", {}, `${formatCount(places.length, "crater")} in view`),
      h("ul", { class: "map-list" }, ...shown.map((k) => h("li", {}, entry(k)))),
      places.length > LISTED &&
        h(
          "p",
          { class: "small quiet" },
          `The ${LISTED} largest are listed. Zoom in to see the other ${(places.length - LISTED).toLocaleString("en-GB")}.`,
        ),
    );
  }

  function entry(k, mark = null) {
    const to360 = west === 0;
    return h(
      "button",
      {
        type: "button",
        class: `map-entry ${mark ? "with-mark" : ""}`,
        data: { place: k },
        on: {
          click: () => open(k),
          pointerenter: () => point(k),
          pointerleave: () => point(null),
          focus: () => point(k),
          blur: () => point(null),
        },
      },
      mark && h("span", { class: `map-rank ${mark.likely ? "likely" : ""}`, "aria-hidden": "true" }, mark.label),
      picture({ src: fileOf(mark?.id ?? craters.images[k][0], 160), size: null, alt: "" }),
      h(
        "span",
        { class: "small" },
        breakable(craters.labels[k] || craters.images[k][0]),
        h("br", {}),
        h(
          "span",
          { class: "quiet" },
          [
            mark?.chance,
            formatKilometres(craters.diameters_km[k]),
            `${formatDegrees(craters.lats[k], "lat", to360)}, ${formatDegrees(craters.lons[k], "lon", to360)}`,
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ),
    );
  }
}

// The query, if it is an image of the collection, and the answers with their ranks there; one mark per crater.
function marksOf(craters, { request, answer }) {
  const places = new Map(craters.images.flatMap((ids, place) => ids.map((id) => [id, place])));
  const query = request.source.id === undefined ? [] : [{ id: request.source.id, label: "Q", query: true, likely: false }];
  const hits = withoutItself(answer, request)
    .hits.slice(0, LIKELY_ONES)
    .map((hit, rank) => ({
      id: hit.id,
      label: String(rank + 1),
      likely: isLikely(hit.probability),
      chance: hit.probability === null ? "" : formatChance(hit.probability),
    }));
  const seen = new Set();
  return [...query, ...hits]
    .map((mark) => ({ ...mark, place: places.get(mark.id) }))
    .filter(({ place }) => place !== undefined && !seen.has(place) && seen.add(place))
    .map((mark) => ({
      ...mark,
      words: `${mark.query ? "Query" : `Answer ${mark.label}`}: ${craters.labels[mark.place] || mark.id}`,
    }));
}

function formatTotal({ labels, total, cut }) {
  const shown = cut ? `; the ${labels.length.toLocaleString("en-GB")} largest are shown` : "";
  return `${formatCount(total, "crater")} with a known position${shown}`;
}

async function loadPicture(src) {
  const image = h("img", { src, alt: "" });
  try {
    await image.decode();
    return image;
  } catch {
    note("The map of the globe could not be loaded");
    return null;
  }
}
