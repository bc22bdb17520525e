(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const data = JSON.parse(one("#runs").textContent);
  const figures = new Map(data.figures.map(figure => [figure.name, figure]));
  const valueOf = (number, name) => Object.hasOwn(data.rows[number].figures, name) ? data.rows[number].figures[name] : null;

  /* Numbers as people say them. */
  const grouped = number => Number(number).toLocaleString("en-US", { maximumFractionDigits: 0 });
  const say = (name, value, short = false) => {
    const kind = figures.get(name).kind;
    if (kind === "share") return `${(100 * value).toFixed(1)} %`;
    if (kind === "seconds") return value < 1 ? `${(1000 * value).toPrecision(3)} ms` : `${value.toPrecision(3)} s`;
    if (kind === "ms") return `${value.toPrecision(3)} ms`;
    if (kind === "size" && short) return value >= 10240 ? `${(value / 1024).toLocaleString("en-US", { maximumFractionDigits: 1 })} KiB` : `${grouped(value)} B`;
    if (kind === "size") return `${grouped(value)} B`;
    if (short && value >= 1e6) return `${(value / 1e6).toLocaleString("en-US", { maximumFractionDigits: 2 })} M`;
    return grouped(value);
  };
  const make = (name, attributes, ...inside) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  const cell = (words, name = "") => {
    const made = document.createElement("td");
    made.textContent = words;
    if (name) made.className = name;
    return made;
  };
  const median = values => {
    const order = [...values].sort((a, b) => a - b), middle = order.length >> 1;
    return order.length % 2 ? order[middle] : (order[middle - 1] + order[middle]) / 2;
  };

  /* The map: of several repetitions the one in the middle. */
  const heat = one("[data-heat]");
  const cellValue = (td, name) => {
    const values = td.dataset.rows.split(",").filter(word => word !== "").map(number => valueOf(number, name)).filter(value => value !== null);
    return values.length ? median(values) : null;
  };
  const shareOf = (value, least, most) => {
    if (most <= least) return 0;
    const log = least > 0 && most / least > 4;
    return log ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least);
  };
  const fillCell = (td, name, range) => {
    const numbers = td.dataset.rows.split(",").filter(word => word !== "");
    const bad = numbers.find(number => !data.rows[number].good), value = cellValue(td, name);
    td.className = "";
    td.style.removeProperty("--share");
    td.replaceChildren();
    if (!numbers.length) {
      td.className = "none";
      td.textContent = "·";
      td.title = "not in the matrix";
    } else if (bad !== undefined) {
      const link = document.createElement("a");
      link.href = `#failure-${bad}`;
      link.textContent = data.rows[bad].status;
      td.className = "bad";
      td.title = data.rows[bad].title;
      td.append(link);
    } else if (value === null) {
      td.className = "none";
      td.textContent = "–";
      td.title = "not known";
    } else {
      const best = figures.get(name).more ? range.most : range.least, words = say(name, value, true);
      td.style.setProperty("--share", shareOf(value, range.least, range.most));
      td.title = `${data.rows[numbers[0]].title}: ${say(name, value)}` + (numbers.length > 1 ? `, the median of ${numbers.length}` : "");
      if (value === best && range.least < range.most) {
        const strong = document.createElement("strong");
        strong.textContent = words;
        td.append(strong);
      } else td.textContent = words;
    }
  };
  const rangeOf = (cells, name) => {
    const good = cells.filter(td => td.dataset.rows.split(",").every(number => number !== "" && data.rows[number].good));
    const values = good.map(td => cellValue(td, name)).filter(value => value !== null);
    return { least: Math.min(...values), most: Math.max(...values), any: values.length > 0 };
  };
  if (heat) {
    const figure = one("[data-figure]"), within = one("[data-within]");
    const draw = () => {
      const whole = rangeOf(all("td", heat), figure.value), each = within.value === "row";
      for (const row of heat.tBodies[0].rows) {
        const cells = all("td", row), range = each ? rangeOf(cells, figure.value) : whole;
        for (const td of cells) fillCell(td, figure.value, range);
      }
      one("[data-least]").textContent = each || !whole.any ? "least" : say(figure.value, whole.least, true);
      one("[data-most]").textContent = each || !whole.any ? "most" : say(figure.value, whole.most, true);
    };
    figure.addEventListener("change", draw);
    within.addEventListener("change", draw);
    draw();
  }

  /* Axes of plots: round numbers, or powers where values are far apart. */
  const WIDTH = 760, HEIGHT = 380, LEFT = 84, RIGHT = 32, TOP = 18, BOTTOM = 48;
  const rounded = rough => {
    const scale = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].find(factor => factor * scale >= rough * 0.999) * scale;
  };
  const axis = (values, from, to) => {
    let least = Math.min(...values), most = Math.max(...values);
    if (least > 0 && most / least > 8) {
      const power = Math.floor(Math.log10(least)), every = [];
      for (let scale = 10 ** power; scale <= 10 * most; scale *= 10) every.push(scale, 2 * scale, 5 * scale);
      const low = Math.max(...every.filter(mark => mark <= least * 1.001)), high = Math.min(...every.filter(mark => mark >= most * 0.999));
      const wide = Math.log10(high / low) > 4, marks = every.filter(mark => mark >= low && mark <= high && (!wide || every.indexOf(mark) % 3 === 0));
      return { at: value => from + (to - from) * Math.log(value / low) / Math.log(high / low), marks };
    }
    const span = most - least || Math.abs(most) || 1, step = rounded(span / 4);
    least = Math.floor((least - span * 0.04) / step) * step;
    if (least < 0 && Math.min(...values) >= 0) least = 0;
    const marks = [];
    for (let mark = least; mark < most + step || marks.length < 2; mark += step) marks.push(Math.abs(mark) < step / 1e6 ? 0 : mark);
    return { at: value => from + (to - from) * (value - least) / (marks[marks.length - 1] - least), marks };
  };
  const frame = (x, y, sayX, sayY, label) => {
    const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, class: "plot", role: "group", "aria-label": label });
    for (const mark of x.marks) {
      svg.append(make("line", { x1: x.at(mark), x2: x.at(mark), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid" }));
      svg.append(make("text", { x: x.at(mark), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, sayX(mark)));
    }
    for (const mark of y.marks) {
      svg.append(make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(mark), y2: y.at(mark), class: "grid" }));
      svg.append(make("text", { x: LEFT - 8, y: y.at(mark) + 4, "text-anchor": "end" }, sayY(mark)));
    }
    return svg;
  };

  /* The design space. */
  const plot = one("[data-plot]");
  let inOrder = [];
  const gainOf = (name, value) => figures.get(name).more ? value : -value;
  const onFront = (points, across, up) => points.filter(point => !points.some(other => {
    const x = gainOf(across, other.x) - gainOf(across, point.x), y = gainOf(up, other.y) - gainOf(up, point.y);
    return x >= 0 && y >= 0 && (x > 0 || y > 0);
  }));
  const numbersOf = point => Object.values(point.row.stands_for).join(" × ");
  const pointsOf = (group, across, up) => group.split(",")
    .map(number => ({ row: data.rows[number], x: valueOf(number, across), y: valueOf(number, up) }))
    .filter(point => point.row.good && point.x !== null && point.y !== null);
  const tell = (point, across, up) => {
    const numbers = Object.entries(point.row.stands_for).map(([name, value]) => `${name} ${value}`).join(", ");
    return `${numbers}: ${figures.get(across).label} ${say(across, point.x)}, ${figures.get(up).label} ${say(up, point.y)}${point.front ? "; on the front" : ""}`;
  };
  const tabulate = (points, across, up) => {
    const table = one("[data-points]"), names = [...new Set(points.flatMap(point => Object.keys(point.row.stands_for)))];
    const head = document.createElement("tr");
    for (const title of [...names, figures.get(across).label, figures.get(up).label, "Front"]) {
      const th = document.createElement("th");
      th.textContent = title;
      th.scope = "col";
      if (title !== "Front") th.className = "n";
      head.append(th);
    }
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...points.map(point => {
      const row = document.createElement("tr");
      row.className = point.front ? "front" : "";
      row.append(...names.map(name => cell(point.row.stands_for[name] ?? "", "n")), cell(say(across, point.x), "n"), cell(say(up, point.y), "n"), cell(point.front ? "yes" : ""));
      return row;
    }));
  };
  /* Beside a dot, where nothing is in the way. */
  const freePlace = (cx, cy, length, others) => {
    const boxes = [];
    for (const top of [cy - 8, cy - 18, cy + 2]) {
      for (const left of [cx + 9, cx - 9 - length]) boxes.push({ left, right: left + length, top, bottom: top + 15 });
    }
    const inside = box => box.left > LEFT && box.right < WIDTH && box.top > 0 && box.bottom < HEIGHT - BOTTOM;
    const apart = (box, other) => box.right < other.left || other.right < box.left || box.bottom < other.top || other.bottom < box.top;
    return boxes.find(box => inside(box) && others.every(other => apart(box, other)));
  };
  const drawSpace = (group, across, up) => {
    const points = pointsOf(group, across, up);
    for (const point of onFront(points, across, up)) point.front = true;
    points.sort((a, b) => a.x - b.x || a.y - b.y);
    tabulate(points, across, up);
    if (!points.length) {
      plot.textContent = "No point of these has both figures.";
      return;
    }
    const x = axis(points.map(point => point.x), LEFT, WIDTH - RIGHT), y = axis(points.map(point => point.y), HEIGHT - BOTTOM, TOP);
    const svg = frame(x, y, value => say(across, value, true), value => say(up, value, true), `${points.length} points by ${figures.get(across).label} and ${figures.get(up).label}`);
    svg.append(make("text", { x: WIDTH - RIGHT, y: HEIGHT - 10, "text-anchor": "end", class: "unit" }, `${figures.get(across).label} (${figures.get(across).more ? "more" : "less"} is better)`));
    svg.append(make("text", { x: -TOP, y: 13, transform: "rotate(-90)", "text-anchor": "end", class: "unit" }, `${figures.get(up).label} (${figures.get(up).more ? "more" : "less"} is better)`));
    const front = points.filter(point => point.front);
    svg.append(make("polyline", { points: front.map(point => `${x.at(point.x)},${y.at(point.y)}`).join(" "), class: "steps" }));
    const dots = points.map(point => ({ of: point, left: x.at(point.x) - 7, right: x.at(point.x) + 7, top: y.at(point.y) - 7, bottom: y.at(point.y) + 7 })), placed = [];
    for (const point of [...front, ...points.filter(point => !point.front)]) {
      const cx = x.at(point.x), cy = y.at(point.y), dot = make("circle", { cx, cy, r: point.front ? 6.5 : 5 });
      const group = make("g", { class: point.front ? "point front" : "point", role: "img", tabindex: "-1", "aria-label": tell(point, across, up) }, dot);
      const words = numbersOf(point), box = freePlace(cx, cy, 6.6 * words.length, [...placed, ...dots.filter(dot => dot.of !== point)]);
      if (box && (point.front || points.length <= 24)) {
        placed.push(box);
        group.append(make("text", { x: box.left, y: box.bottom - 3 }, words));
      }
      point.group = group;
    }
    svg.append(...points.filter(point => !point.front).map(point => point.group), ...front.map(point => point.group));
    plot.replaceChildren(svg);
    points[0].group.setAttribute("tabindex", "0");
    inOrder = points.map(point => point.group);
  };
  if (plot) {
    const menus = ["[data-group]", "[data-across]", "[data-up]"].map(selector => one(selector)), told = one("[data-told]");
    const draw = () => drawSpace(...menus.map(menu => menu.value));
    for (const menu of menus) menu.addEventListener("change", draw);
    draw();
    const choose = (group, focus) => {
      all(".point", plot).forEach(other => { other.setAttribute("tabindex", other === group ? "0" : "-1"); other.classList.toggle("chosen", other === group); });
      told.textContent = group.getAttribute("aria-label");
      if (focus) group.focus();
    };
    for (const kind of ["pointerover", "click", "focusin"]) {
      plot.addEventListener(kind, event => {
        const group = event.target.closest(".point");
        if (group) choose(group, kind === "click");
      });
    }
    plot.addEventListener("keydown", event => {
      const group = event.target.closest(".point"), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!group || !step) return;
      const next = inOrder[inOrder.indexOf(group) + step];
      if (next) choose(next, true);
      event.preventDefault();
    });
  }

  /* The history. */
  const lines = one("[data-lines]");
  const COLOURS = 8;
  const past = name => Object.entries(data.history).map(([title, figuresOf]) => {
    const values = figuresOf.map(known => known && Object.hasOwn(known, name) ? known[name] : null);
    const seen = values.filter(value => value !== null), first = seen[0], last = seen[seen.length - 1];
    return { title, values, first, change: seen.length > 1 && first ? last / first - 1 : null };
  }).filter(row => row.first !== undefined).sort((a, b) => Math.abs(b.change || 0) - Math.abs(a.change || 0));
  const percent = share => `${share > 0 ? "+" : ""}${(100 * share).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;
  const drawPast = name => {
    const rows = past(name), moved = rows.filter(row => row.change), more = figures.get(name).more;
    const shown = rows.filter(row => new Set(row.values).size > 1);
    one("[data-changed]").textContent = `${moved.length} of ${rows.length} rows changed; those that are alike in all sweeps are left away`;
    one("[data-changes]").hidden = !shown.length;
    one("[data-changes]").tBodies[0].replaceChildren(...shown.map((row, i) => {
      const line = document.createElement("tr"), titled = cell(row.title), worse = more ? row.change < 0 : row.change > 0;
      if (row.change && i < COLOURS) {
        const key = document.createElement("span");
        key.className = `key e${i}`;
        titled.prepend(key);
      }
      const change = row.change === null ? cell("", "n") : row.change ? cell(percent(row.change), worse ? "n worse" : "n better") : cell("alike", "n");
      line.append(titled, ...row.values.map(value => cell(value === null ? "–" : say(name, value), "n")), change);
      return line;
    }));
    if (!moved.length) {
      lines.replaceChildren();
      return;
    }
    const shares = row => row.values.map(value => value === null || !row.first ? null : value / row.first - 1);
    const every = rows.flatMap(shares).filter(share => share !== null), count = data.sweeps.length;
    const x = { at: i => LEFT + (WIDTH - LEFT - RIGHT - 20) * i / (count - 1) + 10, marks: data.sweeps.map((_, i) => i) };
    if (count > 8) x.marks = x.marks.filter(i => i % Math.ceil(count / 8) === 0 || i === count - 1);
    const y = axis([...every, 0.001, -0.001], HEIGHT - BOTTOM, TOP);
    const shorten = text => text.length > 14 ? `${text.slice(0, 6)}…${text.slice(-7)}` : text;
    const svg = frame(x, y, i => shorten(data.sweeps[i]), percent, `${figures.get(name).label} of ${rows.length} rows over ${count} sweeps`);
    svg.append(make("text", { x: -TOP, y: 13, transform: "rotate(-90)", "text-anchor": "end", class: "unit" }, "against the first"));
    [...rows.entries()].reverse().forEach(([i, row]) => {
      const points = shares(row).map((share, at) => share === null ? null : [x.at(at), y.at(share)]).filter(Boolean);
      const coloured = row.change && i < COLOURS;
      svg.append(make("polyline", { points: points.map(point => point.join(",")).join(" "), class: coloured ? `series e${i}` : "series quiet" }, make("title", {}, row.title)));
      if (coloured) points.forEach(([cx, cy]) => svg.append(make("circle", { cx, cy, r: 3.5, class: `spot e${i}` })));
    });
    lines.replaceChildren(svg);
  };
  if (lines) {
    const menu = one("[data-past]");
    const changes = name => past(name).filter(row => row.change).length;
    const first = data.figures.find(figure => changes(figure.name));
    if (first && [...menu.options].some(option => option.value === first.name)) menu.value = first.name;
    menu.addEventListener("change", () => drawPast(menu.value));
    drawPast(menu.value);
  }

  /* The table of all rows. */
  for (const td of all("[data-all] td[data-name]")) td.textContent = td.dataset.value === "" ? "–" : say(td.dataset.name, Number(td.dataset.value));
  const keyOf = td => td.dataset.value === undefined ? td.textContent : td.dataset.value === "" ? null : isNaN(td.dataset.value) ? td.dataset.value : Number(td.dataset.value);
  for (const button of all("[data-all] th button")) {
    button.addEventListener("click", () => {
      const th = button.parentElement, table = th.closest("table"), at = th.cellIndex, down = th.getAttribute("aria-sort") === "ascending";
      all("th", table).forEach(other => other.setAttribute("aria-sort", "none"));
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (a, b) => {
        const [one, two] = [keyOf(a.cells[at]), keyOf(b.cells[at])];
        if (one === null || two === null) return (one === null) - (two === null);
        const found = typeof one === "number" && typeof two === "number" ? one - two : String(one).localeCompare(String(two), "en", { numeric: true });
        return down ? -found : found;
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    });
  }
})();
