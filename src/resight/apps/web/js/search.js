// The search view: the query with its box and filters on one side, the answers on the other.

import { form, get, postForLines } from "./api.js";
import { answerList } from "./results.js";
import { boxEditor } from "./box_editor.js";
import { button, h, icon, put } from "./dom.js";
import { receiveFiles } from "./drop_zone.js";
import { exportMenu } from "./export.js";
import { filterBar } from "./filters.js";
import { announce, note, problem } from "./notifications.js";
import { fieldsOf, fromFile, linkTo, readRequest, remember, remembered, withoutItself } from "./search_request.js";
import { go, rename } from "./router.js";
import { collectionName } from "./session.js";
import { watch } from "./events.js";
import { welcome } from "./welcome.js";
import { openWhy } from "./why.js";
import { formatCount } from "./format.js";

export const title = "Search";
const COUNTS = [10, 20, 50, 100];

export async function show(root, route) {
  let request = readRequest(route.params);
  let running = null; // stops the running search
  const chooser = h("input", {
    type: "file",
    accept: "image/*,.tif,.tiff,.heic,.heif,.avif,.jxl,.jp2",
    class: "unseen",
    "aria-label": "Image to search with",
    tabindex: "-1",
    on: { change: () => takeFiles([...chooser.files]) },
  });
  const unwatch = watch("pick-query", () => root.querySelector("[data-pick]").focus());
  const stopOnEscape = (event) => {
    if (event.key === "Escape" && running && !document.querySelector("dialog[open]")) {
      stop();
    }
  };
  document.addEventListener("keydown", stopOnEscape);
  receiveFiles("Drop an image to search with it", takeFiles);
  render();
  return {
    update(next) {
      request = readRequest(next.params);
      render();
      focusAnswers();
    },
    close() {
      running?.abort();
      unwatch();
      receiveFiles("", null);
      document.removeEventListener("keydown", stopOnEscape);
    },
  };

  function takeFiles(files) {
    if (files.length > 1) {
      note("One image at a time: using the first");
    }
    chooser.value = "";
    request = { ...request, source: fromFile(files[0]), box: null };
    history.pushState(null, "", linkTo(request));
    render();
    focusAnswers();
  }

  // From here the arrow keys reach the answers.
  function focusAnswers() {
    root.querySelector(".answer-list")?.focus({ preventScroll: true });
  }

  function render() {
    running?.abort();
    if (!request.source) {
      return put(root, chooser, welcome({ pick: () => chooser.click() }));
    }
    const list = answerList({ explain, findSimilar: (id) => go(linkTo({ ...request, source: { id }, box: null })) });
    const head = h("div", {});
    const answers = h("section", { class: "answers", "aria-label": "Answers" }, head, list.element);
    put(root, chooser, h("div", { class: "search" }, askPanel(head, list), answers));
    const kept = remembered();
    if (kept?.link === linkTo(request) && kept.request.source.file === request.source.file) {
      return showAnswer(head, list, kept.answer);
    }
    run(head, list);
  }

  function askPanel(head, list) {
    const again = (change) => {
      request = { ...request, ...change };
      rename(linkTo(request));
      run(head, list);
    };
    const source = request.source;
    const editor = boxEditor({
      src: source.shown ?? (source.opaque ? null : source.url),
      name: source.name,
      box: request.box,
      changed: (box) => again({ box }),
      loaded: (size) => {
        source.size = size;
      },
    });
    if (source.id !== undefined) {
      get("/api/image", { id: source.id, collection: collectionName() }).then(
        (record) => {
          source.size = record.size;
          editor.setSize(record.size);
        },
        () => {},
      );
    }
    source.editor = editor;
    const count = h(
      "select",
      { "aria-label": "Number of answers", on: { change: () => again({ k: Number(count.value) }) } },
      ...COUNTS.map((k) => h("option", { value: k, selected: k === request.k }, `${k} answers`)),
    );
    return h(
      "section",
      { class: "ask", "aria-label": "Query" },
      h(
        "div",
        { class: "row between" },
        h("h1", {}, "Looking for"),
        button([icon("image"), "Other image"], () => chooser.click(), { class: "tool plain", data: { pick: "" } }),
      ),
      h("p", { class: "small quiet breaks" }, source.name),
      editor.element,
      h("div", { class: "row ask-tools" }, filterBar(request, again), count),
    );
  }

  async function run(head, list) {
    running?.abort();
    const mine = (running = new AbortController());
    const asked = request;
    list.wait();
    put(head, statusLine("Searching the collection…"));
    announce("Searching");
    try {
      for await (const event of postForLines(
        "/api/search/stages",
        form({ ...fieldsOf(asked), thumbnail: asked.source.opaque || null }),
        { signal: mine.signal },
      )) {
        if (event.event === "error") {
          throw event.error;
        }
        if (event.event === "query") {
          showQuery(asked.source, event);
        }
        if (event.event === "shortlist") {
          put(head, statusLine("Verifying the shortlist…"));
          list.show(withoutItself(event, asked), false);
        }
        if (event.event === "answer") {
          const answer = withoutItself(event, asked);
          remember(asked, answer);
          showAnswer(head, list, answer);
        }
      }
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) {
        return;
      }
      put(
        head,
        problem(error, () => run(head, list)),
      );
      list.clear();
    } finally {
      if (running === mine) {
        running = null;
      }
    }
  }

  // The browser cannot show some formats that the server reads; its own picture of them stands in.
  function showQuery(source, { size, thumbnail }) {
    if (source.opaque && thumbnail) {
      source.shown = thumbnail;
      source.editor.setSource(thumbnail);
      source.editor.setSize(size);
    }
    source.size ??= size;
  }

  function showAnswer(head, list, answer) {
    const { likely, unlikely } = list.show(answer, true);
    const words = formatOutcome(answer, likely, request.source.id !== undefined);
    put(head, h("div", { class: "head" }, h("h2", {}, words), exportMenu(request, answer)));
    announce(`${words}. ${unlikely ? formatCount(unlikely, "unlikely candidate") : ""}`);
  }

  function statusLine(words) {
    return h(
      "div",
      { class: "head" },
      h("h2", {}, h("span", { class: "spinner", "aria-hidden": "true" }), words),
      button("Stop", stop, { class: "tool plain" }),
    );
  }

  function stop() {
    running?.abort();
    running = null;
    const [head, list] = root.querySelector(".answers").children;
    put(
      head,
      h("div", { class: "head" }, h("h2", {}, "Stopped"), button("Search again", render, { class: "tool main" })),
    );
    put(list);
    announce("Search stopped");
  }

  function explain(answer, rank) {
    openWhy({ request, answer, rank, findSimilar: (id) => go(linkTo({ ...request, source: { id }, box: null })) });
  }
}

function formatOutcome({ hits, images }, likely, stored) {
  if (!hits.length) {
    return "No image matches the filters";
  }
  if (likely) {
    return `${formatCount(likely, "likely answer")} among ${formatCount(images, "image")}`;
  }
  return stored
    ? `Probably in no other of these ${formatCount(images, "image")}`
    : `Probably not among these ${formatCount(images, "image")}`;
}
