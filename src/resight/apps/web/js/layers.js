// What is drawn over the pictures of an explanation: heat, outlines, numbered parts, match lines.

import { h, svg } from "./dom.js";
import { outline, rectangle } from "./thumbnails.js";

// Inferno: its lightness rises evenly, so it reads the same in grey and to colour-blind eyes.
const INFERNO = [
  "000004",
  "1b0c41",
  "4a0c6b",
  "781c6d",
  "a52c60",
  "cf4446",
  "ed6925",
  "fb9b06",
  "f7d13d",
  "fcffa4",
].map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const COLDEST = 0.1; // opacity where there is no heat
const MOST_LINES = 80;
const MOST_PARTS = 8;

// Heat = { rows, columns, values: base64 of uint8, row by row }; the browser enlarges the small canvas smoothly.
export function heatCanvas({ rows, columns, values }) {
  const canvas = h("canvas", { class: "heat", width: columns, height: rows, "aria-hidden": "true" });
  const levels = Uint8Array.from(atob(values), (letter) => letter.charCodeAt(0));
  const pixels = new ImageData(columns, rows);
  levels.forEach((level, k) => {
    const at = (level / 255) * (INFERNO.length - 1);
    const low = Math.min(Math.floor(at), INFERNO.length - 2);
    const colour = INFERNO[low].map((part, c) => part + (at - low) * (INFERNO[low + 1][c] - part));
    pixels.data.set([...colour, 255 * (COLDEST + (1 - COLDEST) * (level / 255))], 4 * k);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

export function outlines(size, box, region) {
  const drawn = outline(size, box, region);
  drawn.classList.add("outlines");
  return drawn;
}

// Parts that found each other carry the same number on both sides; `side` is "query" or "image".
export function parts(size, pairs, side) {
  const drawn = svg("svg", {
    class: "overlay parts",
    viewBox: `0 0 ${size[0]} ${size[1]}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  strongest(pairs).forEach((pair, k) => {
    const box = pair[side];
    const [x, y] = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    drawn.append(
      rectangle(box, "casing"),
      rectangle(box, "part"),
      svg("circle", { cx: x, cy: y }),
      svg("text", { x, y }, String(k + 1)),
    );
  });
  return drawn;
}

export function strongest(pairs) {
  return pairs.toSorted((a, b) => b.support - a.support).slice(0, MOST_PARTS);
}

// Points [[qx, qy, ix, iy], …] that cover the others, with a colour each: neighbours in the query have like colours, so
// lines that agree form a smooth fan and a wrong one stands out.
export function chooseLines(points) {
  const [left, top] = [0, 1].map((axis) => points.reduce((least, point) => Math.min(least, point[axis]), Infinity));
  const [right, bottom] = [0, 1].map((axis) => points.reduce((most, point) => Math.max(most, point[axis]), -Infinity));
  return spread(points, MOST_LINES).map((point) => {
    const [across, down] = [(point[0] - left) / (right - left || 1), (point[1] - top) / (bottom - top || 1)];
    return { point, colour: `oklch(${(0.88 - 0.2 * down).toFixed(2)} 0.16 ${Math.round(200 + 250 * across)})` };
  });
}

// Farthest-point sampling.
function spread(points, most) {
  if (points.length <= most) {
    return points;
  }
  const chosen = [points[0]];
  const distance = points.map((point) => apart(point, points[0]));
  while (chosen.length < most) {
    const next = distance.indexOf(Math.max(...distance));
    chosen.push(points[next]);
    points.forEach((point, k) => {
      distance[k] = Math.min(distance[k], apart(point, points[next]));
    });
  }
  return chosen;
}

function apart(a, b) {
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}
