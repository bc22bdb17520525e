/* A page that is opened from disk may not start workers: there they run in a frame that is not shown. The search of the
 * site asks whether `IFrameWorker` is there, and then finds its files from its own address. */
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      this.waiting = [];
      this.inside = inside;
      this.tell = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      inside.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: source, onload: loaded, onerror: failed });
          inside.document.body.append(script);
        });
      inside.importScripts = (...sources) => sources.reduce((last, one) => last.then(() => load(one)), Promise.resolve());
      load(new URL(address, document.baseURI).href).then(() => {
        this.ready = true;
        this.waiting.forEach(this.tell);
      });
    }
    postMessage(data) {
      if (this.ready) this.tell(data);
      else this.waiting.push(data);
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
