// A picture on which a box is drawn, moved and resized: by mouse, finger, arrow keys, or in numbers.
//
// boxEditor({ src, name, box, changed, loaded }) gives { element, setSize, setSource }; `changed(box | null)` is called when a change
// is complete, with whole pixels of the original.

import { button, field, h, icon, put } from "./dom.js";
import { outline } from "./thumbnails.js";

const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];
const SMALLEST = 8; // pixels of the original
const SETTLED = 450; // milliseconds without a key after which a change counts as complete

export function boxEditor({ src, name, box: first, changed, loaded = () => {} }) {
  let box = first;
  let size = null;
  let timer = 0;
  const image = h("img", { src, alt: `The query: ${name}`, draggable: "false" });
  const handles = HANDLES.map((side) => h("span", { class: `handle ${side}`, data: { side } }));
  const frame = h("div", { class: "box-frame", tabindex: "0", role: "group", hidden: true }, ...handles);
  const stage = h("div", { class: "picture editor" }, image, frame);
  const numbers = h("div", { class: "box-numbers" });
  const mark = button([icon("box"), "Mark a part"], markMiddle, { class: "tool" });
  const clear = button(
    [icon("close"), "Clear the box"],
    () => {
      finish(null);
      mark.focus();
    },
    { class: "tool plain" },
  );
  const element = h(
    "div",
    { class: "stack tight" },
    h("div", { class: "query-mat" }, stage),
    h("div", { class: "row" }, mark, clear),
    numbers,
  );

  image.addEventListener("load", () => {
    setSize(size ?? [image.naturalWidth, image.naturalHeight]);
    loaded(size);
  });
  image.addEventListener("error", () => image.replaceWith(h("span", { class: "no-picture" }, "No picture")));
  stage.addEventListener("pointerdown", drag);
  frame.addEventListener("keydown", press);
  draw();
  return {
    element,
    setSize,
    setSource: (address) => {
      image.src = address;
    },
  };

  function setSize(known) {
    size = known;
    stage.style.aspectRatio = `${size[0]} / ${size[1]}`;
    stage.style.maxWidth = `min(100%, calc(${size[0] / size[1]} * var(--query-height)))`;
    draw();
  }

  function draw() {
    stage.querySelector(".overlay")?.remove();
    mark.hidden = Boolean(box) || !size;
    clear.hidden = !box;
    frame.hidden = !box || !size;
    if (!size || !box) {
      return put(numbers);
    }
    image.after(outline(size, box));
    const [left, top, right, bottom] = [box[0] / size[0], box[1] / size[1], box[2] / size[0], box[3] / size[1]].map(
      (share) => share * 100,
    );
    Object.assign(frame.style, {
      left: `${left}%`,
      top: `${top}%`,
      width: `${right - left}%`,
      height: `${bottom - top}%`,
    });
    frame.setAttribute(
      "aria-label",
      `Box to search for: x ${box[0]} to ${box[2]}, y ${box[1]} to ${box[3]}. Arrow keys move it, with Shift they resize it, Delete clears it.`,
    );
    if (!numbers.contains(document.activeElement)) {
      put(numbers, ...["Left", "Top", "Right", "Bottom"].map(numberField));
    }
  }

  function numberField(label, place) {
    const input = h("input", { type: "number", inputmode: "numeric", min: 0, max: size[place % 2], value: box[place] });
    input.addEventListener("change", () => {
      finish(tidy(box.with(place, Number(input.value))));
      input.value = box?.[place] ?? "";
    });
    return field(label, input);
  }

  function markMiddle() {
    finish(tidy([size[0] * 0.2, size[1] * 0.2, size[0] * 0.8, size[1] * 0.8]));
    frame.focus();
  }

  function finish(next) {
    clearTimeout(timer);
    box = next;
    draw();
    changed(box);
  }

  function press(event) {
    const step = Math.max(1, Math.round(Math.max(...size) / 100));
    const [dx, dy] = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[
      event.key
    ] ?? [0, 0];
    if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      finish(null);
      return mark.focus();
    }
    if (!dx && !dy) {
      return;
    }
    event.preventDefault();
    box = event.shiftKey ? tidy([box[0], box[1], box[2] + dx, box[3] + dy]) : move(box, dx, dy);
    draw();
    clearTimeout(timer);
    timer = setTimeout(() => changed(box), SETTLED);
  }

  function drag(event) {
    const onFrame = event.target.closest(".box-frame");
    if (!size || event.button !== 0 || (!onFrame && event.pointerType !== "mouse")) {
      return;
    } // a finger beside the box scrolls
    event.preventDefault();
    const before = box;
    const side = event.target.dataset.side;
    const from = place(event);
    const follow = (moved) => {
      const [x, y] = place(moved);
      box = side
        ? resize(before, side, x, y)
        : onFrame
          ? move(before, x - from[0], y - from[1])
          : tidy([from[0], from[1], x, y]);
      draw();
    };
    const stop = () => {
      stage.removeEventListener("pointermove", follow);
      const drawn = box && box[2] - box[0] >= SMALLEST && box[3] - box[1] >= SMALLEST;
      box = drawn ? box : before;
      draw();
      if (box !== before) {
        finish(box);
        frame.focus({ preventScroll: true });
      }
    };
    stage.setPointerCapture(event.pointerId);
    stage.addEventListener("pointermove", follow);
    stage.addEventListener("pointerup", stop, { once: true });
    stage.addEventListener("pointercancel", stop, { once: true });
  }

  function place(event) {
    const area = stage.getBoundingClientRect();
    return [((event.clientX - area.left) / area.width) * size[0], ((event.clientY - area.top) / area.height) * size[1]];
  }

  function move([x0, y0, x1, y1], dx, dy) {
    const right = Math.round(Math.min(Math.max(dx, -x0), size[0] - x1));
    const down = Math.round(Math.min(Math.max(dy, -y0), size[1] - y1));
    return [x0 + right, y0 + down, x1 + right, y1 + down];
  }

  function resize([x0, y0, x1, y1], side, x, y) {
    return tidy([
      side.includes("w") ? x : x0,
      side.includes("n") ? y : y0,
      side.includes("e") ? x : x1,
      side.includes("s") ? y : y1,
    ]);
  }

  // Right way round, inside the picture, whole pixels, never empty.
  function tidy([ax, ay, bx, by]) {
    const within = (value, most) => Math.round(Math.min(Math.max(value, 0), most));
    const [x0, x1] = [Math.min(ax, bx), Math.max(ax, bx)].map((value) => within(value, size[0]));
    const [y0, y1] = [Math.min(ay, by), Math.max(ay, by)].map((value) => within(value, size[1]));
    return [Math.min(x0, size[0] - 1), Math.min(y0, size[1] - 1), Math.max(x1, x0 + 1), Math.max(y1, y0 + 1)];
  }
}
