// Starts the page: who may see it, the shell around the views, then the view that the address names.

import { h, iconButton, put } from "./dom.js";
import { acceptDrops } from "./drop_zone.js";
import { announce, problem, watchServer } from "./notifications.js";
import { go, link, parseHash, start } from "./router.js";
import * as session from "./session.js";
import { listenForKeys, showShortcuts } from "./shortcuts.js";
import { askForKey } from "./sign_in.js";
import { restoreTheme, turnTheme } from "./theme.js";
import { watch } from "./events.js";
import { formatCount } from "./format.js";

const main = document.getElementById("main");
let shown = { view: null, handle: null };

restoreTheme();
watchServer();
watch("collection", showCollection);
watch("signed-out", () => location.reload());
begin();

async function begin() {
  try {
    const known = await session.load();
    if (known.needsKey && !known.signedIn) {
      return askForKey(main, begin);
    }
    showCollection();
    listenForKeys();
    acceptDrops();
    await start(showView);
  } catch (error) {
    put(main, problem(error, begin));
  }
}

async function showView(route, module) {
  session.choose(route.params.get("collection"));
  if (shown.view === route.view && shown.handle?.update) {
    return shown.handle.update(route);
  }
  shown.handle?.close?.();
  const first = shown.view === null;
  const root = h("div", { class: `view view-${route.view}` });
  shown = { view: route.view, handle: null };
  put(main, root);
  markNavigation(route.view);
  document.title = `${module.title} · resight`;
  if (!first) {
    main.focus({ preventScroll: true });
    announce(module.title);
    scrollTo(0, 0);
  }
  const mine = shown;
  try {
    const handle = await module.show(root, route);
    if (mine === shown) {
      shown.handle = handle ?? null;
    } else {
      handle?.close?.();
    }
  } catch (error) {
    put(
      root,
      problem(error, () => {
        shown = { view: null, handle: null };
        showView(route, module);
      }),
    );
  }
}

function markNavigation(view) {
  for (const anchor of document.querySelectorAll("#nav a")) {
    const here = anchor.getAttribute("href") === `#/${view}`;
    if (here) {
      anchor.setAttribute("aria-current", "page");
    } else {
      anchor.removeAttribute("aria-current");
    }
  }
}

function showCollection() {
  const here = session.collection();
  const { collections, reports, trainings, reviews } = session.known();
  const has = {
    positions: Boolean(here?.positions || here?.craters),
    reports: reports > 0,
    trainings: trainings > 0,
    reviews: reviews > 0,
  };
  for (const anchor of document.querySelectorAll("#nav a[data-needs]")) {
    anchor.hidden = !has[anchor.dataset.needs];
  }
  const choice =
    collections.length > 1
      ? h(
          "select",
          {
            "aria-label": "Collection",
            on: { change: (event) => go(link(parseHash(location.hash).view, [], { collection: event.target.value })) },
          },
          ...collections.map((one) =>
            h(
              "option",
              { value: one.name, selected: one === here },
              `${one.name} · ${one.images.toLocaleString("en-GB")}`,
            ),
          ),
        )
      : here &&
        h(
          "span",
          { class: "collection-name quiet small" },
          h("b", {}, here.name),
          ` ${formatCount(here.images, "image")}`,
        );
  put(
    document.getElementById("top-end"),
    choice,
    iconButton("theme", "Theme: light, dark or system", turnTheme),
    iconButton("help", "Keyboard shortcuts (?)", showShortcuts),
  );
}
