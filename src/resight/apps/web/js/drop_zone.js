// Images dropped or pasted anywhere on the page go to the current view.

import { h, icon } from "./dom.js";

let receiver = null; // { words, take(files) }

// The view that takes files from now on; null when none does.
export function receiveFiles(words, take) {
  receiver = take && { words, take };
}

export function acceptDrops() {
  const sign = h("div", { class: "dropping", hidden: true }, icon("drop"), h("span", {}));
  document.body.append(sign);
  let depth = 0; // enter and leave come for every element that is passed
  const show = (shown) => {
    sign.hidden = !shown;
    if (shown) {
      sign.lastChild.textContent = receiver.words;
    } else {
      depth = 0;
    }
  };
  const carries = (event) =>
    receiver && [...(event.dataTransfer?.types ?? [])].includes("Files") && !document.querySelector("dialog[open]");
  document.addEventListener("dragenter", (event) => {
    if (carries(event)) {
      event.preventDefault();
      depth += 1;
      show(true);
    }
  });
  document.addEventListener("dragleave", (event) => {
    if (carries(event)) {
      depth -= 1;
      if (depth <= 0) {
        show(false);
      }
    }
  });
  document.addEventListener("dragover", (event) => {
    if (carries(event)) {
      event.preventDefault();
    }
  });
  document.addEventListener("drop", (event) => {
    if (!carries(event)) {
      return;
    }
    event.preventDefault();
    show(false);
    take([...event.dataTransfer.files]);
  });
  document.addEventListener("paste", (event) => take([...(event.clipboardData?.files ?? [])]));
}

function take(files) {
  if (receiver && files.length) {
    receiver.take(files);
  }
}
