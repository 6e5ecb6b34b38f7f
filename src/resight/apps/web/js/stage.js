// Query and answer as pictures: side by side, swiped or blinking, zoomed and moved together.
//
// A pane shows one picture: zoom 1 fits it, and its centre is a point of the original. The query's centre follows the
// answer's through the alignment, so both panes show the same part of the object.

import { apply, css, invert, magnify, multiply } from "./alignment.js";
import { h, svg } from "./dom.js";
import { chooseLines, heatCanvas, outlines, parts } from "./layers.js";

const MOST_ZOOM = 16;
const WORTH_STACKING = 1.2; // side by side is what people expect
const BLINK = 800; // milliseconds

// sides: { query: { src, name, size, box }, image: { src, name, size, box, region } }; why may be null while it is on its way.
export function makeStage(sides, why, alignment) {
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
  const panes = {
    query: makePane(sides.query, why?.query_heat, why?.pairs, "query"),
    image: makePane(sides.image, why?.heat, why?.pairs, "image"),
  };
  const warped = h("img", { src: sides.query.src, alt: "", draggable: "false" });
  const cover = h("div", { class: "cover" }, warped, h("span", { class: "pane-name" }, sides.query.label ?? "Query"));
  const blade = h("div", { class: "blade", "aria-hidden": "true" });
  panes.image.element.append(cover, blade);
  const element = h("div", { class: "stage" }, panes.query.element, panes.image.element, lines);
  const drawn = chooseLines(why?.match?.points ?? []);
  let zoom = 1;
  let blinking = 0;
  let centre = middle(sides.image.size); // of the answer's pane
  const observer = new ResizeObserver(redraw);
  observer.observe(element);
  for (const name of ["query", "image"]) {
    listen(name);
  }
  return { element, zoomBy, fit, setMode, setSwipe, setBlinking, flip, redraw, close };

  function redraw() {
    const [width, height] = [element.clientWidth, element.clientHeight];
    element.classList.toggle("stacked", isBetterStacked(width, height, sides));
    lines.setAttribute("viewBox", `0 0 ${width} ${height}`);
    positionPane(panes.image, zoom * fitScale(panes.image), centre);
    positionPane(panes.query, queryScale(), queryCentre());
    const { scale, left, top } = panes.image.at;
    warped.style.width = `${sides.query.size[0]}px`;
    warped.style.height = `${sides.query.size[1]}px`;
    if (alignment) {
      warped.style.transform = css(multiply([scale, 0, left, 0, scale, top, 0, 0, 1], alignment.matrix));
    }
    lines.replaceChildren(
      ...drawn.flatMap(({ point, colour }) => {
        const [from, to] = [spot(panes.query, point[0], point[1]), spot(panes.image, point[2], point[3])];
        if (!from || !to) {
          return [];
        }
        const ends = { x1: from[0], y1: from[1], x2: to[0], y2: to[1] };
        return [
          svg("line", { ...ends, class: "casing" }),
          svg("line", { ...ends, stroke: colour }),
          svg("circle", { cx: from[0], cy: from[1], r: 3, fill: colour }),
          svg("circle", { cx: to[0], cy: to[1], r: 3, fill: colour }),
        ];
      }),
    );
  }

  // Pictures that fit their panes lie in the middle of them; the more they are enlarged, the more the query follows.
  function queryCentre() {
    const [own, size] = [middle(sides.query.size), sides.query.size];
    const same = within(
      alignment ? apply(invert(alignment.matrix), ...centre) : share(centre, sides.image.size, size),
      size,
    );
    return [0, 1].map((axis) => own[axis] + Math.min(1, zoom - 1) * (same[axis] - own[axis]));
  }

  // So does its scale, until the object is as large in one as in the other; it never gets smaller than its pane.
  function queryScale() {
    const own = fitScale(panes.query);
    if (!alignment) {
      return own * zoom;
    }
    const same = panes.image.at.scale * magnify(alignment.matrix, ...queryCentre());
    const follows = Math.min(1, zoom - 1);
    return Math.max(own, (own * zoom) ** (1 - follows) * same ** follows);
  }

  // A point of a picture on the stage; null where it is out of its pane.
  function spot(pane, x, y) {
    const [px, py] = [pane.at.left + x * pane.at.scale, pane.at.top + y * pane.at.scale];
    const inside = px >= 0 && py >= 0 && px <= pane.element.clientWidth && py <= pane.element.clientHeight;
    return inside ? [pane.element.offsetLeft + px, pane.element.offsetTop + py] : null;
  }

  // Without a point to zoom into, it is the box.
  function zoomBy(factor) {
    const box = sides.image.box;
    if (zoom === 1 && box) {
      centre = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    }
    zoomAt(centre, factor);
  }

  function zoomAt(fixed, factor) {
    const next = Math.min(Math.max(zoom * factor, 1), MOST_ZOOM);
    centre =
      next === 1
        ? middle(sides.image.size)
        : within(
            [0, 1].map((axis) => fixed[axis] + ((centre[axis] - fixed[axis]) * zoom) / next),
            sides.image.size,
          );
    zoom = next;
    redraw();
  }

  function fit() {
    zoom = 1;
    centre = middle(sides.image.size);
    redraw();
  }

  // A point of the screen over a pane, as a point of the answer.
  function pointOf(name, event) {
    const pane = panes[name];
    const area = pane.element.getBoundingClientRect();
    const point = [
      (event.clientX - area.left - pane.at.left) / pane.at.scale,
      (event.clientY - area.top - pane.at.top) / pane.at.scale,
    ];
    if (name === "image") {
      return point;
    }
    return alignment ? apply(alignment.matrix, ...point) : share(point, sides.query.size, sides.image.size);
  }

  function listen(name) {
    const pane = panes[name].element;
    const fingers = new Map();
    pane.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        zoomAt(pointOf(name, event), Math.exp(-event.deltaY / 300));
      },
      { passive: false },
    );
    pane.addEventListener("dblclick", (event) => zoomAt(pointOf(name, event), 2));
    pane.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event);
      pane.setPointerCapture(event.pointerId);
    });
    pane.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) {
        return;
      }
      const before = [...fingers.values()];
      const from = pointOf(name, fingers.get(event.pointerId));
      fingers.set(event.pointerId, event);
      if (before.length === 2) {
        return zoomAt(pointOf(name, event), reach([...fingers.values()]) / reach(before));
      }
      const to = pointOf(name, event);
      if (zoom > 1) {
        centre = within([centre[0] + from[0] - to[0], centre[1] + from[1] - to[1]], sides.image.size);
        redraw();
      }
    });
    for (const end of ["pointerup", "pointercancel"]) {
      pane.addEventListener(end, (event) => fingers.delete(event.pointerId));
    }
  }

  function setMode(mode) {
    element.dataset.mode = mode;
    cover.style.clipPath = "";
    cover.style.opacity = 1;
    setBlinking(mode === "blink" && !matchMedia("(prefers-reduced-motion: reduce)").matches);
    redraw();
  }

  function setSwipe(percent) {
    cover.style.clipPath = `inset(0 ${100 - percent}% 0 0)`;
    blade.style.left = `${percent}%`;
  }

  function setBlinking(on) {
    clearInterval(blinking);
    blinking = on ? setInterval(flip, BLINK) : 0;
  }

  function flip() {
    cover.style.opacity = cover.style.opacity === "0" ? 1 : 0;
  }

  function close() {
    clearInterval(blinking);
    observer.disconnect();
  }
}

