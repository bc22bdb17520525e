(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const panel = one("[data-panel]"), canvas = one(".canvas");

  /* What is pointed at says so below its picture. */
  for (const figure of all("figure")) {
    const caption = one("[data-tips]", figure);
    const show = event => {
      const of = event.target.closest("[data-tip]");
      if (caption && of) caption.textContent = of.dataset.tip;
    };
    figure.addEventListener("pointerover", show);
    figure.addEventListener("click", show);
  }

  /* The graph: choosing, folding, searching, zooming. */
  const picture = name => one(`[data-picture="${name}"]`);
  const shown = () => one("[data-picture]:not([hidden])");
  const fold = one("[data-fold]");
  const setFolded = folded => {
    if (!fold) return;
    picture("folded").hidden = !folded;
    picture("full").hidden = folded;
    fold.setAttribute("aria-pressed", String(folded));
    fit();
    search();
  };
  const choose = (id, focus) => {
    const template = document.getElementById(id);
    if (!template || !panel) return;
    panel.replaceChildren(template.content.cloneNode(true));
    panel.scrollTop = 0;
    if (id.startsWith("layer-") && !one(`[data-open="${id}"]`, shown())) setFolded(false);
    all(".node.chosen").forEach(node => node.classList.remove("chosen"));
    const same = all(`g[data-open="${id}"]`, shown()), node = same.includes(document.activeElement) ? document.activeElement : same[0];
    if (node) {
      same.forEach(one => one.classList.add("chosen"));
      rove(node, focus);
      if (!focus) toMiddle(node);
    }
  };
  const toMiddle = node => {
    const box = node.getBoundingClientRect(), frame = canvas.getBoundingClientRect();
    canvas.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
    canvas.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
  };
  /* One node can be reached with Tab, the others with arrows. */
  const nodes = () => all("g[data-open]", shown());
  const rove = (node, focus) => {
    all('g[data-open][tabindex="0"]').forEach(other => other.setAttribute("tabindex", "-1"));
    node.setAttribute("tabindex", "0");
    if (focus) node.focus();
  };
  document.addEventListener("click", event => {
    const opener = event.target.closest("[data-open]");
    if (opener && opener.dataset.open) {
      if (opener.tagName === "A") {
        event.preventDefault();
        one("#graph").scrollIntoView();
      }
      choose(opener.dataset.open, opener.tagName !== "A");
    } else if (event.target.closest("[data-unfold]")) setFolded(false);
  });
  if (canvas) {
    canvas.addEventListener("keydown", event => {
      const node = event.target.closest("g[data-open]");
      if (!node) return;
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (step) {
        const list = nodes(), next = list[list.indexOf(node) + step];
        if (next) rove(next, true);
        event.preventDefault();
      } else if (event.key === "Enter" || event.key === " ") {
        choose(node.dataset.open, true);
        event.preventDefault();
      }
    });
  }
  if (fold) fold.addEventListener("click", () => setFolded(fold.getAttribute("aria-pressed") !== "true"));

  const field = one("[data-search]");
  const search = () => {
    if (!field) return [];
    const words = field.value.trim().toLowerCase();
    const found = [];
    for (const node of nodes()) {
      const template = document.getElementById(node.dataset.open);
      const text = (node.getAttribute("aria-label") + " " + (template ? template.content.textContent : "")).toLowerCase();
      const hit = words !== "" && text.includes(words);
      if (hit) found.push(node);
      node.classList.toggle("found", hit);
      node.classList.toggle("lost", words !== "" && !hit);
    }
    one("[data-found]").textContent = words === "" ? "" : `${found.length} found`;
    return found;
  };
  let at = -1;
  if (field) {
    field.addEventListener("input", () => {
      at = -1;
      const found = search();
      if (found.length) toMiddle(found[0]);
    });
    field.addEventListener("keydown", event => {
      if (event.key !== "Enter") return;
      const found = search();
      if (!found.length) return;
      at = (at + 1) % found.length;
      choose(found[at].dataset.open, false);
    });
  }

  let zoom = 1;
  const scale = () => {
    for (const svg of all("svg", canvas)) {
      const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
      svg.setAttribute("width", width * zoom);
      svg.setAttribute("height", height * zoom);
    }
  };
  const fit = () => {
    const svg = one("svg", shown());
    const width = Number(svg.getAttribute("viewBox").split(" ")[2]);
    zoom = Math.max(0.45, Math.min(1, (canvas.clientWidth - 4) / width));
    scale();
  };
  if (canvas) {
    for (const button of all("[data-zoom]")) {
      button.addEventListener("click", () => {
        const way = Number(button.dataset.zoom);
        if (way === 0) return fit();
        zoom = Math.max(0.1, Math.min(4, zoom * (way > 0 ? 1.25 : 0.8)));
        scale();
      });
    }
    fit();
    const first = one("g[data-open]", shown());
    if (first) rove(first, false);
  }

  /* Rows of bars in the order that is asked for. */
  const sort = one("[data-sort]");
  if (sort) {
    sort.addEventListener("change", () => {
      const body = one("[data-bars] tbody"), key = sort.value;
      const rows = [...body.rows].sort((a, b) => (key === "number" ? a.dataset.number - b.dataset.number : b.dataset[key] - a.dataset[key]));
      body.append(...rows);
    });
  }

  /* The timeline wider or narrower, and the trace as a file. */
  const line = one("[data-timeline] svg");
  if (line) {
    let width = 1;
    const stretch = () => {
      line.setAttribute("preserveAspectRatio", "none");
      line.style.height = `${line.getBoundingClientRect().height}px`;
      line.style.width = `${100 * width}%`;
    };
    for (const button of all("[data-stretch]")) {
      button.addEventListener("click", () => {
        const factor = Number(button.dataset.stretch);
        width = factor === 0 ? 1 : Math.max(1, Math.min(32, width * factor));
        stretch();
      });
    }
  }
  const save = one("[data-save]");
  if (save) {
    const trace = JSON.parse(one("#runs").textContent)[0].trace;
    if (!trace) {
      save.disabled = true;
      save.textContent = "The trace is too large for this page: uaccel run --trace FILE";
    }
    save.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(trace)], { type: "application/json" }));
      link.download = "trace.json";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
})();
