// Lets search work where the pages are opened from a folder: browsers start no Worker from a file, so its script runs
// in a hidden frame instead, which passes messages on.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = this.onerror = null;
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = (this.inside = frame.contentWindow);
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => this.load(source)), Promise.resolve());
      this.addEventListener("message", (event) => this.onmessage?.(event));
      this.load(address).then(() => {
        this.isReady = true;
        this.waiting.splice(0).forEach((data) => this.deliver(data));
      });
    }

    load(source) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        script.src = String(source);
        script.onload = done;
        script.onerror = failed;
        this.inside.document.body.append(script);
      });
    }

    deliver(data) {
      const event = new this.inside.MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
    }

    postMessage(data) {
      if (this.isReady) this.deliver(data);
      else this.waiting.push(data);
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
