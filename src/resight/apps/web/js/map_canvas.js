// A map without tiles: positions on a plane that touches the Earth in their middle, drawn on a canvas.
//
// Good to a few hundred kilometres, where a degree of longitude hardly changes its length; further out it still shows
// what lies where. Everything is drawn from degrees, so the map moves without asking anybody.

import { h } from "./dom.js";
import { cross, label, line, niceStep, ring } from "./map_drawing.js";
import { formatMetres } from "./format.js";

const METRES_A_DEGREE = 111320;
const NEAR = 14; // pixels within which a press means a dot
const DEEPEST = 4e7; // pixels a degree: a few centimetres each
const SURROUNDINGS = 1.15;

export function drawMap({ positions, marks, estimate, viewed, picked, drawn }) {
  const canvas = h("canvas", {
    tabindex: "0",
    role: "img",
    "aria-label": "Map of positions. Arrow keys move it, plus and minus zoom. The images in view are listed beside it.",
  });
  const element = h("div", { class: "map-canvas" }, canvas);
  const home = middleOf(positions);
  const squeeze = Math.max(0.05, Math.cos((home[0] * Math.PI) / 180));
  const points = positions.lats.map((lat, k) => [turned(positions.lons[k] - home[1]) * squeeze, home[0] - lat]); // degrees right and down of the middle
  let scale = 1; // pixels a degree
  let centre = [0, 0];
  let circle = null;
  let choosing = false;
  let frame = 0;
  const stops = [listen(), watchColours(redraw)];
  const observer = new ResizeObserver(redraw);
  observer.observe(element);
  return {
    element,
    fit,
    zoomBy: (factor) => zoomAt(centre, factor),
    middle: () => degrees(centre),
    setCircle: (next) => {
      circle = next;
      redraw();
    },
    setChoosing: (on) => {
      choosing = on;
      canvas.classList.toggle("choosing", on);
    },
    close: () => {
      observer.disconnect();
      stops.forEach((stop) => stop());
    },
  };

  function fit() {
    const chosen = marks.some((mark) => mark.likely)
      ? marks.filter((mark) => mark.likely).map((mark) => points[mark.place])
      : points;
    const [xs, ys] = [0, 1].map((axis) => chosen.map((point) => point[axis]));
    const [x0, x1, y0, y1] = [
      xs.reduce((a, b) => Math.min(a, b)),
      xs.reduce((a, b) => Math.max(a, b)),
      ys.reduce((a, b) => Math.min(a, b)),
      ys.reduce((a, b) => Math.max(a, b)),
    ];
    const least = 100 / METRES_A_DEGREE; // one place alone is shown with its street around it
    centre = [(x0 + x1) / 2, (y0 + y1) / 2];
    scale =
      Math.min(canvas.clientWidth / Math.max(x1 - x0, least), canvas.clientHeight / Math.max(y1 - y0, least)) /
      SURROUNDINGS;
    redraw();
  }

  function redraw() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      paint();
      viewed(inView());
    });
  }

  function paint() {
    const [width, height, dense] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
    if (!width || !height) {
      return;
    }
    Object.assign(canvas, { width: width * dense, height: height * dense });
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(`--map-${name}`);
    pen.scale(dense, dense);
    pen.font = `12px ${style.fontFamily}`;
    grid(pen, width, height, colour);
    if (estimate) {
      ring(pen, onPlane(estimate.lat, estimate.lon), (estimate.metres / METRES_A_DEGREE) * scale, colour("accent"), []);
    }
    if (circle) {
      ring(pen, onPlane(circle[0], circle[1]), (circle[2] / METRES_A_DEGREE) * scale, colour("ink"), [6, 5]);
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
    const [top, left] = degrees([centre[0] - width / 2 / scale, centre[1] - height / 2 / scale]);
    const [bottom, right] = degrees([centre[0] + width / 2 / scale, centre[1] + height / 2 / scale]);
    pen.strokeStyle = colour("line");
    pen.fillStyle = colour("quiet");
    pen.lineWidth = 1;
    for (let lat = Math.ceil(bottom / step) * step; lat < top; lat += step) {
      const [, y] = onPlane(lat, home[1]);
      line(pen, 0, y, width, y);
      if (y < height - 24) {
        pen.fillText(`${lat.toFixed(decimals)}°`, 8, y - 5);
      }
    }
    for (let lon = Math.ceil(left / step) * step; lon < right; lon += step) {
      const x = width / 2 + ((lon - home[1]) * squeeze - centre[0]) * scale;
      line(pen, x, 0, x, height);
      pen.fillText(`${turned(lon).toFixed(decimals)}°`, x + 5, height - 8);
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
    const metres = niceStep((120 / scale) * METRES_A_DEGREE);
    const length = (metres / METRES_A_DEGREE) * scale;
    pen.strokeStyle = colour("ink");
    pen.fillStyle = colour("ink");
    pen.lineWidth = 2;
    line(pen, width - 18 - length, height - 30, width - 18, height - 30);
    pen.textAlign = "right";
    pen.fillText(formatMetres(metres), width - 18, height - 37);
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
        return;
      }
      const [x, y] = at(event);
      const [dx, dy] = [x - from.at[0], y - from.at[1]];
      from.moved ||= Math.hypot(dx, dy) > 4;
      if (choosing && from.moved) {
        drawn([...degrees(plane(from.at)), (Math.hypot(dx, dy) / scale) * METRES_A_DEGREE]);
      } else if (from.moved) {
        centre = [from.centre[0] - dx / scale, from.centre[1] - dy / scale];
        redraw();
      }
    });
    canvas.addEventListener("pointerup", () => {
      if (from && !from.moved) {
        pick(from.at);
      }
      from = null;
    });
    canvas.addEventListener("keydown", (event) => {
      const step = 60 / scale;
      const move = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[
        event.key
      ];
      if (move) {
        event.preventDefault();
        centre = [centre[0] + move[0], centre[1] + move[1]];
        redraw();
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

  function pick([x, y]) {
    const distances = points.map((point) => {
      const [px, py] = screen(point);
      return Math.hypot(px - x, py - y);
    });
    const nearest = distances.reduce((best, distance, k) => (distance < distances[best] ? k : best), 0);
    if (distances[nearest] <= NEAR) {
      picked(nearest);
    }
  }

  function zoomAt(fixed, factor) {
    const next = Math.min(Math.max(scale * factor, 1), DEEPEST);
    centre = [0, 1].map((axis) => fixed[axis] + ((centre[axis] - fixed[axis]) * scale) / next);
    scale = next;
    redraw();
  }

  function screen([x, y]) {
    return [canvas.clientWidth / 2 + (x - centre[0]) * scale, canvas.clientHeight / 2 + (y - centre[1]) * scale];
  }

  function plane([x, y]) {
    return [centre[0] + (x - canvas.clientWidth / 2) / scale, centre[1] + (y - canvas.clientHeight / 2) / scale];
  }

  function onPlane(lat, lon) {
    return screen([turned(lon - home[1]) * squeeze, home[0] - lat]);
  }

  function degrees([x, y]) {
    return [home[0] - y, home[1] + x / squeeze];
  }
}

function middleOf({ lats, lons }) {
  const turn = Math.PI / 180;
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const lon =
    Math.atan2(mean(lons.map((value) => Math.sin(value * turn))), mean(lons.map((value) => Math.cos(value * turn)))) /
    turn;
  return [mean(lats), lon];
}

// To -180..180, so that both sides of the date line are neighbours.
function turned(lon) {
  return ((((lon + 180) % 360) + 360) % 360) - 180;
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
