// Where the images were taken: all of them as dots, answers with their numbers, the estimate with its circle.

import { get } from "./api.js";
import { breakable, button, field, h, icon, put } from "./dom.js";
import { drawMap } from "./map_canvas.js";
import { frameMap } from "./map_frame.js";
import { empty, note } from "./notifications.js";
import { fileOf, picture } from "./thumbnails.js";
import { linkTo, readRequest, remembered } from "./search_request.js";
import { go, link } from "./router.js";
import { collection, collectionName } from "./session.js";
import { formatChance, formatCount } from "./format.js";

export const title = "Map";
const LISTED = 24;

export async function show(root, route) {
  put(root, h("h1", {}, "Map"), h("div", { class: "skeleton map-skeleton" }));
  if (collection()?.craters) {
    return (await import("./crater_map.js")).showCraters(root);
  }
  const positions = await get("/api/collections/positions", { collection: collectionName() });
  if (!positions.ids.length) {
    put(
      root,
      h("h1", {}, "Map"),
      empty(
        "place",
        "No positions",
        "No image has a position. Images need the attributes lat and lon, or GPS data in EXIF.",
      ),
    );
    return null;
  }
  const answer = remembered()?.answer.collection === collection()?.name ? remembered().answer : null;
  const aside = h("aside", { class: "map-side", "aria-label": "Images in view" });
  const area = areaForm({ middle: () => map.middle(), shown: (circle) => map.setCircle(circle) });
  const map = drawMap({
    positions,
    marks: marksOf(positions, answer),
    estimate: answer?.position ?? null,
    viewed: list,
    picked: (place) => list([place], true),
    drawn: area.set,
  });
  const choose = button(
    [icon("place"), "Choose an area"],
    () => setChoosing(choose.getAttribute("aria-pressed") !== "true"),
    { class: "tool", "aria-pressed": "false" },
  );
  const setChoosing = (on) => {
    choose.setAttribute("aria-pressed", String(on));
    map.setChoosing(on);
    area.element.hidden = !on;
  };
  put(
    root,
    h(
      "div",
      { class: "head" },
      h("div", {}, h("h1", {}, "Map"), h("p", { class: "quiet" }, formatPositions(positions))),
      h("div", { class: "row" }, choose),
    ),
    area.element,
    frameMap(map.element, aside, map),
  );
  setChoosing(route.params.get("choose") === "near");
  map.fit();
  return { close: map.close };

  function list(places, alone = false) {
    const shown = places.slice(0, LISTED);
    put(
      aside,
      h("h2", {}, alone ? "Chosen" : `${formatCount(places.length, "image")} in view`),
      alone && button("All in view", () => map.fit(), { class: "tool plain" }),
      h(
        "ul",
        { class: "map-list" },
        ...shown.map((place) =>
          h(
            "li",
            {},
            h(
              "a",
              { href: link("search", [], { id: positions.ids[place], collection: collectionName() }) },
              picture({ src: fileOf(positions.ids[place], alone ? 640 : 160), size: null, alt: "" }),
              h("span", { class: "small" }, breakable(positions.ids[place])),
              alone &&
                h(
                  "span",
                  { class: "small quiet" },
                  `${positions.lats[place].toFixed(5)}, ${positions.lons[place].toFixed(5)}`,
                ),
            ),
          ),
        ),
      ),
      places.length > LISTED &&
        h(
          "p",
          { class: "small quiet" },
          `and ${(places.length - LISTED).toLocaleString("en-GB")} more: zoom in to see them`,
        ),
    );
  }
}

// Answers of the search that was made last, with the numbers that they have there.
function marksOf(positions, answer) {
  const places = new Map(positions.ids.map((id, place) => [id, place]));
  return (answer?.hits ?? [])
    .map((hit, rank) => ({
      place: places.get(hit.id),
      label: String(rank + 1),
      likely: (hit.probability ?? 0) >= 0.5,
      words: `${hit.id}, ${formatChance(hit.probability)}`,
    }))
    .filter((mark) => mark.place !== undefined);
}

function formatPositions(positions) {
  return `${formatCount(positions.total, "image")} with a known position${positions.cut ? `; ${positions.ids.length.toLocaleString("en-GB")} of them are shown` : ""}`;
}

// A circle in numbers; drawn on the map, it is filled in here.
function areaForm({ middle, shown }) {
  const [lat, lon, metres] = ["any", "any", "any"].map((step) => h("input", { type: "number", step, required: true }));
  const read = () =>
    lat.value && lon.value && metres.value ? [lat, lon, metres].map((input) => Number(input.value)) : null;
  const text = () => {
    const circle = read();
    if (!circle) {
      note("Draw a circle on the map, or enter the numbers");
    }
    return circle?.join(",") ?? null;
  };
  const show = () => shown(read());
  for (const input of [lat, lon, metres]) {
    input.addEventListener("input", show);
  }
  const search = () => {
    const near = text();
    if (near) {
      go(linkTo({ ...(remembered()?.request ?? readRequest(new URLSearchParams())), near }));
    }
  };
  const browse = () => {
    const near = text();
    if (near) {
      go(link("images", [], { near, collection: collectionName() }));
    }
  };
  const element = h(
    "form",
    {
      class: "panel area-form",
      hidden: true,
      on: {
        submit: (event) => {
          event.preventDefault();
          search();
        },
      },
    },
    h("p", { class: "small quiet" }, "Drag outwards from the centre of the area, or enter numbers."),
    field("Latitude", lat),
    field("Longitude", lon),
    field("Radius in metres", metres),
    button(
      "Centre of the map",
      () => {
        set([...middle(), Number(metres.value) || 500]);
      },
      { class: "tool" },
    ),
    h("button", { class: "tool main" }, "Search here"),
    button("Browse here", browse, { class: "tool" }),
  );
  return { element, set };

  function set(circle) {
    [lat.value, lon.value, metres.value] = [circle[0].toFixed(6), circle[1].toFixed(6), Math.round(circle[2])];
    show();
  }
}
