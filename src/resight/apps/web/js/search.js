// The search: a query with its box and filters on one side, the answers on the other.

import { form, get, postForLines } from "./api.js";
import { answerList } from "./answers.js";
import { boxEditor } from "./box_editor.js";
import { button, h, icon, put } from "./dom.js";
import { receiveFiles } from "./dropping.js";
import { exportMenu } from "./export.js";
import { filterBar } from "./filters.js";
import { announce, note, problem } from "./notes.js";
import { fieldsOf, fromFile, linkTo, readQuestion, remember, remembered, withoutItself } from "./question.js";
import { go, rename } from "./router.js";
import { collectionName } from "./session.js";
import { watch } from "./watchers.js";
import { welcome } from "./welcome.js";
import { openWhy } from "./why.js";
import { sayCount } from "./wording.js";

export const title = "Search";
const COUNTS = [10, 20, 50, 100];

export async function show(root, route) {
  let question = readQuestion(route.params);
  let running = null; // what stops the search that runs
  const chooser = h("input", {
    type: "file",
    accept: "image/*,.tif,.tiff",
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
      question = readQuestion(next.params);
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
      note("One image at a time: the first was taken");
    }
    chooser.value = "";
    question = { ...question, source: fromFile(files[0]), box: null };
    history.pushState(null, "", linkTo(question));
    render();
    focusAnswers();
  }

  // From here the arrow keys reach the answers.
  function focusAnswers() {
    root.querySelector(".answer-list")?.focus({ preventScroll: true });
  }

  function render() {
    running?.abort();
    if (!question.source) {
      return put(root, chooser, welcome({ pick: () => chooser.click() }));
    }
    const list = answerList({ explain, findSimilar: (id) => go(linkTo({ ...question, source: { id }, box: null })) });
    const head = h("div", {});
    const answers = h("section", { class: "answers", "aria-label": "Answers" }, head, list.element);
    put(root, chooser, h("div", { class: "search" }, askPanel(head, list), answers));
    const kept = remembered();
    if (kept?.link === linkTo(question) && kept.question.source.file === question.source.file) {
      return showAnswer(head, list, kept.answer);
    }
    run(head, list);
  }

  function askPanel(head, list) {
    const again = (change) => {
      question = { ...question, ...change };
      rename(linkTo(question));
      run(head, list);
    };
    const source = question.source;
    const editor = boxEditor({
      src: source.shown ?? (source.opaque ? null : source.url),
      name: source.name,
      box: question.box,
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
      { "aria-label": "How many answers", on: { change: () => again({ k: Number(count.value) }) } },
      ...COUNTS.map((k) => h("option", { value: k, selected: k === question.k }, `${k} answers`)),
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
      h("div", { class: "row ask-tools" }, filterBar(question, again), count),
    );
  }

  async function run(head, list) {
    running?.abort();
    const mine = (running = new AbortController());
    const asked = question;
    list.wait();
    put(head, statusLine("Looking through the collection…"));
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
          put(head, statusLine("Not verified yet: looking closer…"));
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
    const words = sayOutcome(answer, likely, question.source.id !== undefined);
    put(head, h("div", { class: "head" }, h("h2", {}, words), exportMenu(question, answer)));
    announce(`${words}. ${unlikely ? sayCount(unlikely, "unlikely candidate") : ""}`);
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

  function explain(answer, place) {
    openWhy({ question, answer, place, findSimilar: (id) => go(linkTo({ ...question, source: { id }, box: null })) });
  }
}

function sayOutcome({ hits, images }, likely, stored) {
  if (!hits.length) {
    return "No image passes the filters";
  }
  if (likely) {
    return `${sayCount(likely, "likely answer")} among ${sayCount(images, "image")}`;
  }
  return stored
    ? `Probably in no other of these ${sayCount(images, "image")}`
    : `Probably not among these ${sayCount(images, "image")}`;
}
