// Events between modules that do not import each other: emit("offline", true), watch("offline", show).

const watchers = new Map();

export function watch(topic, react) {
  const those = watchers.get(topic) ?? new Set();
  watchers.set(topic, those.add(react));
  return () => those.delete(react);
}

export function emit(topic, value) {
  for (const react of watchers.get(topic) ?? []) {
    react(value);
  }
}
