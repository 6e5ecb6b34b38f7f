// The progress of a job, as the server sends it; asked for again where the stream breaks.

import { get } from "./api.js";

const PAUSE = 1500; // milliseconds between questions where there is no stream

// react(job) is called for every change, the last time with a job that has ended. Gives the function that stops it.
export function watchJob(id, react) {
  const path = `/api/jobs/${encodeURIComponent(id)}`;
  const source = new EventSource(`${path}/events`);
  let ended = false;
  let timer = 0;
  const take = (job) => {
    if (ended) {
      return;
    }
    ended = !["waiting", "running"].includes(job.state);
    react(job);
    if (ended) {
      stop();
    }
  };
  const ask = async () => {
    await get(path).then(take, () => {});
    if (!ended) {
      timer = setTimeout(ask, PAUSE);
    }
  };
  source.addEventListener("progress", (event) => take(JSON.parse(event.data)));
  source.addEventListener("done", (event) => {
    source.close();
    if (event.data) {
      take(JSON.parse(event.data));
    }
    if (!ended) {
      ask();
    }
  });
  source.addEventListener("error", () => {
    source.close();
    if (!ended) {
      ask();
    }
  });
  return stop;

  function stop() {
    ended = true;
    source.close();
    clearTimeout(timer);
  }
}

export function jobEnds(id) {
  return new Promise((resolve) => {
    watchJob(id, (job) => {
      if (!["waiting", "running"].includes(job.state)) {
        resolve(job);
      }
    });
  });
}
