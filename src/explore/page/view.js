// The model view: sheets of a graph on a canvas each, what is known of a node beside them, a search over everything. Everything that a file
// names goes into the page as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = data.views, side = d3.select("#side"), controls = d3.select("#controls");
  const short = (text, most) => text.length <= most ? text : text.slice(0, most - 1) + "…";
  const count = d3.format(","), si = d3.format(".3~s"), figure = d3.format(".4~g");
  const kLongestText = 4000, kMostFound = 200;
  let colouring = data.colour, found = null;

  // ---- what names mean

  views.forEach((view, v) => view.graphs.forEach((graph, g) => {
    graph.maker = {};
    graph.readers = {};
    graph.nodes.forEach((node, n) => {
      node.out.forEach(t => { if (t >= 0) graph.maker[t] = n; });
      node.in.forEach(t => { if (t >= 0) (graph.readers[t] = graph.readers[t] || []).push(n); });
      node.text = [node.name, node.op, ...(node.origin || []), ...node.in.concat(node.out).map(t => t < 0 ? "" : graph.tensors[t][0])].join("\n").toLowerCase();
    });
    graph.at = { v, g };
  }));
  const engine = views.find(view => view.engine), model = views.find(view => !view.engine);
  const layersOf = {}, nodesOf = {};
  if (engine && model) {
    engine.graphs[0].nodes.forEach((layer, n) => (layer.origin || []).forEach(name => (layersOf[name] = layersOf[name] || []).push(n)));
    model.graphs.forEach((graph, g) => graph.nodes.forEach((node, n) => (nodesOf[node.name] = nodesOf[node.name] || []).push([g, n])));
  }
  const weightOf = (view, graph, name) => graph.weights[name] || view.graphs[0].weights[name];
  const tensorText = (graph, t) => { const [, type, shape] = graph.tensors[t]; return shape || type ? `[${shape}] ${type}`.replace("[] ", "") : ""; };

  // ---- panes

  const panes = views.map((view, v) => {
    const element = d3.select("#panes").append("section").attr("class", "pane").attr("aria-label", view.engine ? "engine" : "model");
    const head = element.append("div").attr("class", "crumbs");
    const body = element.append("div").attr("class", "canvasbox");
    return { view, v, head, body, g: 0, s: view.graphs[0].sheets.length > 1 ? 1 : 0, trail: [] };
  });

  function paint(pane, node) {
    const paints = pane.view.graphs[pane.g].paints[colouring];
    return paints.palette[paints.nodes[node]];
  }
  function isFound(pane, item) {
    const [kind, index] = item;
    if (kind === "node") return found && found.has(`${pane.v} ${pane.g} ${index}`) || pane.partners && pane.partners.has(index);
    return kind === "sheet" && pane.partners && [...pane.partners].some(n => inSheet(pane, n, index));
  }
  function parents(graph) {
    if (graph.sheetOf) return graph.sheetOf;
    graph.sheetOf = {};
    graph.sheets.forEach((sheet, s) => { if (s > 0) sheet.items.forEach(([kind, index]) => { if (kind === "node") graph.sheetOf[index] = s; }); });
    return graph.sheetOf;
  }
  function inSheet(pane, node, s) {
    const graph = pane.view.graphs[pane.g];
    for (let at = parents(graph)[node]; at; at = at === 1 ? 0 : graph.sheets[at].parent) if (at === s) return true;
    return false;
  }
  function nodesIn(graph, s) {
    const sheet = graph.sheets[s];
    if (sheet.nodeCount === undefined) sheet.nodeCount = d3.sum(sheet.items, ([kind, index]) => kind === "node" ? 1 : kind === "sheet" ? nodesIn(graph, index) : 0);
    return sheet.nodeCount;
  }
  const last = path => path.split("/").filter(Boolean).pop() || path;

  function show(pane) {
    const graph = pane.view.graphs[pane.g], sheet = graph.sheets[pane.s];
    pane.body.selectAll("*").remove();
    const item = i => sheet.items[i];
    const lines = i => {
      const [kind, index] = item(i);
      if (kind === "node") { const node = graph.nodes[index]; return [(node.bodies ? "▸ " : "") + node.op + (node.ms ? `  ${figure(node.ms)} ms` : ""), node.name]; }
      if (kind === "sheet") return ["▸ " + last(graph.sheets[index].title), `${count(nodesIn(graph, index))} nodes`];
      if (kind === "from" || kind === "to") return [kind === "from" ? "from " + graph.nodes[index].op : "to " + graph.nodes[index].op, graph.nodes[index].name];
      const t = (kind === "in" ? graph.inputs : graph.outputs)[index];
      return [t < 0 ? "" : graph.tensors[t][0], t < 0 ? "" : tensorText(graph, t)];
    };
    const panel = getComputedStyle(document.documentElement).getPropertyValue("--panel").trim();
    pane.graph = drawGraph(pane.body, sheet, data.box, {
      label: `${pane.view.engine ? "Engine" : "Graph"} ${short(graph.title, 80)}, ${count(graph.nodes.length)} nodes. Arrow keys walk along tensors, Enter opens, plus, minus and 0 zoom.`,
      lines,
      colour: i => item(i)[0] === "node" ? paint(pane, item(i)[1]) : item(i)[0] === "sheet" ? sheetColour(pane, item(i)[1]) : panel,
      marked: i => item(i)[0] === "node" && graph.nodes[item(i)[1]].marked,
      edgeColour: e => colouring === "precision" ? data.colours.precision[e[3]] || data.colours.other : getComputedStyle(document.documentElement).getPropertyValue("--quiet").trim(),
      found: i => isFound(pane, item(i)),
      title: i => lines(i).map(l => short(l, 200)).join("\n"),
      describe: i => { const [bold, plain] = lines(i); return `${short(bold, 80)} ${short(plain, 200)}, ${i + 1} of ${sheet.items.length}`; },
      pick: i => pick(pane, i),
      open: i => open(pane, i),
    });
    crumbs(pane);
    document.body.dataset.drawn = `${pane.v} ${pane.g} ${pane.s}`;
  }
  /// A sheet has the colour of most of its nodes; by time that of its slowest.
  function sheetColour(pane, s) {
    const graph = pane.view.graphs[pane.g], sheet = graph.sheets[s];
    sheet.colours = sheet.colours || {};
    if (!sheet.colours[colouring]) {
      const inner = (at, to) => { graph.sheets[at].items.forEach(([kind, index]) => kind === "node" ? to.push(index) : kind === "sheet" && inner(index, to)); return to; };
      const nodes = inner(s, []), tally = {};
      if (colouring === "time") nodes.sort((a, b) => (graph.nodes[b].ms || 0) - (graph.nodes[a].ms || 0)).slice(0, 1).forEach(n => tally[paint(pane, n)] = 1);
      else nodes.forEach(n => { const c = paint(pane, n); tally[c] = (tally[c] || 0) + 1; });
      sheet.colours[colouring] = Object.keys(tally).sort((a, b) => tally[b] - tally[a])[0] || data.colours.other;
    }
    return sheet.colours[colouring];
  }
  function crumbs(pane) {
    const graph = pane.view.graphs[pane.g], steps = [];
    pane.head.selectAll("*").remove();
    const list = pane.head.append("nav").attr("aria-label", "where this graph is").append("ol");
    pane.trail.forEach((where, n) => steps.push([short(pane.view.graphs[where.g].title, 40), () => { pane.trail = pane.trail.slice(0, n); go(pane, where.g, where.s); }]));
    const path = [];
    for (let s = pane.s; s > 1; s = graph.sheets[s].parent) path.unshift(s);
    steps.push([short(graph.title, 60), pane.s > 1 ? () => go(pane, pane.g, 1) : null]);
    path.forEach(s => steps.push([last(graph.sheets[s].title), s === pane.s ? null : () => go(pane, pane.g, s)]));
    const entry = list.selectAll("li").data(steps).enter().append("li");
    entry.filter(step => step[1]).append("button").attr("class", "link").attr("type", "button").append("bdi").text(step => step[0]);
    entry.filter(step => !step[1]).append("bdi").attr("aria-current", "location").text(step => step[0]);
    entry.select("button").on("click", step => step[1]());
    const buttons = pane.head.append("span").attr("class", "buttons");
    if (graph.sheets.length > 1)
      buttons.append("button").attr("class", "plain fold").attr("type", "button").attr("aria-pressed", pane.s > 0).text("fold scopes").on("click", () => go(pane, pane.g, pane.s > 0 ? 0 : 1));
    buttons.append("button").attr("class", "plain").attr("type", "button").text("whole graph").on("click", () => pane.graph.fit());
    pane.head.append("span").attr("class", "note").text(`${count(graph.nodes.length)} ${pane.view.engine ? "layers" : "nodes"}`);
  }
  function go(pane, g, s) { pane.g = g; pane.s = s; show(pane); }
  function open(pane, i) {
    const graph = pane.view.graphs[pane.g], [kind, index] = graph.sheets[pane.s].items[i];
    if (kind === "sheet") return go(pane, pane.g, index);
    if (kind === "from" || kind === "to") return reveal(pane, pane.g, index);
    if (kind === "node" && graph.nodes[index].bodies) return enter(pane, graph.nodes[index].bodies[0][1]);
  }
  function enter(pane, g) {
    pane.trail.push({ g: pane.g, s: pane.s });
    go(pane, g, pane.view.graphs[g].sheets.length > 1 ? 1 : 0);
  }
  /// Shows a node wherever it is.
  function reveal(pane, g, n, quietly) {
    const graph = pane.view.graphs[g];
    if (pane.g !== g) { pane.trail = g === 0 ? [] : pane.trail.length ? pane.trail : [{ g: 0, s: pane.view.graphs[0].sheets.length > 1 ? 1 : 0 }]; pane.g = g; pane.s = -1; }
    const folded = graph.sheets.length > 1 && pane.s !== 0, s = folded ? parents(graph)[n] : 0;
    if (pane.s !== s || !pane.graph) go(pane, g, s);
    const i = graph.sheets[s].items.findIndex(([kind, index]) => kind === "node" && index === n);
    if (i < 0) return;
    pane.graph.choose(i);
    pane.graph.centre(i);
    if (!quietly) detail(pane, n);
  }
  function pick(pane, i) {
    const [kind, index] = pane.view.graphs[pane.g].sheets[pane.s].items[i];
    if (kind === "node") detail(pane, index);
    else if (kind === "sheet") sheetDetail(pane, index);
  }
  function partner(pane, n) {
    panes.forEach(p => { p.partners = null; });
    if (!engine || !model) return [];
    const node = pane.view.graphs[pane.g].nodes[n], to = panes.find(p => p !== pane);
    const list = pane.view.engine ? (node.origin || []).flatMap(name => nodesOf[name] || []) : (layersOf[node.name] || []).map(m => [0, m]);
    to.partners = new Set(list.filter(([g]) => g === to.g).map(([, m]) => m));
    if (list.length) reveal(to, list[0][0], list[0][1], true);
    panes.forEach(p => p.graph.repaint());
    return list;
  }

  // ---- details

  function heading(text, small) { side.append("h2").append("bdi").text(short(text, kLongestText)); if (small) side.append("p").attr("class", "note").text(small); }
  function pairs(rows) {
    const row = side.append("dl").selectAll("div").data(rows).enter().append("div");
    row.append("dt").append("bdi").text(r => short(r[0], 200));
    row.append("dd").append("bdi").text(r => short(String(r[1]), kLongestText));
  }
  function jump(parent, pane, g, n) {
    parent.append("button").attr("class", "link").attr("type", "button").on("click", () => reveal(pane, g, n)).append("bdi").text(short(pane.view.graphs[g].nodes[n].name, 120));
  }
  function histogram(parent, w) {
    const width = 300, height = 80, most = d3.max(w.bins) || 1, step = width / w.bins.length;
    const svg = parent.append("svg").attr("viewBox", `0 0 ${width} ${height + 16}`).attr("role", "img").attr("class", "bins")
      .attr("aria-label", `histogram of ${w.bins.length} bins from ${figure(w.least)} to ${figure(w.most)}: ${w.bins.join(", ")}`);
    svg.selectAll("rect").data(w.bins).enter().append("rect").attr("x", (b, i) => i * step).attr("width", Math.max(1, step - 1)).attr("y", b => height - b / most * height).attr("height", b => b / most * height);
    svg.append("text").attr("y", height + 12).text(figure(w.least));
    svg.append("text").attr("x", width).attr("y", height + 12).attr("text-anchor", "end").text(figure(w.most));
  }
  function weight(parent, w) {
    const rows = [["elements", count(w.count)], ["bytes", count(w.bytes)]];
    if (w.of) {
      if (w.of < w.count) rows.push(["looked at", `${count(w.of)} elements, evenly spread`]);
      rows.push(["least, most", `${w.least === null ? "-" : figure(w.least)}, ${w.most === null ? "-" : figure(w.most)}`], ["mean, deviation", `${w.mean === null ? "-" : figure(w.mean)}, ${w.deviation === null ? "-" : figure(w.deviation)}`], ["zeros", count(w.zeros)]);
      if (w.notFinite) rows.push(["NaN or infinite", count(w.notFinite)]);
    } else rows.push(["values", "are not in the file"]);
    const row = parent.append("dl").attr("class", "small").selectAll("div").data(rows).enter().append("div");
    row.append("dt").text(r => r[0]);
    row.append("dd").text(r => r[1]);
    if (w.bins && w.bins.length > 1) histogram(parent, w);
    if (w.values) parent.append("pre").text(short(w.values, kLongestText));
  }
  function tensors(pane, title, list, producers) {
    const graph = pane.view.graphs[pane.g];
    if (!list.length) return;
    side.append("h3").text(title);
    const entry = side.append("ul").attr("class", "tensors").selectAll("li").data(list).enter().append("li");
    entry.each(function(t, place) {
      const li = d3.select(this);
      if (t < 0) { li.append("span").attr("class", "note").text(`${place}: not given`); return; }
      const name = graph.tensors[t][0], w = producers && weightOf(pane.view, graph, name);
      li.append("b").append("bdi").text(short(name, 300));
      li.append("span").text(" " + tensorText(graph, t));
      if (producers && graph.maker[t] !== undefined) { const from = li.append("div").text("made by "); jump(from, pane, pane.g, graph.maker[t]); }
      const readers = graph.readers[t] || [];
      if (!producers && readers.length) {
        const to = li.append("div").text("read by ");
        readers.slice(0, 20).forEach((n, i) => { if (i) to.append("span").text(", "); jump(to, pane, pane.g, n); });
        if (readers.length > 20) to.append("span").text(` and ${readers.length - 20} more`);
      }
      if (w) weight(li, w);
    });
  }
  function detail(pane, n) {
    const graph = pane.view.graphs[pane.g], node = graph.nodes[n];
    side.selectAll("*").remove();
    heading(node.name || node.op, `${node.domain ? node.domain + "." : ""}${node.op}${node.precision ? ", " + node.precision : ""}${node.source ? ", " + node.source : ""}${node.ms ? `, ${figure(node.ms)} ms` : ""}`);
    (node.bodies || []).forEach(([name, g]) => side.append("p").append("button").attr("class", "plain").attr("type", "button").on("click", () => enter(pane, g)).append("bdi").text(`open ${short(name, 60)}: ${count(pane.view.graphs[g].nodes.length)} nodes`));
    const partners = partner(pane, n), to = panes.find(p => p !== pane);
    if (engine && model) {
      side.append("h3").text(pane.view.engine ? "Nodes of the model" : "Layers of the engine");
      if (!partners.length) side.append("p").attr("class", "note").text(pane.view.engine ? "none" : "none: it was folded, or is a view");
      const list = side.append("ul");
      partners.forEach(([g, m]) => jump(list.append("li"), to, g, m));
    } else if (node.origin) { side.append("h3").text("Nodes of the model"); side.append("ul").selectAll("li").data(node.origin).enter().append("li").append("bdi").text(t => short(t, 300)); }
    if (node.attributes) { side.append("h3").text("Attributes"); pairs(node.attributes); }
    tensors(pane, "Inputs", node.in, true);
    tensors(pane, "Outputs", node.out, false);
  }
  function sheetDetail(pane, s) {
    const graph = pane.view.graphs[pane.g];
    side.selectAll("*").remove();
    heading(graph.sheets[s].title, `${count(nodesIn(graph, s))} nodes`);
    side.append("button").attr("class", "plain").attr("type", "button").text("open").on("click", () => go(pane, pane.g, s));
    const tally = {};
    (function inner(at) { graph.sheets[at].items.forEach(([kind, index]) => kind === "node" ? tally[graph.nodes[index].op] = (tally[graph.nodes[index].op] || 0) + 1 : kind === "sheet" && inner(index)); })(s);
    pairs(Object.entries(tally).sort((a, b) => b[1] - a[1]));
  }
  function overview() {
    side.selectAll("*").remove();
    views.forEach(view => {
      heading(view.title);
      pairs(view.facts);
      const graph = view.graphs[0], io = (title, list) => { side.append("h3").text(title); pairs(list.filter(t => t >= 0).map(t => [graph.tensors[t][0], tensorText(graph, t)])); };
      io("Inputs", graph.inputs);
      io("Outputs", graph.outputs);
    });
    side.append("p").attr("class", "note").text("Choose a box to see what is known of it; double-click or Enter opens what is folded.");
  }

  // ---- search and colours

  const search = controls.append("label").text("find ").append("input").attr("type", "search").attr("id", "find").attr("placeholder", "node, operator, tensor");
  const colours = controls.append("label").text("colour by ").append("select").attr("id", "colour");
  colours.selectAll("option").data(["type", "precision", "time", "source"]).enter().append("option").text(c => c);
  colours.property("value", colouring).on("change", () => { colouring = colours.property("value"); legend(); panes.forEach(pane => pane.graph.repaint()); });
  controls.append("button").attr("class", "plain").attr("type", "button").text("about").on("click", overview);
  const hits = controls.append("span").attr("class", "note").attr("role", "status").attr("id", "hits");
  const results = d3.select("#panes").insert("ul", ":first-child").attr("id", "results").attr("aria-label", "found").attr("hidden", true);
  search.on("input", () => {
    const text = search.property("value").trim().toLowerCase(), list = [];
    found = text ? new Set() : null;
    if (text) views.forEach((view, v) => view.graphs.forEach((graph, g) => graph.nodes.forEach((node, n) => { if (node.text.includes(text)) { found.add(`${v} ${g} ${n}`); list.push([v, g, n]); } })));
    hits.text(text ? `${count(list.length)} found` : "");
    list.sort((a, b) => rank(a) - rank(b));
    function rank([v, g, n]) { const name = views[v].graphs[g].nodes[n].name.toLowerCase(); return name === text ? 0 : name.includes(text) ? 1 : 2; }
    results.selectAll("*").remove();
    results.attr("hidden", list.length > 1 ? null : true);
    list.slice(0, kMostFound).forEach(([v, g, n]) => { const li = results.append("li"); jump(li, panes[v], g, n); li.append("span").attr("class", "note").text(" " + short(views[v].graphs[g].nodes[n].op, 60)); });
    if (list.length > kMostFound) results.append("li").attr("class", "note").text(`and ${count(list.length - kMostFound)} more`);
    if (list.length) reveal(panes[list[0][0]], list[0][1], list[0][2]);
    panes.forEach(pane => pane.graph.repaint());
  });
  const key = controls.append("div").attr("class", "legend").attr("id", "legend");
  function legend() {
    key.selectAll("*").remove();
    const names = new Map();
    if (colouring !== "time") views.forEach(view => view.graphs.forEach(graph => graph.nodes.forEach((node, n) => {
      const name = colouring === "type" ? node.op : node[colouring] || "not known", paints = graph.paints[colouring];
      if (!names.has(name)) names.set(name, [0, paints.palette[paints.nodes[n]]]);
      ++names.get(name)[0];
    })));
    const rows = [...names].sort((a, b) => b[1][0] - a[1][0]).slice(0, 9);
    if (colouring === "time") rows.push(["dark takes longest" + (views.some(v => v.graphs[0].nodes.some(n => n.ms)) ? "" : " (no times are known: give a plan or a profile)"), [0, "#cd3c28"]]);
    const entry = key.selectAll("span.entry").data(rows).enter().append("span").attr("class", "entry");
    entry.append("i").style("background", r => r[1][1]);
    entry.append("bdi").text(r => short(r[0], 100));
  }

  document.title = views.map(view => short(view.title, 100)).join(" and ") + " - view";
  d3.select("#title").text("").append("bdi").text(views.map(view => short(view.title, 100)).join(" and "));
  d3.select("#panes").classed("two", panes.length > 1);
  panes.forEach(show);
  legend();
  overview();
  document.body.dataset.ready = "yes";
})();
