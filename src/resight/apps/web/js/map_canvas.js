// A map without tiles, drawn on a canvas: dots on a plane that touches the Earth, or circles on a whole globe.
//
// Everything is drawn from degrees and from one picture of the globe, so the map moves without asking anybody.

import { h } from "./dom.js";
import { drawLayer, findCircle, paintLayer, paintMarks, paintMosaic } from "./map_circles.js";
import { cross, label, line, niceStep, ring, written } from "./map_drawing.js";
import { earthPlane } from "./map_projection.js";
import { formatMetres } from "./format.js";

const NEAR = 14; // pixels within which a press means a dot
const DEEPEST = 4e7; // pixels a degree: a few centimetres each
const SURROUNDINGS = 1.15;

const CALM = 150; // milliseconds after the last move until circles are drawn again, and the images in view are listed

// `globe`: { plane, radii (degrees, one per position), mosaic: { image, west, south, east, north } or null }, or null for
// the Earth. pointed(place or null) is called when the pointer comes to another circle of the globe.
export function drawMap({ positions, marks, estimate = null, viewed, picked, drawn, globe = null, pointed = () => {} }) {
  const canvas = h("canvas", {
    tabindex: "0",
    role: "img",
    "aria-label": `Map of ${globe ? "craters" : "positions"}. Arrow keys move it, plus and minus zoom. The ${globe ? "craters" : "images"} in view are listed beside it.`,
  });
  const element = h("div", { class: globe?.mosaic ? "map-canvas pictured" : "map-canvas" }, canvas);
  const flat = globe?.plane ?? earthPlane(positions);
  const points = positions.lats.map((lat, k) => flat.forward(lat, positions.lons[k]));
  let scale = 1; // pixels a degree
  let centre = [0, 0];
  let circle = null;
  let choosing = false;
  let frame = 0;
  let calm = 0; // timer
  let moving = false;
  let layer = null; // all circles of a globe, as drawn when the map last stood still
  let highlighted = null;
  const stops = [
    listen(),
    watchColours(() => {
      layer = null;
      redraw();
    }),
  ];
  const observer = new ResizeObserver(redraw);
  observer.observe(element);
  return {
    element,
    fit,
    zoomBy: (factor) => zoomAt(centre, factor),
    middle: () => flat.back(centre),
    setCircle: (next) => {
      circle = next;
      redraw();
    },
    setChoosing: (on) => {
      choosing = on;
      canvas.classList.toggle("choosing", on);
    },
    highlight,
    highlighted: () => highlighted,
    centreOn: (place) => {
      centre = points[place];
      redraw();
    },
    close: () => {
      clearTimeout(calm);
      observer.disconnect();
      stops.forEach((stop) => stop());
    },
  };

  function fit() {
    const found = globe ? marks : marks.filter((mark) => mark.likely);
    const chosen = found.length ? found.map((mark) => points[mark.place]) : points;
    const [xs, ys] = [0, 1].map((axis) => chosen.map((point) => point[axis]));
    const [x0, x1, y0, y1] = [
      xs.reduce((a, b) => Math.min(a, b)),
      xs.reduce((a, b) => Math.max(a, b)),
      ys.reduce((a, b) => Math.min(a, b)),
      ys.reduce((a, b) => Math.max(a, b)),
    ];
    const widest = found.reduce((most, mark) => Math.max(most, globe?.radii[mark.place] ?? 0), 0);
    const least = Math.max(100 / flat.metres, 8 * widest); // one place alone is shown with its surroundings
    centre = [(x0 + x1) / 2, (y0 + y1) / 2];
    scale =
      Math.min(canvas.clientWidth / Math.max(x1 - x0, least), canvas.clientHeight / Math.max(y1 - y0, least)) /
      SURROUNDINGS;
    redraw();
  }

  function highlight(place) {
    if (place !== highlighted) {
      highlighted = place;
      redraw();
    }
  }

  function redraw() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(paint);
    clearTimeout(calm);
    calm = setTimeout(() => {
      if (moving) {
        moving = false;
        paint();
      }
      viewed(inView());
    }, CALM);
  }

  function paint() {
    const [width, height, dense] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
    if (!width || !height) {
      return;
    }
    const size = { width: Math.round(width * dense), height: Math.round(height * dense) };
    if (canvas.width !== size.width || canvas.height !== size.height) {
      Object.assign(canvas, size);
    }
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(`--map-${name}`);
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `12px ${style.fontFamily}`;
    if (globe) {
      paintMosaic(pen, globe, { screen, scale, width, height });
    }
    grid(pen, width, height, colour);
    if (globe) {
      const view = { positions, points, marks, highlighted, screen, scale, centre, width, height, dense, colour };
      if (!layer || (!moving && !layer.fits(view))) {
        layer = drawLayer(globe, view);
      }
      paintLayer(pen, layer, view);
      paintMarks(pen, globe, view);
      bar(pen, width, height, colour);
      return;
    }
    if (estimate) {
      ring(pen, onPlane(estimate.lat, estimate.lon), (estimate.metres / flat.metres) * scale, colour("accent"), []);
    }
    if (circle) {
      ring(pen, onPlane(circle[0], circle[1]), (circle[2] / flat.metres) * scale, colour("ink"), [6, 5]);
    }
    dots(pen, width, height, colour);
    if (estimate) {
      cross(pen, onPlane(estimate.lat, estimate.lon), colour);
    }
    for (const mark of marks.toReversed()) {
      label(pen, screen(points[mark.place]), mark, colour);
    }
    bar(pen, width, height, colour);
  }

  function grid(pen, width, height, colour) {
    const step = niceStep(110 / scale);
    const decimals = Math.max(0, Math.ceil(-Math.log10(step)));
    let [top, left] = flat.back([centre[0] - width / 2 / scale, centre[1] - height / 2 / scale]);
    let [bottom, right] = flat.back([centre[0] + width / 2 / scale, centre[1] + height / 2 / scale]);
    if (flat.edges) {
      [top, bottom] = [Math.min(top, 90.001), Math.max(bottom, -90)];
      [left, right] = [Math.max(left, flat.edges[0]), Math.min(right, flat.edges[1] + 0.001)];
    }
    const column = (lon) => width / 2 + (flat.across(lon) - centre[0]) * scale;
    const row = (lat) => screen(flat.forward(lat, 0))[1];
    const [x0, x1, y0, y1] = flat.edges ? [column(left), column(right), row(top), row(bottom)] : [0, width, 0, height];
    pen.strokeStyle = colour(globe?.mosaic ? "line-on-picture" : "line");
    pen.fillStyle = colour("quiet");
    pen.lineWidth = 1;
    const texts = [];
    for (let lat = Math.ceil(bottom / step) * step; lat < top; lat += step) {
      const y = row(lat);
      line(pen, x0, y, x1, y);
      if (y < height - 24) {
        texts.push([flat.words(lat, "lat", decimals), Math.max(x0, 0) + 8, y - 5]);
      }
    }
    for (let lon = Math.ceil(left / step) * step; lon < right; lon += step) {
      const x = column(lon);
      line(pen, x, y0, x, y1);
      texts.push([flat.words(lon, "lon", decimals), x + 5, Math.min(y1, height) - 8]);
    }
    for (const [words, x, y] of texts) {
      written(pen, words, x, y, globe?.mosaic ? colour("surface") : null);
    }
  }

  function dots(pen, width, height, colour) {
    pen.fillStyle = colour("dot");
    pen.strokeStyle = colour("ground");
    pen.lineWidth = 1.5;
    const radius = points.length > 5000 ? 2.5 : 4.5;
    points.forEach((point, place) => {
      const [x, y] = screen(point);
      if (x < -9 || y < -9 || x > width + 9 || y > height + 9) {
        return;
      }
      const heading = positions.headings?.[place];
      if (Number.isFinite(heading) && points.length <= 5000) {
        ray(pen, x, y, heading);
      }
      pen.beginPath();
      pen.arc(x, y, radius, 0, 7);
      pen.fill();
      pen.stroke();
    });
  }

  function ray(pen, x, y, heading) {
    const turn = (heading * Math.PI) / 180;
    pen.beginPath();
    pen.moveTo(x + 14 * Math.sin(turn), y - 14 * Math.cos(turn));
    pen.lineTo(x + 5 * Math.sin(turn + 1), y - 5 * Math.cos(turn + 1));
    pen.lineTo(x + 5 * Math.sin(turn - 1), y - 5 * Math.cos(turn - 1));
    pen.fill();
  }

  function bar(pen, width, height, colour) {
    const metres = niceStep((120 / scale) * flat.metres);
    const length = (metres / flat.metres) * scale;
    const ground = globe?.mosaic ? colour("surface") : null;
    pen.strokeStyle = colour("ink");
    pen.fillStyle = colour("ink");
    if (ground) {
      Object.assign(pen, { lineWidth: 6, strokeStyle: ground });
      line(pen, width - 20 - length, height - 30, width - 16, height - 30);
      pen.strokeStyle = colour("ink");
    }
    pen.lineWidth = 2;
    line(pen, width - 18 - length, height - 30, width - 18, height - 30);
    pen.textAlign = "right";
    written(pen, formatMetres(metres), width - 18, height - 37, ground);
    pen.textAlign = "left";
  }

  function inView() {
    const [halfWidth, halfHeight] = [canvas.clientWidth / 2 / scale, canvas.clientHeight / 2 / scale];
    return points.flatMap(([x, y], place) =>
      Math.abs(x - centre[0]) <= halfWidth && Math.abs(y - centre[1]) <= halfHeight ? [place] : [],
    );
  }

  function listen() {
    let from = null; // where a press began: on the screen, and the centre at that time
    const at = (event) => {
      const area = canvas.getBoundingClientRect();
      return [event.clientX - area.left, event.clientY - area.top];
    };
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        zoomAt(plane(at(event)), Math.exp(-event.deltaY / 300));
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      from = { at: at(event), centre, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) {
        if (globe && event.pointerType === "mouse") {
          pointed(find(at(event)));
        }
        return;
      }
      const [x, y] = at(event);
      const [dx, dy] = [x - from.at[0], y - from.at[1]];
      from.moved ||= Math.hypot(dx, dy) > 4;
      if (choosing && from.moved) {
        drawn([...flat.back(plane(from.at)), (Math.hypot(dx, dy) / scale) * flat.metres]);
      } else if (from.moved) {
        move([from.centre[0] - dx / scale, from.centre[1] - dy / scale]);
      }
    });
    canvas.addEventListener("pointerleave", () => pointed(null));
    canvas.addEventListener("pointerup", () => {
      if (from && !from.moved) {
        pick(from.at);
      }
      from = null;
    });
    canvas.addEventListener("keydown", (event) => {
      const step = 60 / scale;
      const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[
        event.key
      ];
      if (by) {
        event.preventDefault();
        move([centre[0] + by[0], centre[1] + by[1]]);
      }
      if (event.key === "+" || event.key === "=") {
        zoomAt(centre, 1.5);
      }
      if (event.key === "-") {
        zoomAt(centre, 1 / 1.5);
      }
    });
    return () => cancelAnimationFrame(frame);
  }

  function pick(at) {
    const place = find(at);
    if (place !== null) {
      picked(place);
    }
  }

  function find([x, y]) {
    if (globe) {
      return findCircle(globe, { positions, points, screen, scale }, [x, y]);
    }
    const distances = points.map((point) => {
      const [px, py] = screen(point);
      return Math.hypot(px - x, py - y);
    });
    const nearest = distances.reduce((best, distance, k) => (distance < distances[best] ? k : best), 0);
    return distances[nearest] <= NEAR ? nearest : null;
  }

  function move([x, y]) {
    moving = true;
    centre = flat.edges ? [Math.min(Math.max(x, -180), 180), Math.min(Math.max(y, -90), 90)] : [x, y];
    redraw();
  }

  function zoomAt(fixed, factor) {
    const next = Math.min(Math.max(scale * factor, 1), DEEPEST);
    const moved = [0, 1].map((axis) => fixed[axis] + ((centre[axis] - fixed[axis]) * scale) / next);
    scale = next;
    move(moved);
  }

  function screen([x, y]) {
    return [canvas.clientWidth / 2 + (x - centre[0]) * scale, canvas.clientHeight / 2 + (y - centre[1]) * scale];
  }

  function plane([x, y]) {
    return [centre[0] + (x - canvas.clientWidth / 2) / scale, centre[1] + (y - canvas.clientHeight / 2) / scale];
  }

  function onPlane(lat, lon) {
    return screen(flat.forward(lat, lon));
  }
}

function watchColours(redraw) {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(redraw);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  scheme.addEventListener("change", redraw);
  return () => {
    observer.disconnect();
    scheme.removeEventListener("change", redraw);
  };
}
