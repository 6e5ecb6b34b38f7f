// Thumbnails of stored images, with boxes drawn on them.

import { address } from "./api.js";
import { h, svg } from "./dom.js";
import { collectionName } from "./session.js";

const MAT = 4 / 3; // width to height of the space that a picture of a card has

export function fileOf(id, side) {
  return address("/api/image/file", { id, side, collection: collectionName() });
}

// A picture that keeps its place before it has loaded; `size` [w, h] is that of the original, as are boxes.
export function picture({ src, size, alt, box = null, others = [], lazy = true }) {
  const image = h("img", { src, alt, decoding: "async", loading: lazy ? "lazy" : null, draggable: "false" });
  image.addEventListener(
    "error",
    () => {
      image.replaceWith(h("span", { class: "no-picture" }, "No picture"));
    },
    { once: true },
  );
  const frame = h(
    "div",
    { class: `picture ${size && size[0] / size[1] < MAT ? "tall" : "wide"}` },
    image,
    size && outline(size, box, null, others),
  );
  if (size) {
    frame.style.aspectRatio = `${size[0]} / ${size[1]}`;
  }
  return frame;
}

// An overlay in pixels of the original: what is around the box and the boxes of further instances is shaded.
export function outline(size, box, region = null, others = []) {
  const [width, height] = size;
  const drawn = svg("svg", {
    class: "overlay",
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  if (region) {
    drawn.append(rectangle(region, "casing"), rectangle(region, "region"));
  }
  if (box) {
    const all = [box, ...others];
    const holes = all.map(([x0, y0, x1, y1]) => `M${x0} ${y0}H${x1}V${y1}H${x0}Z`);
    drawn.append(
      svg("path", {
        class: "shade",
        "fill-rule": "evenodd",
        d: `M0 0H${width}V${height}H0Z${holes.join("")}`,
      }),
    );
    drawn.append(...all.flatMap((each) => [rectangle(each, "casing"), rectangle(each, "edge")]));
  }
  return drawn;
}

export function rectangle([x0, y0, x1, y1], name) {
  return svg("rect", { class: name, x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0) });
}
