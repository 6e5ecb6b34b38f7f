// A search request, as the page, its address and the API represent it.
//
// A request is { source, box, where, near, k }. A source is a stored image { id } or a file { file, url }, both with
// `name`, and `size` once it is known; the browser cannot show `opaque` files, so that the server's thumbnail stands in.
// An address cannot hold a file: this module keeps it while the page is open.

import { address } from "./api.js";
import { link } from "./router.js";
import { collectionName } from "./session.js";

const USUAL_COUNT = 10;
let keptFile = null; // the source of the last file
let latest = null; // { request, link, answer } of the search made last, for the map and for coming back
const SHOWABLE = new Set(["image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"]); // by every browser

export function fromFile(file) {
  if (keptFile) {
    URL.revokeObjectURL(keptFile.url);
  }
  keptFile = {
    file,
    url: URL.createObjectURL(file),
    name: file.name || "pasted image",
    size: null,
    opaque: !SHOWABLE.has(file.type),
  };
  return keptFile;
}

export function fromStored(id) {
  return {
    id,
    url: address("/api/image/file", { id, side: 1280, collection: collectionName() }),
    name: id,
    size: null,
  };
}

export function readRequest(params) {
  const id = params.get("id");
  const box = params.get("box")?.split(",").map(Number) ?? null;
  return {
    source: id !== null ? fromStored(id) : keptFile,
    box: box?.length === 4 && box.every(Number.isFinite) ? box : null,
    where: params.getAll("where"),
    near: params.get("near"),
    k: Number(params.get("k")) || USUAL_COUNT,
  };
}

// The address of a request; a file leaves only its box and filters there.
export function linkTo({ source, box, where, near, k }) {
  return link("search", [], {
    id: source?.id,
    box: box?.map(Math.round).join(","),
    where,
    near,
    k: k === USUAL_COUNT ? null : k,
    collection: collectionName(),
  });
}

// A stored query is among its own answers, so it asks for one more.
export function withoutItself(answer, { source }) {
  return {
    ...answer,
    hits: answer.hits.filter((hit) => hit.id !== source.id),
    position: answer.position?.support.includes(source.id) ? null : answer.position,
  };
}

// The fields of POST /api/search, /api/search/stages and /api/why.
export function fieldsOf({ source, box, where, near, k }) {
  return {
    image: source.file,
    id: source.id,
    box: box?.map(Math.round).join(","),
    where,
    near,
    k: source.id === undefined ? k : k + 1,
    collection: collectionName(),
  };
}

export function remember(request, answer) {
  latest = { request, link: linkTo(request), answer };
}

export function remembered() {
  return latest;
}
