// Numbers as a reader wants to see them; the same words as explain/wording.py.

export const LIKELY = 0.5;
const NOTHING = "–";
const VERDICTS = [
  [0.9, "very likely"],
  [LIKELY, "likely"],
  [0.1, "unlikely"],
];
const ORIGINS = {
  homography: "the outline of the query, through a verified homography",
  points: "verified points: the box is around them",
  tokens: "the heat map of matched tokens",
  region: "the region that matched best",
};

// An answer without a calibrated probability is not called unlikely either.
export function isLikely(probability) {
  return probability === null || probability >= LIKELY;
}

// A percentage that never claims certainty.
export function sayChance(probability) {
  if (probability === null || probability === undefined) {
    return NOTHING;
  }
  if (probability >= 0.995) {
    return ">99%";
  }
  return probability < 0.005 ? "<1%" : `${Math.round(probability * 100)}%`;
}

export function sayVerdict(probability) {
  if (probability === null || probability === undefined) {
    return "not calibrated";
  }
  return VERDICTS.find(([least]) => probability >= least)?.[1] ?? "very unlikely";
}

// "asmk_standout" → "asmk standout"
export function sayName(name) {
  return name.replaceAll("_", " ");
}

export function sayOrigin(locatedBy) {
  return ORIGINS[locatedBy] ?? locatedBy;
}

// Similarities near 1 need their decimals; counts of inliers need none.
export function sayScore(score) {
  const size = Math.abs(score);
  return score.toFixed(
    size < 10 ? (Number.isInteger(score) && size > 1 ? 0 : 3) : size >= 100 || Number.isInteger(score) ? 0 : 1,
  );
}

export function sayTime(seconds) {
  return seconds >= 1 ? `${seconds.toFixed(1)} s` : `${Number((seconds * 1000).toPrecision(3))} ms`;
}

export function sayBox(box) {
  const [x0, y0, x1, y1] = box.map(Math.round);
  return `x ${x0}–${x1}, y ${y0}–${y1} (${x1 - x0}\u00a0×\u00a0${y1 - y0}\u00a0px)`;
}

export function sayCount(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}

export function sayBytes(bytes) {
  if (bytes < 1000) {
    return `${bytes} B`;
  }
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

export function sayValue(value) {
  if (typeof value === "boolean") {
    return value ? "yes" : "no";
  }
  return typeof value === "number" ? String(Number(value.toPrecision(8))) : String(value);
}

export function sayMetres(metres) {
  return metres >= 1000 ? `${Number((metres / 1000).toPrecision(3))} km` : `${Number(metres.toPrecision(3))} m`;
}
