// The craters of a globe: its picture, circles of their true size on the ground, and which circle lies under the pointer.
//
// In equal degrees a circle is an ellipse: 1 / cos(latitude) wider than high.

import { label, written } from "./map_drawing.js";

const LEAST = 3; // pixels of a radius
const REACH = 6; // pixels beside a circle that still mean it
const POLE = 0.05; // least cosine of a latitude
const MARGIN = 1.5;
const ELLIPSE = 6; // pixels of a radius from which an ellipse is told from a circle
const CELL = 9; // pixels; of circles too small to be seen as such, one dot per cell stands for all
const FEW = 500; // circles, up to which all are drawn as such
const DOT = 1.2; // pixels of its radius

// The part of the globe's picture that is in view; it repeats every 360 degrees, within the edges of the map.
export function paintMosaic(pen, { plane, mosaic }, { screen, scale, width, height }) {
  const [left, top] = screen([-180, -90]);
  const [right, bottom] = screen([180, 90]);
  pen.save();
  pen.beginPath();
  pen.rect(left, top, right - left, bottom - top);
  pen.clip();
  for (const turn of mosaic ? [-360, 0, 360] : []) {
    const [x0, y0] = screen([plane.across(mosaic.west + turn), -mosaic.north]);
    const [wide, high] = [(mosaic.east - mosaic.west) * scale, (mosaic.north - mosaic.south) * scale];
    const [a, b] = [Math.max(x0, left, 0), Math.min(x0 + wide, right, width)];
    const [c, d] = [Math.max(y0, top, 0), Math.min(y0 + high, bottom, height)];
    if (a < b && c < d) {
      const [across, down] = [mosaic.image.naturalWidth / wide, mosaic.image.naturalHeight / high];
      const part = [(a - x0) * across, (c - y0) * down, (b - a) * across, (d - c) * down];
      pen.drawImage(mosaic.image, ...part, a, c, b - a, d - c);
    }
  }
  pen.restore();
}

// All circles on a canvas of their own, MARGIN times as wide and high as the view. It is moved and scaled with the map, so
// that thousands of circles are drawn only when the map stands still. Where there are many small ones, dots keep the
// ground visible.
export function drawLayer(globe, { positions, points, scale, centre, width, height, dense, colour }) {
  const [wide, high] = [width * MARGIN, height * MARGIN];
  const canvas = new OffscreenCanvas(Math.ceil(wide * dense), Math.ceil(high * dense));
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  const cells = new Map();
  const inside = points.flatMap(([right, down], place) => {
    const [x, y] = [wide / 2 + (right - centre[0]) * scale, high / 2 + (down - centre[1]) * scale];
    const [rx, ry] = radiiOf(globe, positions, place, scale);
    if (x + rx < 0 || y + ry < 0 || x - rx > wide || y - ry > high) {
      return [];
    }
    if (points.length > FEW && globe.radii[place] * scale < LEAST) {
      cells.set(`${Math.floor(x / CELL)} ${Math.floor(y / CELL)}`, [x, y]);
      return [];
    }
    return [[x, y, rx, ry]];
  });
  pen.fillStyle = colour("circle");
  pen.globalAlpha = 0.6;
  for (const [x, y] of cells.values()) {
    pen.beginPath();
    pen.arc(x, y, DOT, 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
  for (const [style, line] of strokesOf(globe, colour("circle"), 1.25)) {
    Object.assign(pen, { strokeStyle: style, lineWidth: line });
    for (const circle of inside) {
      pen.beginPath(); // one by one: a single path of thousands takes three times as long
      trace(pen, ...circle);
      pen.stroke();
    }
  }
  const fits = (view) =>
    view.scale === scale && view.centre[0] === centre[0] && view.centre[1] === centre[1] && view.width === width && view.height === height;
  return { canvas, scale, centre, wide, high, fits };
}

export function paintLayer(pen, layer, { scale, screen }) {
  const factor = scale / layer.scale;
  const [x, y] = screen(layer.centre);
  const [wide, high] = [layer.wide * factor, layer.high * factor];
  pen.drawImage(layer.canvas, x - wide / 2, y - high / 2, wide, high);
}

// Answers, the query and the highlighted circle, over all others.
export function paintMarks(pen, globe, view) {
  const { positions, points, marks, highlighted, screen, scale, width, colour } = view;
  for (const mark of marks) {
    stroke(pen, one(mark.place), globe, colour(mark.query ? "query" : "answer"), 3);
  }
  if (highlighted !== null) {
    stroke(pen, one(highlighted), globe, colour("highlight"), 4);
  }
  for (const mark of marks.toReversed()) {
    const [x, y] = screen(points[mark.place]);
    const [rx, ry] = radiiOf(globe, positions, mark.place, scale);
    label(pen, [x + rx * Math.SQRT1_2 + 8, y - ry * Math.SQRT1_2 - 8], mark, colour);
  }
  if (highlighted !== null) {
    const [x, y] = screen(points[highlighted]);
    const [, ry] = radiiOf(globe, positions, highlighted, scale);
    pen.fillStyle = colour("ink");
    pen.textAlign = "center";
    written(pen, globe.words(highlighted), Math.min(Math.max(x, 90), width - 90), y + ry + 18, colour("surface"));
    pen.textAlign = "left";
  }

  function one(place) {
    const single = new Path2D();
    trace(single, ...screen(points[place]), ...radiiOf(globe, positions, place, scale));
    return single;
  }
}

// The smallest circle that holds [x, y], or comes near to it; null without one.
export function findCircle(globe, { positions, points, screen, scale }, [x, y]) {
  let [best, least] = [null, Infinity];
  points.forEach((point, place) => {
    const [px, py] = screen(point);
    const [rx, ry] = radiiOf(globe, positions, place, scale);
    const inside = Math.hypot((px - x) / (rx + REACH), (py - y) / (ry + REACH)) <= 1;
    if (inside && ry < least) {
      [best, least] = [place, ry];
    }
  });
  return best;
}

function radiiOf({ radii }, { lats }, place, scale) {
  const high = radii[place] * scale;
  const wide = high / Math.max(POLE, Math.cos((lats[place] * Math.PI) / 180));
  return [Math.max(LEAST, wide), Math.max(LEAST, high)];
}

function trace(path, x, y, rx, ry) {
  path.moveTo(x + rx, y);
  if (rx < ELLIPSE) {
    path.arc(x, y, rx, 0, 7);
  } else {
    path.ellipse(x, y, rx, ry, 0, 0, 7);
  }
}

function stroke(pen, path, globe, colour, width) {
  for (const [strokeStyle, lineWidth] of strokesOf(globe, colour, width)) {
    Object.assign(pen, { strokeStyle, lineWidth });
    pen.stroke(path);
  }
}

// On a picture a line has a dark casing.
function strokesOf({ mosaic }, colour, width) {
  return [...(mosaic ? [["rgb(0 0 0 / .55)", width + 2]] : []), [colour, width]];
}
