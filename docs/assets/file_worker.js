// Search from a disk: browsers start no worker for file: addresses, so the worker's script runs in a hidden frame there.
// It stands in for the script that the theme would load from a server.
if (location.protocol === "file:") {
  window.Worker = class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><body>");
      inside.document.close();
      inside.postMessage = (data) => setTimeout(() => this.receive(data));
      inside.importScripts = async (...addresses) => {
        for (const each of addresses) await this.load(each);
      };
      this.ready = this.load(address);
    }

    load(address) {
      const inside = this.frame.contentWindow.document;
      return new Promise((resolve, reject) => {
        const script = inside.createElement("script");
        script.src = new URL(address, location.href).href;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`cannot load ${address}`));
        inside.body.append(script);
      });
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    async postMessage(data) {
      await this.ready;
      const inside = this.frame.contentWindow;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
