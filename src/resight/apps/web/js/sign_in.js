// The page of a server that wants a key.

import { field, h, icon, put } from "./dom.js";
import { problem } from "./notes.js";
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
      h("p", { class: "quiet" }, "This server answers to people with a key. Whoever runs it can give you one."),
      h("input", { name: "username", autocomplete: "username", value: "resight", hidden: true }), // so that password managers know what the key is for
      field("Key", input),
      failure,
      h("button", { class: "tool main" }, "Sign in"),
    ),
  );
  input.focus();
}
