// Draws the report from the JSON in the page. Everything that a file names goes into the page as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const engines = data.engines;
  let engine = engines[0];
  const main = d3.select("#main");
  const chosen = { layer: null };

  // ---- words and colours

  const typeColours = data.colours.type, precisionColours = data.colours.precision, other = data.colours.other;
  const heat = d3.scaleSequential(d3.interpolateYlOrRd);
  const sourceOf = layer => layer.tactic.split(".")[0];
  const sources = d3.scaleOrdinal(d3.schemeSet3);
  const usual = d3.format(".4~r"), extreme = d3.format(".4~g"), ms = n => Math.abs(n) < 1e7 ? usual(n) : extreme(n), percent = d3.format(".1f"), whole = d3.format("d"), si = d3.format(".3~s"), count = d3.format(",");
  const bytes = n => n ? si(n).replace(/[a-zA-Zµ]?$/, unit => " " + unit + "B") : "0";
  const short = (text, most) => text.length <= most ? text : text.slice(0, most - 1) + "…";
  const shapeOf = t => "[" + t.dims.join("×") + "] " + t.element;

  function floorOf(layer) {
    const peaks = engine.peaks, flops = peaks[{ FP32: "f32", FP16: "f16", BF16: "f16", INT8: "i8", UINT8: "i8", FP8: "i8" }[layer.precision]] || 0;
    const move = peaks.bytes ? layer.bytes / peaks.bytes * 1e3 : 0, compute = flops ? layer.flops / flops * 1e3 : 0;
    return { ms: Math.max(move, compute), moves: move >= compute };
  }

  const colourings = {
    "type": l => typeColours[l.type] || other,
    "precision": l => precisionColours[l.precision] || other,
    "time": l => heat(Math.min(1, l.share / (d3.max(engine.layers, x => x.share) || 1))),
    "source": l => sources(sourceOf(l)),
    "memory or compute": l => { const f = floorOf(l); return f.ms === 0 ? other : f.moves ? "#e8a33d" : "#5aa7e8"; },
  };

  // ---- building blocks

  function section(title) { main.append("h2").text(title); }
  function cards(rows) {
    const card = main.append("div").attr("class", "cards").selectAll("div").data(rows).enter().append("div").attr("class", "card");
    card.append("b").text(r => r[1]);
    card.append("span").text(r => r[0]);
  }
  /// As wide as drawn for, or as the window: text of charts stays readable where it is narrow.
  const wide = most => Math.max(300, Math.min(most, main.node().clientWidth - 40));
  function figure(parent, title, width, height) {
    const f = parent.append("figure");
    f.append("figcaption").text(title);
    return f.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", title);
  }
  function axes(svg, x, y, width, height, left, bottom, xFormat, yFormat) {
    const bottomAxis = d3.axisBottom(x).ticks(6), leftAxis = d3.axisLeft(y).ticks(5);
    if (xFormat) bottomAxis.tickFormat(xFormat);
    if (yFormat) leftAxis.tickFormat(yFormat);
    if (xFormat === whole) bottomAxis.tickValues(x.ticks(6).filter(Number.isInteger));
    if (yFormat === whole) leftAxis.tickValues(y.ticks(5).filter(Number.isInteger));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`).call(bottomAxis);
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(leftAxis);
  }
  function bars(parent, title, rows, unit) {  // rows: [label, value, colour]
    const width = wide(520), line = 20, left = 150, height = rows.length * line + 10;
    const svg = figure(parent, title, width, height);
    const x = d3.scaleLinear([0, d3.max(rows, r => r[1]) || 1], [left, width - 90]);
    const g = svg.selectAll("g").data(rows).enter().append("g").attr("transform", (r, i) => `translate(0,${i * line + 4})`);
    g.append("title").text(r => `${r[0]}: ${unit(r[1])}`);
    g.append("text").attr("x", left - 6).attr("y", 12).attr("text-anchor", "end").text(r => short(r[0], 22));
    g.append("rect").attr("x", left).attr("height", 15).attr("width", r => Math.max(1, x(r[1]) - left)).attr("fill", r => r[2] || "#5aa7e8");
    g.append("text").attr("x", r => x(r[1]) + 5).attr("y", 12).text(r => unit(r[1]));
  }
  function layerBars(parent, title, value, unit, colour) {
    const width = wide(1100), height = 230, left = 60, bottom = 22;
    const svg = figure(parent, title, width, height);
    const x = d3.scaleLinear([0, engine.layers.length], [left, width - 6]), y = d3.scaleLinear([0, d3.max(engine.layers, value) || 1], [height - bottom, 8]);
    axes(svg, x, y, width, height, left, bottom, whole, unit === bytes ? d3.format(".3~s") : null);
    svg.selectAll("rect").data(engine.layers).enter().append("rect").attr("x", (l, i) => x(i)).attr("width", Math.max(.4, (x(1) - x(0)) * .85))
      .attr("y", l => y(value(l))).attr("height", l => y(0) - y(value(l))).attr("fill", colour).on("click", l => choose(l, "Layers"))
      .append("title").text(l => `${short(l.name, 300)}\n${l.type}, ${l.precision}\n${unit(value(l))}`);
  }
  function histogram(parent, title, values, colour, unit) {
    const width = wide(520), height = 220, left = 46, bottom = 24;
    const svg = figure(parent, title, width, height);
    const x = d3.scaleLinear().domain(d3.extent(values)).nice().range([left, width - 18]);
    const bins = d3.histogram().domain(x.domain()).thresholds(x.ticks(40))(values);
    const y = d3.scaleLinear([0, d3.max(bins, b => b.length) || 1], [height - bottom, 8]);
    axes(svg, x, y, width, height, left, bottom, null, whole);
    svg.selectAll("rect").data(bins).enter().append("rect").attr("x", b => x(b.x0)).attr("width", b => Math.max(.5, x(b.x1) - x(b.x0) - 1))
      .attr("y", b => y(b.length)).attr("height", b => y(0) - y(b.length)).attr("fill", colour)
      .append("title").text(b => `${unit(b.x0)} to ${unit(b.x1)}: ${b.length}`);
  }
  function rolled(key, value) {
    return d3.nest().key(key).rollup(v => d3.sum(v, value)).entries(engine.layers).map(e => [e.key || "-", e.value]).sort((a, b) => b[1] - a[1]);
  }
  const typed = value => rolled(l => l.type, value).slice(0, 14).map(r => [...r, typeColours[r[0]] || other]);
  const byPrecision = value => rolled(l => l.precision, value).map(r => [...r, precisionColours[r[0]] || other]);
  function legend(pairs, parent = main) {
    const row = parent.append("div").attr("class", "legend").selectAll("span").data(pairs).enter().append("span");
    row.append("i").style("background", p => p[1]);
    row.append("span").text(p => p[0]);
  }
  // columns: {title, value, text, number}
  function table(parent, columns, rows, options = {}) {
    let order = options.order || [0, 1];
    const frame = parent.append("div").attr("class", "scroll").attr("tabindex", 0).attr("role", "region").attr("aria-label", options.label || "table");
    const t = frame.append("table");
    const head = t.append("thead").append("tr").selectAll("th").data(columns).enter().append("th").attr("scope", "col").classed("number", c => c.number);
    head.append("button").attr("type", "button").text(c => c.title).on("click", (c, i) => { order = [i, order[0] === i ? -order[1] : c.number ? -1 : 1]; draw(); });
    const body = t.append("tbody");
    let shown = rows;
    function draw() {
      head.attr("aria-sort", (c, i) => i === order[0] ? (order[1] > 0 ? "ascending" : "descending") : null);
      const value = columns[order[0]].value;
      const sorted = shown.slice().sort((a, b) => order[1] * (columns[order[0]].number ? d3.ascending(value(a), value(b)) : d3.ascending(String(value(a)), String(value(b)))));
      body.selectAll("tr").remove();
      const row = body.selectAll("tr").data(sorted).enter().append("tr").classed("chosen", r => r === chosen.layer);
      columns.forEach(c => row.append("td").classed("number", !!c.number).classed("name", !c.number).classed("word", !!c.word)
        .attr("class", function(r) { return [this.className, c.mark ? c.mark(r) : ""].join(" "); }).append("bdi").text(r => short(String((c.text || c.value)(r)), 300)));
      if (!options.pick) return;
      row.style("cursor", "pointer").on("click", options.pick);
      row.select("td").each(function() { const cell = d3.select(this), name = cell.select("bdi").remove().node(); cell.append("button").attr("class", "link").attr("type", "button").node().append(name); });
    }
    draw();
    return { show: filter => { shown = rows.filter(filter); draw(); return shown.length; } };
  }
  function choose(layer, tab) { chosen.layer = layer; open(tab); }

  // ---- parts

  function overview() {
    const total = d3.sum(engine.layers, l => l.average), latency = engine.latencies.slice().sort(d3.ascending);
    const list = [["layers", count(engine.layers.length)], ["weights", bytes(d3.sum(engine.layers, l => l.weights))],
      ["activations, read and written", bytes(d3.sum(engine.layers, l => l.activations))]];
    if (engine.profiled) list.unshift([`of all layers, one inference (ms)${engine.rounds ? ", mean of " + count(engine.rounds) : ""}`, ms(total)]);
    if (latency.length) list.unshift(["median latency (ms)", ms(d3.quantile(latency, .5))],
      latency.length < 100 ? ["slowest query (ms)", ms(d3.max(latency))] : ["99th percentile (ms)", ms(d3.quantile(latency, .99))],
      ["queries", count(latency.length)], ...engine.queriesPerSecond ? [["queries a second", ms(engine.queriesPerSecond)]] : [],
      ...latency.length < 10 ? [] : [["between the quartiles, of the median (%)", percent(100 * (d3.quantile(latency, .75) - d3.quantile(latency, .25)) / d3.quantile(latency, .5))]]);
    cards(list);
    const charts = main.append("div").attr("class", "charts");
    if (engine.profiled) {
      bars(charts, "Latency per layer type (ms)", typed(l => l.average), ms);
      bars(charts, "% Latency By Precision", byPrecision(l => l.share), v => percent(v) + " %");
    }
    bars(charts, "Count per layer type", typed(() => 1), count);
    if (latency.length) histogram(charts, "Latency distribution (ms)", engine.latencies, "#5aa7e8", ms);
    if (engine.profiled) layerBars(main, "Latency per layer (ms)", l => l.average, ms, colourings.type);
    section("Inputs and outputs");
    table(main, [{ title: "tensor", value: t => t.name }, { title: "shape and type", value: shapeOf }, { title: "format", value: t => t.format }], engine.bindings, { label: "bindings" });
    if (engine.facts.length) {
      section("Device, build and run");
      table(main, [{ title: "what", value: f => f[0] }, { title: "value", value: f => f[1] }], engine.facts, { label: "facts" });
    }
  }
  /// Said beside times of layers that few measurements stand behind.
  function note(...all) {
    const few = all.filter(e => e.profiled && e.rounds > 0 && e.rounds < 10);
    if (few.length) main.append("p").attr("class", "note").text(`Times of layers are means of ${few.map(e => count(e.rounds)).join(" and ")} rounds, too few for small differences: -t 1 measures a plan for longer.`);
  }

  function latency() {
    if (!engine.profiled && !engine.latencies.length) { main.append("p").text("No times are known: give the plan itself, or the profile beside its layers (-pj)."); return; }
    note(engine);
    const charts = main.append("div").attr("class", "charts");
    if (engine.latencies.length) {
      histogram(charts, "Latency distribution (ms)", engine.latencies, "#5aa7e8", ms);
      samples(charts);
    }
    if (!engine.profiled) return;
    bars(charts, "Latency per layer type (ms)", typed(l => l.average), ms);
    bars(charts, "Latency per layer type (%)", typed(l => l.share), v => percent(v) + " %");
    bars(charts, "Latency by source of the tactic (ms)", rolled(sourceOf, l => l.average).map(r => [...r, sources(r[0])]), ms);
    histogram(charts, "Layer latency distribution (ms)", engine.layers.map(l => l.average), "#5aa7e8", ms);
    const most = d3.max(engine.layers, l => l.activations) || 1;
    areas("Layers Latencies (%)", colourings.type);
    areas("Layers Latencies (%), the redder the more bytes of activations", l => heat(Math.sqrt(l.activations / most)));
    layerBars(main, "Latency per layer (ms)", l => l.average, ms, colourings.type);
    layerBars(main, "Latency per layer (%)", l => l.share, v => percent(v) + " %", colourings.type);
  }
  /// Each layer an area as large as its share of the time, those of a type beside each other.
  function areas(title, colour) {
    const width = wide(1100), height = 300, svg = figure(main, title, width, height);
    const types = d3.nest().key(l => l.type).entries(engine.layers.filter(l => l.share > 0));
    const root = d3.hierarchy({ values: types }, d => d.values).sum(l => l.share || 0).sort((a, b) => b.value - a.value);
    d3.treemap().size([width, height]).paddingInner(1)(root);
    const cell = svg.selectAll("g").data(root.leaves().filter(n => n.data.share)).enter().append("g").attr("transform", n => `translate(${n.x0},${n.y0})`).on("click", n => choose(n.data, "Layers"));
    cell.append("title").text(n => `${short(n.data.name, 300)}\n${n.data.type}, ${percent(n.data.share)} %, ${bytes(n.data.activations)}`);
    cell.append("rect").attr("width", n => n.x1 - n.x0).attr("height", n => n.y1 - n.y0).attr("fill", n => colour(n.data));
    cell.filter(n => n.x1 - n.x0 > 60 && n.y1 - n.y0 > 18).append("text").attr("x", 4).attr("y", 14).style("fill", n => inkOn(colour(n.data)))
      .text(n => { const most = Math.floor((n.x1 - n.x0 - 8) / 7.5), name = n.data.name; return name.length <= most ? name : "…" + name.slice(1 - most); });
  }

  function precision() {
    const outputOf = l => l.outputs.length ? l.outputs[0].element : "-", height = engine.profiled ? l => l.share : () => 1;
    const said = engine.profiled ? v => percent(v) + " %" : count;
    legend([...new Set(engine.layers.flatMap(l => [l.precision, outputOf(l)]))].sort().map(p => [p || "-", precisionColours[p] || other]));
    const charts = main.append("div").attr("class", "charts");
    bars(charts, "Layer Count By Precision", byPrecision(() => 1), count);
    if (engine.profiled) bars(charts, "% Latency By Precision", byPrecision(l => l.share), v => percent(v) + " %");
    stacks(charts, "Precision per layer type");
    main.append("p").attr("class", "note").text(engine.profiled ? "Heights are shares of the time (%)." : "");
    layerBars(main, "Precision per layer", height, said, colourings.precision);
    layerBars(main, "Output precision per layer", height, said, l => precisionColours[outputOf(l)] || other);
  }
  /// Layers of each type, in the colours of their precisions.
  function stacks(parent, title) {
    const types = d3.nest().key(l => l.type).entries(engine.layers).sort((a, b) => b.values.length - a.values.length).slice(0, 14);
    const width = wide(520), line = 20, left = 150, svg = figure(parent, title, width, types.length * line + 10);
    const x = d3.scaleLinear([0, d3.max(types, t => t.values.length) || 1], [0, width - 90 - left]);
    const row = svg.selectAll("g").data(types).enter().append("g").attr("transform", (t, i) => `translate(${left},${i * line + 4})`);
    row.append("text").attr("x", -6).attr("y", 12).attr("text-anchor", "end").text(t => short(t.key || "-", 22));
    row.each(function(t) {
      let at = 0;
      d3.nest().key(l => l.precision).entries(t.values).forEach(p => {
        d3.select(this).append("rect").attr("x", x(at)).attr("height", 15).attr("width", x(p.values.length)).attr("fill", precisionColours[p.key] || other)
          .append("title").text(`${short(t.key, 100)}, ${short(p.key || "-", 40)}: ${count(p.values.length)}`);
        at += p.values.length;
      });
      d3.select(this).append("text").attr("x", x(at) + 5).attr("y", 12).text(count(t.values.length));
    });
  }
  function samples(parent) {
    const width = wide(520), height = 220, left = 46, bottom = 24, values = engine.latencies, step = Math.ceil(values.length / 2000);
    const svg = figure(parent, "Engine Timing Samples (ms)", width, height), kept = values.filter((v, i) => i % step === 0);
    const x = d3.scaleLinear([0, values.length], [left, width - 18]), y = d3.scaleLinear().domain(d3.extent(values)).nice().range([height - bottom, 8]);
    axes(svg, x, y, width, height, left, bottom, whole);
    svg.selectAll("circle").data(kept).enter().append("circle").attr("r", 1.6).attr("cx", (v, i) => x(i * step)).attr("cy", y).attr("fill", "#5aa7e8");
  }

  function layers() {
    note(engine);
    const controls = main.append("div").attr("class", "controls");
    const search = controls.append("label").text("find ").append("input").attr("type", "search").attr("id", "find").attr("placeholder", "layer, node or tactic");
    const types = ["every type", ...new Set(engine.layers.map(l => l.type))];
    const type = controls.append("label").text("type ").append("select").attr("id", "type");
    type.selectAll("option").data(types).enter().append("option").text(t => t);
    const said = controls.append("span").attr("class", "note").attr("role", "status");
    const detail = () => {
      box.selectAll("*").remove();
      const l = chosen.layer;
      if (!l) return;
      box.append("h2").append("bdi").text(l.name);
      const f = floorOf(l);
      const rows = [["nodes of the model", l.nodes.join("\n") || "-"], ["tactic", l.tactic],
        ["inputs", l.inputs.map(t => `${t.name} ${shapeOf(t)}, ${t.format}`).join("\n")], ["outputs", l.outputs.map(t => `${t.name} ${shapeOf(t)}, ${t.format}`).join("\n")],
        ["at best (ms)", f.ms ? `${ms(f.ms)}, bound by ${f.moves ? "memory" : "arithmetic"}` : "ceilings are not known"]];
      const pairs = box.append("dl").selectAll("div").data(rows).enter().append("div");
      pairs.append("dt").append("b").text(r => r[0]);
      pairs.append("dd").style("white-space", "pre-wrap").append("bdi").text(r => r[1]);
      if (l.candidates.length) {
        box.append("h2").text("Tactics that were considered");
        table(box, [{ title: "tactic", value: c => c.tactic }, { title: "ms", value: c => c.ms < 0 ? Infinity : c.ms, text: c => c.ms < 0 ? "-" : ms(c.ms), number: true },
          { title: "why not", value: c => c.note }], l.candidates, { order: [1, 1], label: "candidates" });
      }
      box.append("pre").text(JSON.stringify(l.attributes, null, 1));
    };
    const rows = table(main, [{ title: "layer", value: l => l.name }, { title: "type", value: l => l.type, word: true }, { title: "precision", value: l => l.precision, word: true },
      { title: "ms", value: l => l.average, text: l => ms(l.average), number: true }, { title: "%", value: l => l.share, text: l => percent(l.share), number: true },
      { title: "at best, ms", value: l => floorOf(l).ms, text: l => ms(floorOf(l).ms), number: true },
      { title: "GFLOP", value: l => l.flops, text: l => ms(l.flops / 1e9), number: true }, { title: "bytes", value: l => l.bytes, text: l => bytes(l.bytes), number: true },
      { title: "tactic", value: l => l.tactic }], engine.layers, { order: engine.profiled ? [3, -1] : [0, 1], label: "layers", pick: l => { chosen.layer = l; detail(); } });
    const box = main.append("div").attr("id", "detail");
    const update = () => {
      const text = search.property("value").toLowerCase(), wanted = type.property("value");
      let time = 0;
      const n = rows.show(l => {
        const fits = (wanted === "every type" || l.type === wanted) && (!text || [l.name, l.tactic, ...l.nodes].some(s => s.toLowerCase().includes(text)));
        if (fits) time += l.average;
        return fits;
      });
      said.text(`${n} of ${engine.layers.length} layers, ${ms(time)} ms`);
    };
    search.on("input", update);
    type.on("change", update);
    update();
    detail();
  }

  function graph() {
    const sheet = engine.graph, controls = main.append("div").attr("class", "controls");
    const search = controls.append("label").text("find ").append("input").attr("type", "search").attr("id", "findnode");
    const colour = controls.append("label").text("colour by ").append("select").attr("id", "colour");
    colour.selectAll("option").data(Object.keys(colourings)).enter().append("option").text(c => c);
    controls.append("button").attr("class", "plain").attr("type", "button").text("whole graph").on("click", () => drawn.fit());
    const said = controls.append("span").attr("class", "note").attr("role", "status");
    const key = main.append("div");
    let hits = new Set();
    const bound = l => { const f = floorOf(l); return f.ms === 0 ? "not known" : f.moves ? "memory" : "arithmetic"; };
    const words = { "type": l => l.type, "precision": l => l.precision, "source": sourceOf, "memory or compute": bound };
    function explain() {
      const by = colour.property("value"), word = words[by];
      key.selectAll("*").remove();
      if (!word) return legend([["takes longest", heat(1)], ["takes least", heat(0)]], key);
      legend(d3.nest().key(word).entries(engine.layers).sort((a, b) => b.values.length - a.values.length).slice(0, 12).map(e => [short(e.key || "-", 60), colourings[by](e.values[0])]), key);
    }
    explain();
    const layer = i => sheet.items[i][0] === "node" ? engine.layers[sheet.items[i][1]] : null;
    const binding = i => { const [kind, index] = sheet.items[i], t = engine.io[kind][index]; return [t.name, shapeOf(t)]; };
    const lines = i => { const l = layer(i); return l ? [engine.profiled ? `${l.type}  ${ms(l.average)} ms` : l.type, l.name] : binding(i); };
    const drawn = drawGraph(main, sheet, data.box, {
      label: `Graph of ${engine.layers.length} layers. Arrow keys walk along tensors, Enter opens a layer, plus, minus and 0 zoom.`,
      lines,
      colour: i => layer(i) ? colourings[colour.property("value")](layer(i)) : null,
      found: i => hits.has(i),
      title: i => { const l = layer(i); return l ? `${short(l.name, 300)}\n${short(l.tactic, 300)}\n${l.inputs.map(shapeOf).join(", ")} to ${l.outputs.map(shapeOf).join(", ")}` : lines(i).join("\n"); },
      describe: i => { const [bold, plain] = lines(i); return `${short(bold, 80)} ${short(plain, 200)}, ${i + 1} of ${sheet.items.length}`; },
      open: i => layer(i) && choose(layer(i), "Layers"),
    });
    colour.on("change", () => { explain(); drawn.repaint(); });
    search.on("input", () => {
      const text = search.property("value").toLowerCase();
      hits = new Set(d3.range(sheet.items.length).filter(i => text && layer(i) && [layer(i).name, ...layer(i).nodes].some(s => s.toLowerCase().includes(text))));
      said.text(text ? `${hits.size} found` : "");
      if (hits.size) drawn.centre([...hits][0]);
      drawn.repaint();
    });
  }

  function roofline() {
    const rows = engine.layers.filter(l => l.flops > 0 && l.bytes > 0 && l.median > 0), peaks = engine.peaks;
    main.append("p").attr("class", "note").text(peaks.bytes ? "The lines are what this machine measured: a large copy, and large matmuls of each type. A layer on a line cannot be faster as it is; one above the slanted line had its data in caches."
      : "The ceilings of the device are not known: give the plan itself, on the machine that runs it, and they are measured.");
    if (!rows.length) { main.append("p").text("No layer has operations, bytes and a time."); return; }
    legend(Object.entries(precisionColours).filter(p => rows.some(l => l.precision === p[0])));
    const width = wide(1000), height = 460, left = 70, bottom = 40, svg = figure(main, "Roofline: operations per second against operations per byte", width, height);
    const at = l => [l.flops / l.bytes, l.flops / l.median * 1e3];
    const knees = peaks.bytes ? [peaks.f32, peaks.f16, peaks.i8].filter(Boolean).map(p => p / peaks.bytes) : [];
    const xs = rows.map(l => at(l)[0]).concat(knees), ys = rows.map(l => at(l)[1]).concat([peaks.f32, peaks.f16, peaks.i8].filter(Boolean));
    const x = d3.scaleLog([d3.min(xs) / 2, d3.max(xs) * 2], [left, width - 16]), y = d3.scaleLog([d3.min(ys) / 2, d3.max(ys) * 2], [height - bottom, 10]);
    axes(svg, x, y, width, height, left, bottom, x.tickFormat(8, ".2~s"), y.tickFormat(6, ".2~s"));
    svg.append("text").attr("x", width - 16).attr("y", height - 6).attr("text-anchor", "end").text("operations per byte");
    const roof = [["f32", "FP32"], ["f16", "FP16 or BF16"], ["i8", "INT8"]].filter(p => peaks[p[0]] && peaks.bytes && !(p[0] === "f16" && peaks.f16 === peaks.f32));
    roof.forEach(([key, name]) => {
      const [low, high] = x.domain(), knee = peaks[key] / peaks.bytes;
      const points = [low, Math.min(Math.max(knee, low), high), high].map(i => [x(i), y(Math.max(y.domain()[0], Math.min(i * peaks.bytes, peaks[key])))]);
      svg.append("path").attr("class", "roof").attr("d", d3.line()(points));
      svg.append("text").attr("x", width - 20).attr("y", y(peaks[key]) - 4).attr("text-anchor", "end").text(`${name}: ${si(peaks[key])}/s`);
    });
    const r = d3.scaleSqrt([0, d3.max(rows, l => l.share) || 1], [2, 15]);
    svg.selectAll("circle").data(rows).enter().append("circle").attr("cx", l => x(at(l)[0])).attr("cy", l => y(at(l)[1])).attr("r", l => r(l.share))
      .attr("fill", colourings.precision).attr("fill-opacity", .75).attr("stroke", "#333").on("click", l => choose(l, "Layers"))
      .append("title").text(l => `${short(l.name, 300)}\n${l.type}, ${l.precision}\n${si(at(l)[1])} operations/s, ${d3.format(".3~g")(at(l)[0])} per byte, ${ms(l.median)} ms`);
    section("Farthest from their ceiling, by the time that could be won");
    const won = rows.map(l => ({ l, floor: floorOf(l) })).filter(r => r.floor.ms > 0);
    table(main, [{ title: "layer", value: r => r.l.name }, { title: "ms", value: r => r.l.median, text: r => ms(r.l.median), number: true },
      { title: "at best, ms", value: r => r.floor.ms, text: r => ms(r.floor.ms), number: true },
      { title: "to be won, ms", value: r => r.l.median - r.floor.ms, text: r => ms(r.l.median - r.floor.ms), number: true },
      { title: "bound by", value: r => r.floor.moves ? "memory" : "arithmetic" }], won, { order: [3, -1], label: "distance from the ceiling" });
  }

  /// Where tensors lie in the memory of an inference, from their first layer to their last; above it how much is in use.
  function arena() {
    const places = engine.memory, width = wide(1100), height = 340, left = 70, bottom = 40;
    if (!places.length) { main.append("p").attr("class", "note").text("Where tensors lie in memory is known of Hone's engines whose sizes are fixed: give the plan, with -s where its inputs have open sizes."); return; }
    const top = d3.max(places, p => p.offset + p.bytes), n = engine.layers.length, used = new Array(n).fill(0);
    places.forEach(p => { for (let i = p.first; i <= p.last; ++i) used[i] += p.bytes; });
    const most = d3.max(used);
    cards([["memory of activations", bytes(top)], ["most in use at once", bytes(most)], ["of the memory, in use on average (%)", percent(100 * d3.mean(used) / top)], ["tensors there", count(places.length)]]);
    const svg = figure(main, "Memory over time: where each tensor lies (bytes) while layers run", width, height);
    const x = d3.scaleLinear([0, n], [left, width - 6]), y = d3.scaleLinear([0, top], [height - bottom, 8]);
    axes(svg, x, y, width, height, left, bottom, whole, d3.format(".3~s"));
    svg.append("text").attr("x", width - 6).attr("y", height - 4).attr("text-anchor", "end").text("layers, in the order in which they run");
    const shades = d3.scaleOrdinal(d3.schemeSet3);
    svg.selectAll("rect").data(places).enter().append("rect").attr("x", p => x(p.first)).attr("width", p => Math.max(.5, x(p.last + 1) - x(p.first)))
      .attr("y", p => y(p.offset + p.bytes)).attr("height", p => Math.max(.5, y(p.offset) - y(p.offset + p.bytes))).attr("fill", p => shades(p.tensor)).attr("stroke", "#333").attr("stroke-width", .5)
      .append("title").text(p => `${short(p.tensor, 300)}\n${bytes(p.bytes)} at ${count(p.offset)}\nfrom ${short(engine.layers[p.first].name, 200)}\nto ${short(engine.layers[p.last].name, 200)}`);
    svg.append("path").attr("class", "used").attr("d", d3.line().curve(d3.curveStepAfter).x((u, i) => x(i)).y(y)(used.concat(used[n - 1])));
    legend([["in use", "var(--text)"]]);
    section("Tensors in memory, the largest first");
    table(main, [{ title: "tensor", value: p => p.tensor }, { title: "bytes", value: p => p.bytes, text: p => bytes(p.bytes), number: true }, { title: "at", value: p => p.offset, text: p => count(p.offset), number: true },
      { title: "from layer", value: p => p.first, number: true }, { title: "to layer", value: p => p.last, number: true }], places, { order: [1, -1], label: "tensors in memory" });
  }
  function memory() {
    arena();
    section("What layers read and write");
    layerBars(main, "Weights footprint per layer", l => l.weights, bytes, colourings.type);
    layerBars(main, "Activation footprint per layer", l => l.activations, bytes, colourings.type);
    layerBars(main, "Total footprint per layer", l => l.bytes, bytes, colourings.type);
    const charts = main.append("div").attr("class", "charts");
    histogram(charts, "Activation footprint distribution per layer (bytes)", engine.layers.map(l => l.activations), "#5aa7e8", bytes);
    histogram(charts, "Weights footprint distribution per layer (bytes)", engine.layers.map(l => l.weights), "#5aa7e8", bytes);
    histogram(charts, "Total footprint distribution per layer (bytes)", engine.layers.map(l => l.bytes), "#5aa7e8", bytes);
  }

  function build() {
    const phases = engine.build;
    if (!phases.length) { main.append("p").text("What a build spent its time on is known where the build was made for this report: give the model, MODEL.onnx."); return; }
    const width = wide(1000), line = 22, left = 10, height = phases.length * line + 40, end = d3.max(phases, p => p.end);
    const svg = figure(main, "The build's time line (ms)", width, height), x = d3.scaleLinear([0, end], [left, width - 20]);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - 26})`).call(d3.axisBottom(x).ticks(8));
    const shades = ["#5aa7e8", "#8dd3c7", "#fdb462", "#bebada"];
    const g = svg.selectAll("g.phase").data(phases).enter().append("g").attr("class", "phase").attr("transform", (p, i) => `translate(0,${i * line + 4})`);
    g.append("rect").attr("x", p => x(p.begin)).attr("width", p => Math.max(1, x(p.end) - x(p.begin))).attr("height", 17).attr("fill", p => shades[p.depth % shades.length]);
    g.append("text").attr("y", 13).attr("x", p => x(p.begin) > width * .6 ? x(p.begin) - 5 : Math.min(x(p.end) + 5, x(p.begin) > width * .3 ? x(p.end) + 5 : Math.max(x(p.end) + 5, left)))
      .attr("text-anchor", p => x(p.begin) > width * .6 ? "end" : x(p.end) > width * .7 ? "start" : "start").each(function(p) { if (x(p.begin) <= width * .6 && x(p.end) > width * .7) d3.select(this).attr("x", x(p.begin) + 6).attr("class", "on"); })
      .text(p => `${"  ".repeat(p.depth)}${short(p.name, 60)}: ${ms(p.end - p.begin)} ms`);
    table(main, [{ title: "phase", value: p => "\u2003".repeat(p.depth) + p.name }, { title: "begins, ms", value: p => p.begin, text: p => ms(p.begin), number: true },
      { title: "takes, ms", value: p => p.end - p.begin, text: p => ms(p.end - p.begin), number: true }], phases, { order: [1, 1], label: "phases of the build" });
  }

  function tactics() {
    const groups = d3.nest().key(l => l.tactic.split("(")[0]).entries(engine.layers)
      .map(e => ({ name: e.key, count: e.values.length, ms: d3.sum(e.values, l => l.average), share: d3.sum(e.values, l => l.share) }));
    table(main, [{ title: "tactic", value: g => g.name }, { title: "layers", value: g => g.count, number: true },
      { title: "ms", value: g => g.ms, text: g => ms(g.ms), number: true }, { title: "%", value: g => g.share, text: g => percent(g.share), number: true }], groups, { order: [3, -1], label: "tactics" });
    const reformats = engine.layers.filter(l => l.type === "Reformat");
    section(reformats.length ? `Reformats: ${reformats.length}, ${percent(d3.sum(reformats, l => l.share))} % of the time` : "There are no reformats.");
    if (reformats.length) table(main, [{ title: "layer", value: l => l.name }, { title: "origin", value: l => l.origin }, { title: "ms", value: l => l.average, text: l => ms(l.average), number: true },
      { title: "from", value: l => l.inputs.map(t => t.format).join(", ") }, { title: "to", value: l => l.outputs.map(t => t.format).join(", ") }], reformats, { order: [2, -1], label: "reformats" });
  }

  function hazards() {
    if (!engine.hazards.length) { main.append("p").text("Nothing was found."); return; }
    table(main, [{ title: "layer", value: h => h.layer }, { title: "ms", value: h => h.ms, text: h => ms(h.ms), number: true }, { title: "hazard", value: h => h.hazard },
      { title: "what to do", value: h => h.mitigation }], engine.hazards, { order: [1, -1], label: "hazards" });
  }

  function compare() {
    const others = data.comparisons;
    note(...engines);
    const controls = main.append("div").attr("class", "controls");
    const pick = controls.append("label").text("against the first: ").append("select").attr("id", "against");
    pick.selectAll("option").data(others).enter().append("option").attr("value", (c, i) => i).text(c => engines[c.second].title);
    const filter = controls.append("label").text("show ").append("select").attr("id", "filter");
    const said = controls.append("span").attr("class", "note").attr("role", "status");
    const box = main.append("div");
    const side = (rows, list, f) => [...new Set(list.map(i => f(rows[i])))].join(" + ") || "-";
    function draw() {
      box.selectAll("*").remove();
      const comparison = others[+pick.property("value")], a = engines[0].layers, b = engines[comparison.second].layers;
      const rows = comparison.pairs.map(([p, q]) => {
        const t = (layers, list) => d3.sum(list, i => layers[i].average);
        return { type: (p.length ? a[p[0]] : b[q[0]]).type, one: t(a, p), two: t(b, q), p1: side(a, p, l => l.precision), p2: side(b, q, l => l.precision),
          t1: side(a, p, l => l.tactic), t2: side(b, q, l => l.tactic), n1: side(a, p, l => l.name), n2: side(b, q, l => l.name), both: p.length > 0 && q.length > 0 };
      });
      const filters = { "all": () => true, "precision mismatch": r => r.both && r.p1 !== r.p2, "tactic mismatch": r => r.both && r.t1 !== r.t2, "only in one": r => !r.both };
      [...new Set(rows.map(r => r.type))].forEach(t => filters["type " + t] = r => r.type === t);
      const kept = filter.property("value");
      filter.selectAll("option").remove();
      filter.selectAll("option").data(Object.keys(filters)).enter().append("option").text(f => f);
      if (filters[kept]) filter.property("value", kept);
      const speed = r => r.two > 0 && r.one > 0 ? r.one / r.two : NaN, mark = r => speed(r) > 1.03 ? "faster" : speed(r) < .97 ? "slower" : "";
      const one = d3.sum(rows, r => r.one), two = d3.sum(rows, r => r.two), aligned = rows.filter(r => r.both).length;
      const again = (first, second) => first === second && first !== "-" ? "the same" : second;
      const shown = table(box, [{ title: "layers (1)", value: r => r.n1 }, { title: "type", value: r => r.type, word: true },
        { title: "ms (1)", value: r => r.one, text: r => ms(r.one), number: true }, { title: "ms (2)", value: r => r.two, text: r => ms(r.two), number: true },
        { title: "speedup (2)", value: r => speed(r) || 0, text: r => isNaN(speed(r)) ? "-" : d3.format(".3f")(speed(r)), number: true, mark },
        { title: "precision (1)", value: r => r.p1, word: true }, { title: "precision (2)", value: r => r.p2, word: true },
        { title: "tactic (1)", value: r => r.t1 }, { title: "tactic (2)", value: r => r.t2, text: r => again(r.t1, r.t2) },
        { title: "layers (2)", value: r => r.n2, text: r => again(r.n1, r.n2) }], rows, { order: [2, -1], label: "aligned layers" });
      const apply = () => { const n = shown.show(filters[filter.property("value")]); said.text(`${n} of ${rows.length} rows, ${aligned} aligned; ${ms(one)} and ${ms(two)} ms, ${two ? d3.format(".3f")(one / two) : "-"} times as fast`); };
      filter.on("change", apply);
      apply();
    }
    pick.on("change", draw);
    draw();
    const charts = main.append("div").attr("class", "charts");
    const all = [...new Set(engines.flatMap(e => e.layers.map(l => l.type)))];
    engines.forEach((e, n) => bars(charts, `Latencies by layer type: ${n + 1}, ${e.title} (ms)`, all.map(t => [t, d3.sum(e.layers.filter(l => l.type === t), l => l.average), typeColours[t] || other]).filter(r => r[1] > 0), ms));
  }

  function rawData() {
    main.append("p").text("Everything that this page shows, as JSON; it also stands in the page's source, in the element with the id \"data\".");
    main.append("button").attr("class", "plain").attr("type", "button").text("save as JSON").on("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }));
      link.download = "engine-report.json";
      link.click();
    });
  }

  // ---- tabs

  const parts = { Overview: overview, Latency: latency, Precision: precision, Layers: layers, Graph: graph, Roofline: roofline, Memory: memory, Tactics: tactics, Hazards: hazards, Build: build };
  if (engines.length > 1) parts.Compare = compare;
  parts.Data = rawData;
  const names = Object.keys(parts);
  const tabs = d3.select("#tabs").selectAll("button").data(names).enter().append("button").attr("role", "tab").attr("type", "button").attr("id", n => "tab-" + n)
    .attr("aria-controls", "main").text(n => n).on("click", open).on("keydown", (n, i) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[d3.event.key];
      if (step) { const next = names[(i + step + names.length) % names.length]; open(next); document.getElementById("tab-" + next).focus(); }
    });
  let current = "";
  function open(name) {
    current = name;
    tabs.attr("aria-selected", n => n === name).attr("tabindex", n => n === name ? 0 : -1);
    main.attr("aria-labelledby", "tab-" + name).selectAll("*").remove();
    parts[name]();
    document.body.dataset.drawn = name;
  }
  if (engines.length > 1) {
    const select = d3.select("#choose").append("label").text("engine ").append("select").attr("id", "engine");
    select.selectAll("option").data(engines).enter().append("option").attr("value", (e, i) => i).text((e, i) => `${i + 1}: ${e.title}`);
    select.on("change", () => { engine = engines[+select.property("value")]; chosen.layer = null; d3.select("#title").text(engine.title); open(current); });
  }
  document.title = engine.title + " - engine report";
  d3.select("#title").text(engine.title);
  open(names.includes(location.hash.slice(1)) ? location.hash.slice(1) : "Overview");
})();
