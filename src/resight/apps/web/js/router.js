// The part of the address behind # → a view. "#/review/faces?reviewer=kim" is
// { view: "review", rest: ["faces"], params: URLSearchParams }.
//
// A view is a module with `title` and `show(root, route)`, which fills `root` (an empty element in main) and may give back
// { update(route), close() }: `update` is called when only rest or params have changed, `close` before another view.

const VIEWS = {
  search: () => import("./search.js"),
  images: () => import("./images.js"),
  map: () => import("./map.js"),
  review: () => import("./review.js"),
  reports: () => import("./reports.js"),
  training: () => import("./training.js"),
  about: () => import("./about.js"),
};
const FIRST = "search";

export function parseHash(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...rest] = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { view: Object.hasOwn(VIEWS, view) ? view : FIRST, rest, params: new URLSearchParams(query) };
}

// link("search", [], { id: "a.jpg", where: ["year>=1900"] }); lists are repeated, null is left out.
export function link(view, rest = [], parameters = {}) {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const query = new URLSearchParams(pairs.filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return `#/${[view, ...rest].map(encodeURIComponent).join("/")}${query.size ? `?${query}` : ""}`;
}

export function go(hash) {
  location.hash = hash;
}

// The address changes, the view stays as it is.
export function rename(hash) {
  history.replaceState(null, "", hash);
}

// Calls changed(route, module) for the first address and each later one.
export function start(changed) {
  let latest = 0;
  const follow = async () => {
    const mine = ++latest;
    const route = parseHash(location.hash);
    const module = await VIEWS[route.view]();
    if (mine === latest) {
      changed(route, module);
    }
  };
  addEventListener("hashchange", follow);
  return follow();
}
