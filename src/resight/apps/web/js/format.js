// Numbers and labels as readable text; the same words as explain/format.py.

export const LIKELY = 0.5;
const NOTHING = "–";
const VERDICTS = [
  [0.9, "very likely"],
  [LIKELY, "likely"],
  [0.1, "unlikely"],
];
const ORIGINS = {
  homography: "the query’s outline, confirmed by matching points",
  similarity: "the query’s outline, confirmed by matching points",
  points: "a box around the matching points",
  tokens: "the heat map of matching tokens",
  region: "the best matching region",
};

// An answer without a calibrated probability counts as likely.
export function isLikely(probability) {
  return probability === null || probability >= LIKELY;
}

// A percentage that never claims certainty.
export function formatChance(probability) {
  if (probability === null || probability === undefined) {
    return NOTHING;
  }
  if (probability >= 0.995) {
    return ">99%";
  }
  return probability < 0.005 ? "<1%" : `${Math.round(probability * 100)}%`;
}

export function formatVerdict(probability) {
  if (probability === null || probability === undefined) {
    return "not calibrated";
  }
  return VERDICTS.find(([least]) => probability >= least)?.[1] ?? "very unlikely";
}

// "asmk_standout" → "asmk standout"
export function formatName(name) {
  return name.replaceAll("_", " ");
}

export function formatOrigin(locatedBy) {
  return ORIGINS[locatedBy] ?? locatedBy;
}

// Similarities near 1 need their decimals; counts of inliers need none.
export function formatScore(score) {
  const size = Math.abs(score);
  return score.toFixed(
    size < 10 ? (Number.isInteger(score) && size > 1 ? 0 : 3) : size >= 100 || Number.isInteger(score) ? 0 : 1,
  );
}

export function formatTime(seconds) {
  return seconds >= 1 ? `${seconds.toFixed(1)} s` : `${Number((seconds * 1000).toPrecision(3))} ms`;
}

export function formatBox(box) {
  const [x0, y0, x1, y1] = box.map(Math.round);
  return `x ${x0}–${x1}, y ${y0}–${y1} (${x1 - x0}\u00a0×\u00a0${y1 - y0}\u00a0px)`;
}

export function formatCount(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}

export function formatBytes(bytes) {
  if (bytes < 1000) {
    return `${bytes} B`;
  }
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

export function formatValue(value) {
  if (typeof value === "boolean") {
    return value ? "yes" : "no";
  }
  return typeof value === "number" ? String(Number(value.toPrecision(8))) : String(value);
}

export function formatMetres(metres) {
  return metres >= 1000 ? `${Number((metres / 1000).toPrecision(3))} km` : `${Number(metres.toPrecision(3))} m`;
}

export function formatKilometres(kilometres) {
  return formatMetres(kilometres * 1000);
}
