// Degrees → a flat map and back. A plane has:
//   forward(lat, lon)   → [right, down] of the middle, in degrees of a meridian
//   back([right, down]) → [lat, lon]
//   across(lon)         the same as forward, for a longitude beyond ±180 too
//   metres              of a degree
//   edges               [west, east] of a whole globe; null where the map may be moved without end
//   words(lat or lon, axis, decimals)

const EARTH_DEGREE = 111320; // metres

// Touches the Earth in the middle of the positions: good to a few hundred kilometres.
export function earthPlane(positions) {
  const home = middleOf(positions);
  const squeeze = Math.max(0.05, Math.cos((home[0] * Math.PI) / 180));
  return {
    metres: EARTH_DEGREE,
    edges: null,
    forward: (lat, lon) => [turned(lon - home[1]) * squeeze, home[0] - lat],
    back: ([x, y]) => [home[0] - y, home[1] + x / squeeze],
    across: (lon) => (lon - home[1]) * squeeze,
    words: (value, axis, decimals) => `${(axis === "lon" ? turned(value) : value).toFixed(decimals)}°`,
  };
}

// A whole globe in equal degrees; longitudes count from `west` (-180 or 0) eastwards.
export function globePlane(radiusKm, west) {
  const middle = west + 180;
  return {
    metres: (Math.PI / 180) * radiusKm * 1000,
    edges: [west, west + 360],
    forward: (lat, lon) => [modulo(lon - west, 360) - 180, -lat],
    back: ([x, y]) => [-y, middle + x],
    across: (lon) => lon - middle,
    words: (value, axis, decimals) => formatDegrees(value, axis, west === 0, decimals),
  };
}

// "12.50° S"; longitudes as "270.00° E" where they count to 360, and "90.00° W" where they count to 180.
export function formatDegrees(value, axis, to360, decimals = 2) {
  const shown = axis === "lat" ? value : to360 ? modulo(value, 360) : turned(value);
  const letters = axis === "lat" ? "NS" : "EW";
  return `${Math.abs(shown).toFixed(decimals)}° ${letters[shown < 0 ? 1 : 0]}`;
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
  return modulo(lon + 180, 360) - 180;
}

function modulo(value, base) {
  return ((value % base) + base) % base;
}
