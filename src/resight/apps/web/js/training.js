// Trainings of the server's folder: loss, learning rate and validation as they come, one chart each.

import { get } from "./api.js";
import { h, put, svg } from "./dom.js";
import { empty } from "./notifications.js";
import { link } from "./router.js";

export const title = "Training";

const EVERY = 2000; // milliseconds between two looks at a training that may still run
const WIDTH = 640;
const HEIGHT = 200;
const EDGE = { left: 56, right: 12, top: 12, bottom: 28 };

export async function show(root, route) {
  let timer = null;
  let wanted = null;
  const look = async () => {
    const mine = wanted;
    if (mine === null) {
      put(root, ...all(await get("/api/trainings")));
      return;
    }
    const curves = await get(`/api/trainings/curves?${new URLSearchParams({ name: mine })}`);
    if (mine === wanted) {
      put(root, ...one(curves));
      timer = setTimeout(() => look().catch(() => {}), EVERY);
    }
  };
  const render = async ({ rest }) => {
    clearTimeout(timer);
    wanted = rest.length ? rest.join("/") : null;
    await look();
  };
  await render(route);
  return {
    update: render,
    close: () => {
      wanted = undefined;
      clearTimeout(timer);
    },
  };
}

function all(trainings) {
  if (!trainings.length) {
    return [
      h("h1", {}, "Training"),
      empty("image", "No trainings", "resight serve --training FOLDER shows those that resight train writes there."),
    ];
  }
  return [
    h(
      "div",
      { class: "reading" },
      h("h1", {}, "Training"),
      h(
        "ul",
        { class: "panel report-list" },
        ...trainings.map((training) =>
          h(
            "li",
            {},
            h("a", { href: link("training", training.name.split("/")) }, training.name),
            h("span", { class: "small quiet" }, new Date(training.modified * 1000).toLocaleString("en-GB")),
          ),
        ),
      ),
    ),
  ];
}

function one(curves) {
  const last = curves.losses.length - 1;
  const charts = [
    ["Loss", curves.steps, curves.losses],
    ["Validation (mean average precision on held-out classes)", curves.validated, curves.validations],
    ["Learning rate", curves.steps, curves.rates],
  ];
  return [
    h(
      "div",
      { class: "head" },
      h("h1", { class: "breaks" }, curves.name),
      h("a", { class: "tool", href: "#/training" }, "All trainings"),
    ),
    h(
      "p",
      { class: "quiet" },
      last < 0
        ? "No step yet."
        : `Epoch ${curves.epoch}, step ${curves.steps[last].toLocaleString("en-GB")}, ` +
            `loss ${say(curves.losses[last])}, ${Math.round(curves.seconds)} s`,
    ),
    h(
      "div",
      { class: "stack" },
      ...charts.filter(([, , values]) => values.some((value) => value !== null)).map(([words, steps, values]) => chart(words, steps, values)),
    ),
  ];
}

// A curve with its least and largest value; the numbers are also in its description, for those who do not see it.
function chart(words, given, found) {
  const known = given.map((step, number) => [step, found[number]]).filter(([, value]) => value !== null);
  const steps = known.map(([step]) => step);
  const values = known.map(([, value]) => value);
  const low = Math.min(0, ...values);
  const high = Math.max(...values);
  const first = steps[0];
  const final = steps[steps.length - 1];
  const x = (step) => EDGE.left + ((step - first) / Math.max(final - first, 1)) * (WIDTH - EDGE.left - EDGE.right);
  const y = (value) => HEIGHT - EDGE.bottom - ((value - low) / (high - low || 1)) * (HEIGHT - EDGE.top - EDGE.bottom);
  const points = steps.map((step, number) => `${x(step).toFixed(1)},${y(values[number]).toFixed(1)}`);
  const label = (at, value, anchor, text) =>
    svg("text", { x: at, y: value, "text-anchor": anchor, class: "curve-label" }, text);
  return h(
    "figure",
    { class: "panel curve" },
    h("figcaption", {}, words),
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: "img",
        "aria-label": `${words}: ${say(values[0])} at step ${first}, ${say(values[values.length - 1])} at step ${final}`,
      },
      svg("line", { class: "curve-axis", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(low), y2: y(low) }),
      label(EDGE.left - 6, y(high) + 4, "end", say(high)),
      label(EDGE.left - 6, y(low) + 4, "end", say(low)),
      label(EDGE.left, HEIGHT - 8, "start", `step ${first}`),
      label(WIDTH - EDGE.right, HEIGHT - 8, "end", `step ${final}`),
      svg("polyline", { class: "curve-line", points: points.join(" ") }),
      steps.length === 1 && svg("circle", { class: "curve-point", cx: x(first), cy: y(values[0]), r: 3 }),
    ),
  );
}

function say(value) {
  if (value === null) {
    return "not a number";
  }
  return value === 0 ? "0" : Math.abs(value) >= 0.001 ? Number(value.toPrecision(3)).toString() : value.toExponential(1);
}
