// The alignment of the query on an answer: a 3 × 3 matrix, row by row, from pixels of the query to pixels of the image.

const ENOUGH = 8; // matched points for a reliable homography

// The best that the evidence allows, and words for it. `outline` is what was looked for in the query.
export function align({ match, box, sizes }, outline) {
  const points = match?.points ?? [];
  if (match?.model === "homography" && points.length >= ENOUGH) {
    const matrix = fitHomography(points);
    if (matrix && corners(sizes.query).every(([x, y]) => depth(matrix, x, y) > 0.05)) {
      return { matrix, words: "aligned using matched points" };
    }
  }
  if (points.length >= 3) {
    return {
      matrix: fitSimilarity(points),
      words: "aligned using matched points (shift, rotation and scale)",
    };
  }
  const from = outline ?? [0, 0, ...sizes.query];
  if (box) {
    return { matrix: stretch(from, box), words: "the query is stretched over the box" };
  }
  return {
    matrix: stretch([0, 0, ...sizes.query], [0, 0, ...sizes.image]),
    words: "not aligned: no matching points",
  };
}

export function apply(matrix, x, y) {
  const w = depth(matrix, x, y);
  return [(matrix[0] * x + matrix[1] * y + matrix[2]) / w, (matrix[3] * x + matrix[4] * y + matrix[5]) / w];
}

// How much larger things get around a point, both directions together.
export function magnify(matrix, x, y) {
  const [at, right, below] = [apply(matrix, x, y), apply(matrix, x + 1, y), apply(matrix, x, y + 1)];
  return Math.sqrt(Math.abs((right[0] - at[0]) * (below[1] - at[1]) - (right[1] - at[1]) * (below[0] - at[0])));
}

export function invert([a, b, c, d, e, f, g, h, i]) {
  const [A, B, C] = [e * i - f * h, f * g - d * i, d * h - e * g];
  const scale = 1 / (a * A + b * B + c * C);
  return [A, c * h - b * i, b * f - c * e, B, a * i - c * g, c * d - a * f, C, b * g - a * h, a * e - b * d].map(
    (value) => value * scale,
  );
}

export function multiply(p, q) {
  return Array.from({ length: 9 }, (_, k) =>
    [0, 1, 2].reduce((sum, j) => sum + p[3 * Math.floor(k / 3) + j] * q[3 * j + (k % 3)], 0),
  );
}

// For the CSS property transform.
export function css([a, b, c, d, e, f, g, h, i]) {
  return `matrix3d(${[a, d, 0, g, b, e, 0, h, 0, 0, 1, 0, c, f, 0, i].map((value) => value.toPrecision(9)).join(",")})`;
}

// Least squares over points [[qx, qy, ix, iy], …] with the last entry 1; both sides are centred and scaled first, as
// the equations are badly conditioned in pixels. Null where the points lie on a line.
export function fitHomography(points) {
  const from = normaliser(points.map(([x, y]) => [x, y]));
  const to = normaliser(points.map(([, , x, y]) => [x, y]));
  const rows = points.flatMap(([qx, qy, ix, iy]) => {
    const [x, y] = apply(from, qx, qy);
    const [u, v] = apply(to, ix, iy);
    return [
      [x, y, 1, 0, 0, 0, -u * x, -u * y, u],
      [0, 0, 0, x, y, 1, -v * x, -v * y, v],
    ];
  });
  const found = solve(rows);
  return found && multiply(invert(to), multiply([...found, 1], from));
}

// Shift, turn and scale by least squares, in closed form.
export function fitSimilarity(points) {
  const mean = [0, 1, 2, 3].map((column) => points.reduce((sum, point) => sum + point[column], 0) / points.length);
  let [along, across, spread] = [0, 0, 1e-9];
  for (const point of points) {
    const [x, y, u, v] = point.map((value, column) => value - mean[column]);
    along += x * u + y * v;
    across += x * v - y * u;
    spread += x * x + y * y;
  }
  const [a, b] = [along / spread, across / spread];
  return [a, -b, mean[2] - a * mean[0] + b * mean[1], b, a, mean[3] - b * mean[0] - a * mean[1], 0, 0, 1];
}

function stretch([x0, y0, x1, y1], [u0, v0, u1, v1]) {
  const [sx, sy] = [(u1 - u0) / (x1 - x0), (v1 - v0) / (y1 - y0)];
  return [sx, 0, u0 - sx * x0, 0, sy, v0 - sy * y0, 0, 0, 1];
}

function depth(matrix, x, y) {
  return matrix[6] * x + matrix[7] * y + matrix[8];
}

function corners([width, height]) {
  return [
    [0, 0],
    [width, 0],
    [width, height],
    [0, height],
  ];
}

function normaliser(places) {
  const [mx, my] = [0, 1].map((axis) => places.reduce((sum, place) => sum + place[axis], 0) / places.length);
  const reach = places.reduce((sum, [x, y]) => sum + Math.hypot(x - mx, y - my), 0) / places.length || 1;
  return [1 / reach, 0, -mx / reach, 0, 1 / reach, -my / reach, 0, 0, 1];
}

// Rows [coefficients…, right side]: the normal equations by elimination with pivots.
function solve(rows) {
  const n = rows[0].length - 1;
  const table = Array.from({ length: n }, (_, i) =>
    Array.from({ length: n + 1 }, (_, j) => rows.reduce((sum, row) => sum + row[i] * row[j], 0)),
  );
  for (let column = 0; column < n; column += 1) {
    const best = table
      .slice(column)
      .reduce((most, row, k) => (Math.abs(row[column]) > Math.abs(table[most][column]) ? column + k : most), column);
    if (Math.abs(table[best][column]) < 1e-12) {
      return null;
    }
    [table[column], table[best]] = [table[best], table[column]];
    for (let row = 0; row < n; row += 1) {
      if (row === column) {
        continue;
      }
      const factor = table[row][column] / table[column][column];
      table[row] = table[row].map((value, k) => value - factor * table[column][k]);
    }
  }
  return table.map((row, k) => row[n] / row[k]);
}
