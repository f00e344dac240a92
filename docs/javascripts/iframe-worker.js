// Browsers refuse workers to pages that are opened from files. There, this stand-in runs the script of a worker in a
// hidden frame, so that the search of the guide works without a server and without a network.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(inside, each)));
      this.inside = inside;
      this.ready = this.load(inside, url);
    }

    load(inside, url) {
      return new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, document.baseURI).href;
        script.onload = resolve;
        script.onerror = reject;
        inside.document.head.appendChild(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
