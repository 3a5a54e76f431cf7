// Draws the report's charts from the JSON in #data. Untrusted text goes through textContent or `escaped` only.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const REGIMES = ["calm", "normal", "stressed", "shock"];
  const LOW90 = 0, LOW50 = 1, MEDIAN = 2, HIGH50 = 3, HIGH90 = 4;
  const CONFIG = { displaylogo: false, responsive: true, displayModeBar: false };
  const byId = (id) => document.getElementById(id);
  const state = { track: data.tracks[0], h: 0, k: 0 };

  const color = (name) => { // as the theme has it: custom properties themselves stay light-dark(…)
    document.documentElement.style.accentColor = `var(--${name})`;
    return getComputedStyle(document.documentElement).accentColor;
  };
  const nameColor = (k) => color("e" + (k === 0 ? 0 : ((k - 1) % 6) + 1));
  const words = (name) => name.replaceAll("_", " ");
  const bars = (n) => (n === 1 ? "1 bar" : n + " bars");
  const percent = (x, digits = 2) => (x > 0 ? "+" : x < 0 ? "−" : "") + Math.abs(100 * x).toFixed(digits) + "%";
  const escaped = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const price = (x) => {
    const decimals = Math.min(8, Math.max(2, 4 - Math.floor(Math.log10(Math.abs(x) || 1))));
    return x.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  };
  const wrapped = (text, width) => {
    const lines = [""];
    for (const word of text.split(/\s+/)) {
      if ((lines.at(-1) + " " + word).length > width) lines.push(word);
      else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
    }
    return lines.map(escaped).join("<br>");
  };

  function layout(extra) {
    const lines = { gridcolor: color("line"), zeroline: false, linecolor: color("line"), tickcolor: color("line"), fixedrange: true };
    const { xaxis, yaxis, ...rest } = extra;
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: color("quiet") },
      margin: { l: 56, r: 96, t: 8, b: 30 }, hovermode: false,
      hoverlabel: { bgcolor: color("panel"), bordercolor: color("line"), font: { color: color("ink") }, align: "left" },
      xaxis: { ...lines, showgrid: false, ...xaxis }, yaxis: { ...lines, ...yaxis }, ...rest,
    };
  }

  // ---- the fan chart: x counts bars, so that "h bars ahead" is exact and closed hours take no room

  const q = (track, h, b, k) => {
    const ppm = track.bands[h][b][k];
    return ppm === null ? null : track.prices[k] * Math.exp(ppm / 1e6);
  };
  const stamp = (ms) => new Date(ms).toISOString().replace("T", " ").slice(0, 16);

  // pixels between a chart's margins
  const inner = (element, margin) => Math.max(120, element.clientWidth - margin.l - margin.r);

  // the scale of what is drawn between two bars: prices, and the bands that had been forecast for them
  function scale(track, h, from, to) {
    let low = Infinity, high = -Infinity, least = Infinity, most = -Infinity;
    track.bars.forEach((bar, k) => {
      if (bar < from || bar > to) return;
      least = Math.min(least, track.prices[k]); most = Math.max(most, track.prices[k]);
      if (bar + data.horizons[h] > to) return;
      for (const y of [q(track, h, LOW90, k), q(track, h, HIGH90, k)]) {
        if (y !== null) { low = Math.min(low, y); high = Math.max(high, y); }
      }
    });
    return axis.prices(Math.min(low, least), Math.max(high, most), least, most, (value) => String(Number(value.toPrecision(2))));
  }

  function fan(track, k) {
    // between horizons the fan widens with the square root of time
    const x = [], rows = [[], [], [], [], []];
    let before = 0, levels = [0, 0, 0, 0, 0];
    if (track.bands[0][MEDIAN][k] === null) return { x, rows };
    data.horizons.forEach((horizon, h) => {
      const next = levels.map((_, b) => track.bands[h][b][k] / 1e6);
      const steps = Math.max(1, Math.min(12, horizon - before));
      for (let n = h === 0 ? 0 : 1; n <= steps; n++) {
        const bar = before + (horizon - before) * n / steps;
        const share = (Math.sqrt(bar) - Math.sqrt(before)) / (Math.sqrt(horizon) - Math.sqrt(before));
        x.push(track.bars[k] + bar);
        rows.forEach((row, b) => row.push(track.prices[k] * Math.exp(levels[b] + share * (next[b] - levels[b]))));
      }
      before = horizon; levels = next;
    });
    return { x, rows };
  }

  const ring = (x, low, high) => ({ x: [...x, ...[...x].reverse()], y: [...low, ...[...high].reverse()] });

  function fanTraces() {
    const { track, h } = state, horizon = data.horizons[h];
    const x = track.bars.map((bar) => bar + horizon);
    const column = (b) => track.bars.map((_, k) => q(track, h, b, k));
    const edge = (b, fill) => ({
      x, y: column(b), mode: "lines", line: { width: 0 }, hoverinfo: "skip", connectgaps: true,
      ...(fill ? { fill: "tonexty", fillcolor: fill } : {}),
    });
    const { x: fx, rows } = fan(track, state.k);
    const place = new Map(track.bars.map((bar, k) => [bar, k]));
    const marks = track.marks.filter((mark) => place.has(mark.bar));
    return [
      edge(LOW90), edge(HIGH90, color("band90")), edge(LOW50), edge(HIGH50, color("band50")),
      { ...ring(fx, rows[LOW90], rows[HIGH90]), fill: "toself", mode: "lines", line: { width: 0 }, fillcolor: color("fan90"), opacity: 0.75, hoverinfo: "skip" },
      { ...ring(fx, rows[LOW50], rows[HIGH50]), fill: "toself", mode: "lines", line: { width: 0 }, fillcolor: color("fan50"), opacity: 0.75, hoverinfo: "skip" },
      { x: track.bars, y: track.prices, mode: "lines", line: { color: color("price"), width: 1.4 }, hoverinfo: "none" },
      { x: track.bars, y: [0], z: [[...track.regimes].map(Number)], type: "heatmap", yaxis: "y2", zmin: -0.5, zmax: 3.5, showscale: false, hoverinfo: "skip",
        colorscale: REGIMES.flatMap((name, r) => [[r / 4, color(name)], [(r + 1) / 4, color(name)]]) },
      { x: marks.map((m) => m.bar), y: marks.map((m) => track.prices[place.get(m.bar)]), mode: "markers", hoverinfo: "text",
        marker: { size: 7, color: color("paper"), line: { color: color("accent"), width: 1.8 } },
        text: marks.map((m) => m.headlines.map((line) => wrapped(line, 60)).join("<br>")) },
    ];
  }

  function drawFan() {
    const { track, h } = state, range = state.range ?? [0, track.num_bars + data.horizons.at(-1)];
    const element = byId("fan"), margin = { l: 64, r: 20, t: 8, b: 30 }, prices = scale(track, h, ...range);
    byId("scale").textContent = prices.type === "log" ? "Prices on a logarithmic scale. " : "";
    Plotly.react(element, fanTraces(), layout({
      hovermode: "closest", hoverdistance: 24, dragmode: "zoom", margin,
      xaxis: { range, ...axis.times(track.bars, track.times_ms, ...range, inner(element, margin)), anchor: "y2", ticks: "", fixedrange: false, showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "solid", spikecolor: color("quiet"), spikesnap: "data" },
      yaxis: { ...prices, domain: [0.05, 1] },
      yaxis2: { domain: [0, 0.022], fixedrange: true, showticklabels: false, ticks: "", showgrid: false, zeroline: false, showline: false },
    }), CONFIG);
    if (!element.dataset.wired) {
      element.dataset.wired = "1";
      element.on("plotly_relayout", (change) => {
        if ("xaxis.range[0]" in change) state.range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
        else if (change["xaxis.autorange"]) state.range = null;
        else return;
        drawFan();
      });
      element.addEventListener("mousemove", (event) => {
        const across = element._fullLayout.xaxis, box = element.getBoundingClientRect();
        const bar = across.p2d(event.clientX - box.left - across._offset);
        if (event.clientX - box.left >= across._offset) point(nearest(state.track.bars, bar));
      });
    }
    readout();
  }

  function nearest(sorted, value) {
    const k = Math.min(axis.firstAt(sorted, value), sorted.length - 1);
    return k > 0 && value - sorted[k - 1] < sorted[k] - value ? k - 1 : k;
  }

  let frame = 0;
  function point(k) {
    if (k === state.k) return;
    state.k = k;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      const { x, rows } = fan(state.track, state.k);
      const outer = ring(x, rows[LOW90], rows[HIGH90]), inner = ring(x, rows[LOW50], rows[HIGH50]);
      Plotly.restyle(byId("fan"), { x: [outer.x, inner.x], y: [outer.y, inner.y] }, [4, 5]);
      readout();
    });
  }

  function readout() {
    const { track, k, h } = state, horizon = data.horizons[h], box = byId("readout");
    const regime = REGIMES[+track.regimes[k]];
    const span = (text, name) => Object.assign(document.createElement("span"), { textContent: text, className: name ?? "" });
    const head = Object.assign(document.createElement("b"), { textContent: stamp(track.times_ms[k]) + " UTC" });
    const parts = [head, span(price(track.prices[k])), span(regime, "regime " + regime)];
    if (track.bands[h][MEDIAN][k] !== null) {
      parts.push(span(`in ${bars(horizon)}: 90% ${price(q(track, h, LOW90, k))} … ${price(q(track, h, HIGH90, k))}`));
      parts.push(span(`(${percent(Math.expm1(track.bands[h][LOW90][k] / 1e6))} … ${percent(Math.expm1(track.bands[h][HIGH90][k] / 1e6))})`));
      const later = nearest(track.bars, track.bars[k] + horizon);
      if (track.bars[later] === track.bars[k] + horizon) parts.push(span(`outcome ${price(track.prices[later])} (${percent(track.prices[later] / track.prices[k] - 1)})`));
    }
    const why = Object.assign(document.createElement("p"), { textContent: track.texts[k] ?? "" });
    box.replaceChildren(...parts, why);
    box.style.borderLeftColor = color(regime);
  }

  // ---- the others

  // Names beside the lines' right ends, pushed apart where they would touch; under the chart where there is no room.
  // `ends`: name, colour of its mark, y of the line's end, what else to say.
  function named(element, ends, gap) {
    const said = (end) => `${words(end.name)}${end.more ?? ""}`;
    const room = Math.max(...ends.map((end) => said(end).length)) * 7.6 + 34;
    const beneath = element.clientWidth < 640 || room > 230;
    const legend = element.nextElementSibling;
    legend.replaceChildren(...(beneath ? ends : []).map((end) => {
      const entry = Object.assign(document.createElement("span"), { textContent: said(end) });
      entry.style.setProperty("--mark", end.color);
      return entry;
    }));
    if (beneath) return { margin: { l: 56, r: 12, t: 8, b: 30 }, annotations: [] };
    const placed = [...ends].sort((a, b) => a.y - b.y).map((end) => ({ ...end }));
    for (let n = 1; n < placed.length; n++) placed[n].y = Math.max(placed[n].y, placed[n - 1].y + gap);
    const annotations = placed.map((end) => ({
      x: 1, xref: "paper", xanchor: "left", y: end.y, showarrow: false, font: { color: color("ink"), size: 13 },
      text: ` <span style="color:${end.color}">■</span> ${escaped(said(end))}`,
    }));
    return { margin: { l: 56, r: room, t: 8, b: 30 }, annotations };
  }

  const x = data.times_ms.map((_, t) => t); // stretches of equally many decisions

  function drawRelative() {
    const lines = data.relative[state.h];
    const flat = lines.flat().filter((v) => v !== null);
    if (!flat.length) return void byId("relative").replaceChildren("Too few outcomes to score yet.");
    const low = Math.min(...flat, 1), high = Math.max(...flat, 1), pad = (high - low) * 0.08 || 0.02;
    const element = byId("relative"), range = [0, x.length - 1];
    const ends = lines.map((values, k) => ({ name: data.names[k], color: nameColor(k), y: values.findLast((v) => v !== null) }));
    const { margin, annotations } = named(element, ends.filter((end) => end.y !== undefined), (high - low + 2 * pad) * 0.085);
    Plotly.react(element, lines.map((values, k) => ({ x, y: values, mode: "lines", line: { color: nameColor(k), width: k === 0 ? 2.6 : 1.2 } })).reverse(),
      layout({ xaxis: { range, ...axis.times(x, data.times_ms, ...range, inner(element, margin)) }, yaxis: { range: [low - pad, high + pad], tickformat: ".2f" }, margin, annotations }), CONFIG);
  }

  function drawWeights() {
    const layers = data.weights[state.h], element = byId("weights"), range = [0, x.length - 1];
    let floor = 0;
    const ends = layers.map((values, k) => {
      const end = values.findLast((v) => v !== null) ?? 0, y = floor + end / 2;
      floor += end;
      return { name: data.names[k + 1], more: ` ${Math.round(end * 100)}%`, color: nameColor(k + 1), y };
    });
    const { margin, annotations } = named(element, ends, 0.085);
    Plotly.react(element, layers.map((values, k) => ({ x, y: values, stackgroup: "all", mode: "lines", line: { width: 0.6, color: color("paper") }, fillcolor: nameColor(k + 1) })),
      layout({ xaxis: { range, ...axis.times(x, data.times_ms, ...range, inner(element, margin)) }, yaxis: { range: [0, 1], tickformat: ".0%", showgrid: false }, margin, annotations }), CONFIG);
  }

  const panels = (n) => data.horizons.map((_, h) => [(h + (h ? 0.08 : 0)) / n, (h + 0.96) / n]);
  const titled = (h, y) => ({ text: bars(data.horizons[h]), xref: "paper", yref: "paper", x: panels(data.horizons.length)[h][0], y, xanchor: "left", yanchor: "bottom", showarrow: false });

  function drawReliability() {
    const n = data.horizons.length, traces = [], extra = { margin: { l: 46, r: 8, t: 22, b: 30 }, annotations: [] };
    data.horizons.forEach((_, h) => {
      const suffix = h ? h + 1 : "";
      traces.push({ x: [0, 1], y: [0, 1], mode: "lines", line: { color: color("quiet"), width: 1, dash: "dot" }, xaxis: "x" + suffix, yaxis: "y" });
      traces.push({ x: data.levels, y: data.reliability[h], mode: "lines+markers", line: { color: color("accent"), width: 1.6 }, marker: { size: 5 }, xaxis: "x" + suffix, yaxis: "y" });
      extra["xaxis" + suffix] = { domain: panels(n)[h], range: [0, 1], tickvals: [0.1, 0.5, 0.9], fixedrange: true, showgrid: false, zeroline: false, tickcolor: color("line") };
      extra.annotations.push(titled(h, 1.01));
    });
    Plotly.react(byId("reliability"), traces, layout({ ...extra, yaxis: { range: [0, 1], tickvals: [0.1, 0.5, 0.9] } }), CONFIG);
  }

  function drawPit() {
    const n = data.horizons.length, traces = [], shapes = [], extra = { margin: { l: 46, r: 8, t: 22, b: 30 }, annotations: [], bargap: 0.12 };
    const tenths = data.pit[0].map((_, b) => b / 10 + 0.05);
    data.horizons.forEach((_, h) => {
      const suffix = h ? h + 1 : "";
      traces.push({ x: tenths, y: data.pit[h], type: "bar", width: 0.088, marker: { color: color("band50") }, xaxis: "x" + suffix, yaxis: "y" });
      extra["xaxis" + suffix] = { domain: panels(n)[h], range: [0, 1], tickvals: [0.1, 0.5, 0.9], fixedrange: true, showgrid: false, zeroline: false, tickcolor: color("line") };
      extra.annotations.push(titled(h, 1.01));
    });
    shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: color("quiet"), width: 1, dash: "dot" } });
    Plotly.react(byId("pit"), traces, layout({ ...extra, shapes, yaxis: { rangemode: "tozero", tickvals: [0, 1, 2], title: { text: "" } } }), CONFIG);
  }

  function drawStated() {
    if (!byId("stated")) return;
    const x = data.stated.map((p) => p[0]), y = data.stated.map((p) => p[1]);
    const error = { type: "data", symmetric: false, array: data.stated.map((p) => p[3] - p[1]), arrayminus: data.stated.map((p) => p[1] - p[2]), color: color("accent"), thickness: 1.2, width: 4 };
    const traces = [
      { x: [0.5, 1], y: [0.5, 1], mode: "lines", line: { color: color("quiet"), width: 1, dash: "dot" }, hoverinfo: "skip" },
      { x, y, error_y: error, mode: "markers", marker: { size: 7, color: color("accent") }, hovertemplate: "stated %{x:.0%}, right %{y:.0%}<extra></extra>" },
    ];
    const xaxis = { range: [0.48, 1.02], tickvals: [0.5, 0.6, 0.7, 0.8, 0.9, 1], tickformat: ".0%", title: { text: "stated confidence", font: { size: 13 } }, fixedrange: true, showgrid: false, zeroline: false, tickcolor: color("line") };
    Plotly.react(byId("stated"), traces, layout({ margin: { l: 64, r: 8, t: 12, b: 44 }, xaxis, yaxis: { range: [0, 1.02], tickvals: [0, 0.25, 0.5, 0.75, 1], tickformat: ".0%", title: { text: "right", font: { size: 13 } } } }), CONFIG);
  }

  function drawAll() {
    drawFan(); drawRelative(); drawWeights(); drawReliability(); drawPit(); drawStated();
    document.querySelectorAll(".which").forEach((e) => { e.textContent = bars(data.horizons[state.h]) + " ahead"; });
  }

  function choose(track) {
    Object.assign(state, { track, range: null, k: track.bars.length - 1 });
    byId("series").value = track.name;
    drawFan();
  }

  // ---- controls

  byId("series").replaceChildren(...data.tracks.map((t) => new Option(t.name, t.name)));
  byId("series").addEventListener("change", (event) => choose(data.tracks.find((t) => t.name === event.target.value)));
  document.querySelectorAll("button[data-series]").forEach((button) => button.addEventListener("click", () => {
    choose(data.tracks.find((t) => t.name === button.dataset.series));
    byId("fan").scrollIntoView({ behavior: "smooth", block: "center" });
  }));
  const pills = data.horizons.map((horizon, h) => {
    const pill = Object.assign(document.createElement("button"), { type: "button", textContent: bars(horizon) });
    pill.addEventListener("click", () => { state.h = h; press(); drawAll(); });
    return pill;
  });
  const press = () => pills.forEach((pill, h) => pill.setAttribute("aria-pressed", h === state.h));
  byId("horizons").replaceChildren(...pills);
  press();
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && event.target.tagName !== "SELECT") point(Math.max(0, Math.min(state.track.bars.length - 1, state.k + step)));
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (name) => { document.documentElement.style.colorScheme = name; drawAll(); };
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawAll(); } });
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => setTheme(document.documentElement.style.colorScheme === "dark" ? "light" : "dark"));
  state.k = state.track.bars.length - 1;
  setTheme(dark.matches ? "dark" : "light");
})();
