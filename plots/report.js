// The report's own script: two linked plots and a table over the designs in the element #designs.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("designs").textContent);
  const designs = data.designs;
  const byId = new Map(designs.map((design, index) => [design.design, index]));
  const pareto = document.getElementById("pareto");
  const heat = document.getElementById("heat");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 900px)");
  let chosen = -1;

  const element = (id) => document.getElementById(id);
  const mean = (design, key) => (design.metrics && design.metrics[key] ? design.metrics[key][0] : null);
  const spread = (design, key) => (design.metrics && design.metrics[key] ? design.metrics[key][1] : null);

  function numberText(value, digits = 4) {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value) < 1e-12) return "0";
    if (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7) return value.toExponential(digits - 1);
    return value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
  }
  // The mean to the last digit of its half width, of which there are two; nothing for one that is rounding.
  function estimateText(design, key) {
    const value = mean(design, key), half = spread(design, key);
    if (value === null || half === null || half < 1e-9 * Math.abs(value)) return numberText(value);
    const places = 1 - Math.floor(Math.log10(half));
    if (places < 0 || places > 8 || Math.abs(value) >= 1e7) return numberText(value) + " ± " + numberText(half, 2);
    return value.toFixed(places) + " ± " + half.toFixed(places);
  }
  // Plotly reads a little HTML in its texts: what stands in files must not become any.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // ---- the frontier -------------------------------------------------------------------------------------------------

  const theme = () => dark.matches ? { text: "#e8e6e3", grid: "#34383d" } : { text: "#1b1b1b", grid: "#e5e5e5" };
  const colourOf = (look) => look.colour === "#000000" ? theme().text : look.colour;

  function layout(more) {
    const axis = { gridcolor: theme().grid, zeroline: false, automargin: true, linecolor: theme().text,
                   ticks: "outside", tickcolor: theme().text };
    // On a phone a finger scrolls the page; elsewhere dragging zooms.
    return { ...more, dragmode: narrow.matches ? false : "zoom", hovermode: "closest",
             paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
             font: { color: theme().text, family: "system-ui, DejaVu Sans, sans-serif",
                     size: narrow.matches ? 11 : 12 },
             margin: { l: 60, r: 12, t: 8, b: 48 },
             xaxis: { ...axis, ...more.xaxis }, yaxis: { ...axis, ...more.yaxis } };
  }

  // 1, 2 and 5 of every decade, only its 1 where there are many.
  function logTicks(low, high) {
    const tickvals = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const digit of high / low > 3000 ? [1] : [1, 2, 5]) tickvals.push(Number(digit + "e" + power));
    }
    return { tickvals, ticktext: tickvals.map((tick) => tick.toLocaleString("en", { maximumSignificantDigits: 3 })) };
  }

  // Lines of at most so many letters; what stands in brackets at the end moves to a line of its own first.
  function wrapped(text, most) {
    if (text.length <= most) return [text];
    const bracket = text.lastIndexOf(" (");
    if (bracket > 0) return [...wrapped(text.slice(0, bracket), most), text.slice(bracket + 1)];
    const lines = [""];
    for (const word of text.split(" ")) {
      const line = lines[lines.length - 1];
      if (line && line.length + word.length + 1 > most) lines.push(word);
      else lines[lines.length - 1] = line ? line + " " + word : word;
    }
    return lines;
  }

  function hover(design) {
    const lines = ["<b>" + plain(design.label || design.family) + "</b>  " + plain(design.family),
                   ...data.hovered.filter((path) => path in design.values).map((path) => plain(path + " = "
                     + (typeof design.values[path] === "object" ? JSON.stringify(design.values[path])
                       : design.values[path]))), ""];
    for (const key of data.shown) {
      if (mean(design, key) !== null) lines.push(plain(data.titles[key]) + ": " + estimateText(design, key));
    }
    lines.push(data.words[design.membership] + ", " + design.replications + " replications");
    if (design.ties) lines.push(design.ties[0] + " designs at this point: " + plain(design.ties[1]));
    if (design.refined) lines.push("added by the sweep between designs of its axes");
    return lines.join("<br>");
  }

  function paretoTraces() {
    const [x, y] = data.axes.map((one) => one.metric);
    const traces = data.staircases.map((stairs) => ({
      type: "scatter", mode: "lines", x: stairs.x, y: stairs.y, hoverinfo: "skip", showlegend: false,
      line: stairs.family === null ? { color: theme().text, width: 2 }
        : { color: colourOf(data.looks[stairs.family]), width: 1.2, dash: data.looks[stairs.family].dash } }));
    data.families.forEach((family, index) => {
      const look = data.looks[index];
      for (const membership of ["out", "undecided", "in"]) {
        const own = designs.map((design, i) => i).filter((i) => designs[i].family === family &&
          designs[i].membership === membership && mean(designs[i], x) !== null && mean(designs[i], y) !== null);
        if (own.length === 0) continue;
        const bars = (key) => ({ type: "data", array: own.map((i) => spread(designs[i], key) || 0), thickness: 1.2,
                                 width: 0, color: colourOf(look) });
        traces.push({ type: "scatter", mode: "markers", name: family + ", " + data.words[membership],
          x: own.map((i) => mean(designs[i], x)), y: own.map((i) => mean(designs[i], y)), customdata: own,
          error_x: bars(x), error_y: bars(y), opacity: membership !== "out" ? 1 : dark.matches ? 0.5 : 0.35,
          text: own.map((i) => hover(designs[i])), hovertemplate: "%{text}<extra></extra>",
          marker: { color: colourOf(look), symbol: look.symbol + (membership === "undecided" ? "-open" : ""),
                    size: membership === "out" ? 8 : 11, line: { width: membership === "undecided" ? 2 : 0 } } });
      }
    });
    traces.push({ type: "scatter", mode: "markers", x: [], y: [], hoverinfo: "skip", showlegend: false,
                  marker: { size: 20, symbol: "circle-open", color: theme().text,
                            line: { width: 2.5, color: theme().text } } });
    return traces;
  }

  function drawPareto() {
    const axis = (k) => {
      const { title, log, range, ends } = data.axes[k];
      const room = (k === 0 ? pareto.clientWidth - 80 : pareto.clientHeight - 130) / 6.4;  // in letters
      const one = { title: { text: wrapped(title, room).map(plain).join("<br>"), standoff: 8,
                             font: { size: narrow.matches ? 11 : 12 } }, type: log ? "log" : "linear", range };
      return log ? { ...one, ...logTicks(...ends) } : one;
    };
    const better = { text: "better", showarrow: true, xref: "paper", yref: "paper", ax: data.better[0] * -38,
                     ay: data.better[1] * 30, x: data.better[0] < 0 ? 0.01 : 0.99, y: data.better[1] < 0 ? 0.02 : 0.98,
                     arrowhead: 2, arrowcolor: theme().text, font: { color: theme().text } };
    return Plotly.react(pareto, paretoTraces(), layout({ xaxis: axis(0), yaxis: axis(1), annotations: [better],
      showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 } }),
      { responsive: true, displayModeBar: false });
  }

  // ---- the heat map -------------------------------------------------------------------------------------------------

  function cellsOf(family, metric) {
    const cells = new Map();
    designs.forEach((design, i) => {
      if (design.family !== family || design.cell === null) return;
      const key = design.cell.join("|");
      const other = cells.get(key);
      const value = mean(design, metric);
      const better = (a, b) => data.heat.maximize.includes(metric) ? a > b : a < b;
      const kinds = [design.membership, other && other.frontier];
      const frontier = ["in", "undecided"].find((kind) => kinds.includes(kind));
      if (other === undefined || (value !== null && (other.value === null || better(value, other.value)))) {
        cells.set(key, { value, index: i, failed: value === null && design.error !== undefined, frontier });
      } else {
        other.frontier = frontier;
      }
    });
    return cells;
  }

  function drawHeat() {
    if (data.heat === null) return Promise.resolve();
    const metric = element("metric").value;
    const cells = cellsOf(element("family").value, metric);
    const lines = data.heat.lines.map((name, j) => j)
      .filter((j) => data.heat.columns.some((_, i) => cells.has(i + "|" + j)));
    const at = (i, j) => cells.get(i + "|" + j);
    const table = (value) => lines.map((j) => data.heat.columns.map((_, i) => value(at(i, j))));
    const values = [...cells.values()].map((cell) => cell.value).filter((value) => value !== null);
    const log = values.length > 0 && Math.min(...values) > 0 && Math.max(...values) > 20 * Math.min(...values);
    const scaled = (value) => value === null ? null : log ? Math.log10(value) : value;
    const trace = { type: "heatmap", colorscale: "Cividis", xgap: 1, ygap: 1, hoverongaps: false,
      x: data.heat.columns.map((_, i) => i), y: lines.map((_, j) => j),
      z: table((cell) => cell ? scaled(cell.value) : null), customdata: table((cell) => cell ? cell.index : -1),
      text: table((cell) => cell && cell.value !== null ? hover(designs[cell.index]) : ""),
      hovertemplate: "%{text}<extra></extra>", colorbar: { thickness: 12, outlinewidth: 0 } };
    if (log) {
      const { tickvals, ticktext } = logTicks(Math.min(...values), Math.max(...values));
      Object.assign(trace.colorbar, { tickvals: tickvals.map(Math.log10), ticktext });
    }
    const annotations = [];
    const few = lines.length * data.heat.columns.length <= (narrow.matches ? 40 : 100);
    const middle = values.length ? (scaled(Math.min(...values)) + scaled(Math.max(...values))) / 2 : 0;
    lines.forEach((j, row) => data.heat.columns.forEach((_, i) => {
      const cell = at(i, j);
      if (cell && cell.value === null) {
        annotations.push({ x: i, y: row, text: cell.failed ? "failed" : "–", showarrow: false,
                           font: { color: theme().text, size: 11 } });
      } else if (cell && few) {
        annotations.push({ x: i, y: row, text: numberText(cell.value, 3), showarrow: false,
                           font: { color: scaled(cell.value) > middle ? "#000000" : "#ffffff", size: 11 } });
      }
    }));
    const place = chosen >= 0 && designs[chosen].family === element("family").value ? designs[chosen].cell : null;
    const row = place === null ? -1 : lines.indexOf(place[1]);
    const frame = (width, color) => ({ type: "rect", x0: place[0] - 0.46, x1: place[0] + 0.46,
                                       y0: row - 0.46, y1: row + 0.46, line: { width, color } });
    // Each twice: seen on dark and on bright cells.
    const outline = (i, j, width, color, dash) => ({ type: "rect", x0: i - 0.42, x1: i + 0.42, y0: j - 0.42,
                                                     y1: j + 0.42, line: { width, color, dash } });
    const shapes = [];
    const kinds = new Set();
    lines.forEach((j, k) => data.heat.columns.forEach((_, i) => {
      const cell = at(i, j);
      if (!cell || !cell.frontier) return;
      kinds.add(cell.frontier);
      shapes.push(outline(i, k, 3, "#000000", "solid"),
                  outline(i, k, 1.4, "#ffffff", cell.frontier === "in" ? "solid" : "4px,3px"));
    }));
    element("outlines").textContent = (kinds.has("in") ? "Outlined: on the frontier. " : "")
      + (kinds.has("undecided") ? "Dashed outline: undecided." : "")
      + (metric.startsWith("noise/") ? " " + data.noise : "");
    if (row >= 0) shapes.push(frame(5, "#000000"), frame(2.5, "#E69F00"));
    const height = Math.min(narrow.matches ? 380 : 470, 110 + 70 * lines.length);
    heat.style.height = height + "px";
    const every = (count, most) => (_, i) => i % Math.ceil(count / most) === 0;
    const ticks = data.heat.columns.map((_, i) => i).filter(every(data.heat.columns.length, narrow.matches ? 8 : 14));
    return Plotly.react(heat, [trace], layout({ annotations, shapes, height,
      xaxis: { title: { text: plain(data.heat.x) }, tickvals: ticks, showgrid: false,
               ticktext: ticks.map((i) => plain(data.heat.columns[i])), range: [-0.5, data.heat.columns.length - 0.5] },
      yaxis: { title: { text: plain(data.heat.y) }, tickvals: lines.map((_, j) => j), showgrid: false,
               ticktext: lines.map((j) => data.heat.lines[j] === "–" ? "none" : plain(data.heat.lines[j])),
               range: [-0.5, lines.length - 0.5] } }),
      { responsive: true, displayModeBar: false });
  }

  // ---- the table ----------------------------------------------------------------------------------------------------

  const standing = {
    title: "Frontier", value: (design) => ["in", "undecided", "out", undefined].indexOf(design.membership),
    text: (design) => design.error !== undefined ? "failed: " + design.error : data.words[design.membership]
      + (design.ties ? ", " + design.ties[0] + " tied" : "") + (design.refined ? ", added by the sweep" : "") };
  const columns = [
    { title: "Family", value: (design) => design.family },
    standing,  // before the numbers, which may reach beyond the window
    ...data.paths.map((path) => ({
      title: path, value: (design) => design.values[path] === undefined ? null : design.values[path] })),
    ...data.shown.map((key) => ({ title: data.titles[key], value: (design) => mean(design, key),
                                  text: (design) => design.error === undefined ? estimateText(design, key) : "" })),
  ];
  for (const column of columns.filter((one) => one !== standing)) {
    column.numeric = designs.every((design) => ["number", "object"].includes(typeof (column.value(design) ?? 0)));
  }
  let sortedBy = null;  // then the frontier stands first, from its one end to the other
  let ascending = true;

  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return ascending ? a - b : b - a;
    const order = String(a).localeCompare(String(b), "en", { numeric: true });
    return ascending ? order : -order;
  }

  function drawTable() {
    const head = element("table").tHead.rows[0];
    if (head.cells.length === 0) {
      columns.forEach((column, k) => {
        const cell = document.createElement("th");
        const button = document.createElement("button");
        button.type = "button";
        for (const part of column.title.split(/(?<=[._])/)) {  // long paths may break there
          button.append(part, document.createElement("wbr"));
        }
        button.addEventListener("click", () => {
          ascending = sortedBy === k ? !ascending : true;
          sortedBy = k;
          drawTable();
        });
        cell.scope = "col";
        cell.append(button);
        head.append(cell);
      });
    }
    [...head.cells].forEach((cell, k) => {
      cell.setAttribute("aria-sort", k !== sortedBy ? "none" : ascending ? "ascending" : "descending");
    });
    const order = designs.map((_, i) => i).filter((i) => {
      const which = element("which").value;
      if (which === "failed") return designs[i].error !== undefined;
      return which === "all" || designs[i].membership === "in" || designs[i].membership === "undecided";
    });
    if (sortedBy === null) {
      const rank = (i) => ["in", "undecided", "out", undefined].indexOf(designs[i].membership);
      const first = (i) => mean(designs[i], data.axes[0].metric) ?? 0;
      order.sort((a, b) => rank(a) - rank(b) || first(a) - first(b) || a - b);
    } else {
      order.sort((a, b) => compare(columns[sortedBy].value(designs[a]), columns[sortedBy].value(designs[b])) || a - b);
    }
    element("table").tBodies[0].replaceChildren(...order.map(tableRow));
    element("count").textContent = order.length + " of " + designs.length;
  }

  function tableRow(i) {
    const design = designs[i];
    const row = document.createElement("tr");
    row.id = "row-" + design.design;
    row.tabIndex = 0;
    row.className = design.membership || "failed";
    row.setAttribute("aria-selected", i === chosen);
    for (const column of columns) {
      const cell = row.insertCell();
      const value = column.value(design);
      cell.textContent = column.text ? column.text(design) : value === null ? "–"
        : typeof value === "object" ? JSON.stringify(value)
        : typeof value === "number" ? value.toLocaleString("en") : value;
      if (column.numeric) cell.className = "number";
    }
    if (design.error !== undefined) row.lastElementChild.className = "error";
    row.addEventListener("click", () => choose(i, { from: "table" }));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose(i, { from: "table" });
      }
    });
    return row;
  }

  // ---- choosing a design --------------------------------------------------------------------------------------------

  function choose(i, how) {
    if (i < 0 || i >= designs.length) return;
    const design = designs[i];
    chosen = i;
    element("name").textContent = (design.label || design.family) + (design.family ? " (" + design.family + ")" : "");
    element("about").textContent = design.error !== undefined ? "failed: " + design.error
      : data.words[design.membership] + "; "
        + data.axes.map((axis) => data.titles[axis.metric] + " " + estimateText(design, axis.metric)).join(", ");
    element("command").value = design.command;
    element("asfile").hidden = design.file === undefined;
    element("file").textContent = design.file || "";
    element("chosen").hidden = false;
    for (const row of element("table").tBodies[0].rows) {
      row.setAttribute("aria-selected", row.id === "row-" + design.design);
    }
    const row = element("row-" + design.design);
    if (row && how.from !== "table") {
      const frame = element("frame");  // scrolled by itself, so that the page stays where it is
      frame.scrollTop = row.offsetTop - frame.clientHeight / 2;
    }
    const [x, y] = data.axes.map((axis) => mean(design, axis.metric));
    const last = pareto.data.length - 1;
    const drawn = x !== null && y !== null;
    Plotly.restyle(pareto, { x: [drawn ? [x] : []], y: [drawn ? [y] : []] }, [last]);
    if (data.heat !== null && design.cell !== null && how.from !== "heat") element("family").value = design.family;
    drawHeat();
    if (how.from !== "address") {
      location.replace("#design=" + design.design);
      copy(element("command").value);
    }
  }

  // Browsers may refuse the clipboard to files opened from disk: the line stays in sight, selected.
  function copy(text) {
    const box = element("command");
    const say = (words) => { element("copied").textContent = words; };
    const byHand = () => {
      const shown = box.value;
      box.value = text;
      box.focus({ preventScroll: true });
      box.select();
      let done = false;
      try { done = document.execCommand("copy"); } catch (error) { done = false; }
      if (done) box.value = shown;
      say(done ? "Copied." : "Press Ctrl+C to copy.");
    };
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(text).then(() => say("Copied."), byHand);
    } else {
      byHand();
    }
  }

  function chooseByAddress() {
    const wanted = /^#design=([0-9a-f]+)$/.exec(location.hash);
    const i = wanted && byId.has(wanted[1]) ? byId.get(wanted[1]) : chosen;
    if (i !== chosen) choose(i, { from: "address" });
  }

  drawTable();
  element("which").addEventListener("change", drawTable);
  element("copy").addEventListener("click", () => copy(designs[chosen].command));
  element("copyfile").addEventListener("click", () => copy(designs[chosen].file));
  if (data.heat !== null) {
    element("metric").addEventListener("change", drawHeat);
    element("family").addEventListener("change", drawHeat);
  }
  Promise.all([drawPareto(), drawHeat()]).then(() => {
    pareto.on("plotly_click", (event) => {
      const i = event.points.length > 0 ? event.points[0].customdata : null;
      if (Number.isInteger(i)) choose(i, { from: "pareto" });
    });
    if (data.heat !== null) {
      heat.on("plotly_click", (event) => {
        const i = event.points.length > 0 ? event.points[0].customdata : -1;
        if (i >= 0) choose(i, { from: "heat" });
      });
    }
    chooseByAddress();
    window.addEventListener("hashchange", chooseByAddress);
    dark.addEventListener("change", () => {
      drawPareto();
      drawHeat();
      if (chosen >= 0) choose(chosen, { from: "address" });
    });
    document.documentElement.dataset.ready = "yes";
  });
})();
