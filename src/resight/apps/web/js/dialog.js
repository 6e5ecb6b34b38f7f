// Dialogs: modal, so the browser keeps focus inside, closes on Escape and gives focus back afterwards.

import { button, h, iconButton } from "./dom.js";

// Opens a dialog of a title and a body; gives back the element. `closed` runs after it has gone.
export function openDialog(title, body, { closed = () => {}, properties = {} } = {}) {
  const name = `dialog-${Math.random().toString(36).slice(2)}`;
  const before = document.activeElement;
  const dialog = h(
    "dialog",
    { "aria-labelledby": name, ...properties },
    h(
      "div",
      { class: "dialog-head" },
      h("h2", { id: name }, title),
      iconButton("close", "Close", () => dialog.close()),
    ),
    h("div", { class: "dialog-body" }, body),
  );
  return openModal(dialog, before, closed);
}

// Shows a made dialog; a click beside it closes it, and it leaves the document when closed.
export function openModal(dialog, before, closed) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) {
      dialog.close();
    }
  });
  dialog.addEventListener("close", () => {
    // later than the closing itself: by now the reader may have gone elsewhere
    dialog.remove();
    if (before?.isConnected && document.activeElement === document.body) {
      before.focus({ preventScroll: true });
    }
    closed();
  });
  dialog.append(h("div", { class: "unseen", role: "status", "aria-live": "polite", data: { live: "" } }));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// Asks before something that cannot be undone; true when it may be done.
export function confirm(title, words, deed) {
  return new Promise((resolve) => {
    let answer = false;
    const yes = button(
      deed,
      () => {
        answer = true;
        dialog.close();
      },
      { class: "tool bad" },
    );
    const no = button("Cancel", () => dialog.close(), { class: "tool", autofocus: true });
    const dialog = openDialog(title, [h("p", {}, words), h("div", { class: "dialog-foot" }, no, yes)], {
      closed: () => resolve(answer),
    });
  });
}
