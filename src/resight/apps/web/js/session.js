// What the whole page knows: the collections, which of them is looked at, and whether this visitor may write.

import { get, post } from "./api.js";
import { emit } from "./events.js";

const session = {
  needsKey: false,
  signedIn: false,
  mayWrite: false,
  collections: [],
  chosen: null,
  reports: 0,
  trainings: 0,
  reviews: 0,
};

export async function load() {
  const state = await get("/api/session");
  Object.assign(session, { needsKey: state.needs_key, signedIn: state.signed_in, mayWrite: state.may_write });
  if (session.needsKey && !session.signedIn) {
    return session;
  }
  const [collections, reports, trainings, reviews] = await Promise.all([
    get("/api/collections"),
    get("/api/reports").catch(() => []),
    get("/api/trainings").catch(() => []),
    get("/api/reviews").catch(() => []),
  ]);
  Object.assign(session, {
    collections,
    reports: reports.length,
    trainings: trainings.length,
    reviews: reviews.length,
  });
  return session;
}

export function known() {
  return session;
}

// The collection that is looked at; the first one until another is chosen.
export function collection() {
  return session.collections.find((one) => one.name === session.chosen) ?? session.collections[0] ?? null;
}

// As a parameter of requests and addresses: null where there is only one, which the server takes by itself.
export function collectionName() {
  return session.collections.length > 1 ? collection().name : null;
}

export function choose(name) {
  if (name === null || name === collection()?.name) {
    return;
  }
  session.chosen = name;
  emit("collection", collection());
}

// Counts change while images are added and deleted.
export async function refresh() {
  session.collections = await get("/api/collections");
  emit("collection", collection());
}

export async function signIn(key) {
  await post("/api/session", { key });
  return load();
}