function makePane({ src, name, size, box, region = null, label, alt }, heat, pairs, side) {
  const words = alt ?? (side === "query" ? `The query: ${name}` : `The answer: ${name}`);
  const layer = h(
    "div",
    { class: "layer" },
    h("img", { src, alt: words, draggable: "false" }),
    heat && heatCanvas(heat),
    outlines(size, box, region),
    parts(size, pairs ?? [], side),
  );
  const element = h(
    "div",
    { class: `pane pane-${side}` },
    layer,
    h("span", { class: "pane-name" }, label ?? (side === "query" ? "Query" : "Answer")),
  );
  return { element, layer, size, at: { scale: 1, left: 0, top: 0 } };
}

function fitScale({ element, size }) {
  return Math.min(element.clientWidth / size[0], element.clientHeight / size[1]);
}

function positionPane(pane, scale, [x, y]) {
  const [width, height] = [pane.element.clientWidth, pane.element.clientHeight];
  pane.at = { scale, left: width / 2 - x * scale, top: height / 2 - y * scale };
  Object.assign(pane.layer.style, {
    width: `${pane.size[0] * scale}px`,
    height: `${pane.size[1] * scale}px`,
    transform: `translate(${pane.at.left}px, ${pane.at.top}px)`,
  });
  pane.layer.style.setProperty("--unit", `${1 / scale}px`);
}

// Two wide pictures may be much larger one above the other.
function isBetterStacked(width, height, { query, image }) {
  const least = (w, h) =>
    Math.min(...[query, image].map(({ size }) => Math.min(w / size[0], h / size[1]) * Math.sqrt(size[0] * size[1])));
  return least(width, height / 2) > WORTH_STACKING * least(width / 2, height);
}

function middle([width, height]) {
  return [width / 2, height / 2];
}

function within([x, y], [width, height]) {
  return [Math.min(Math.max(x, 0), width), Math.min(Math.max(y, 0), height)];
}

function share([x, y], from, to) {
  return [(x / from[0]) * to[0], (y / from[1]) * to[1]];
}

function reach([a, b]) {
  return Math.max(1, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY));
}
