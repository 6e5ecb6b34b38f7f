// The sign-in form of a server that requires a key.

import { field, h, icon, put } from "./dom.js";
import { problem } from "./notifications.js";
import { signIn } from "./session.js";

export function askForKey(root, signedIn) {
  const input = h("input", { type: "password", name: "key", autocomplete: "current-password", required: true });
  const failure = h("div", {});
  const send = async (event) => {
    event.preventDefault();
    try {
      await signIn(input.value);
      signedIn();
    } catch (error) {
      put(failure, problem(error));
      input.select();
    }
  };
  put(
    root,
    h(
      "form",
      { class: "panel stack sign-in", on: { submit: send } },
      h("h1", {}, icon("key"), "Sign in"),
      h("p", { class: "quiet" }, "Enter your access key. Ask your administrator if you have none."),
      h("input", { name: "username", autocomplete: "username", value: "resight", hidden: true }), // so that password managers know what the key is for
      field("Key", input),
      failure,
      h("button", { class: "tool main" }, "Sign in"),
    ),
  );
  input.focus();
}
