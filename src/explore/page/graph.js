// A graph that stands placed in the page's data, drawn on a canvas: what is outside of the window costs nothing, and what is too small to be
// read has no text. Keys walk along its edges, and a line beside it says where one is.
"use strict";
/// Dark or light, whichever can be read on a colour.
function inkOn(fill) {
  const c = d3.color(fill).rgb(), part = v => (v /= 255) <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4);
  return .2126 * part(c.r) + .7152 * part(c.g) + .0722 * part(c.b) > .18 ? "#0b0e11" : "#ffffff";
}
function drawGraph(parent, sheet, box, options) {
  // options: label, lines(i), colour(i) or nothing, title(i), pick(i), open(i), found(i), describe(i)
  const [boxWidth, boxHeight] = box, items = sheet.items, edges = sheet.edges;
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const frame = parent.append("div").attr("class", "graph");
  const canvas = frame.append("canvas").attr("tabindex", 0).attr("role", "application").attr("aria-roledescription", "graph").attr("aria-label", options.label);
  const said = parent.append("p").attr("class", "note spoken").attr("role", "status");
  const node = canvas.node(), pen = node.getContext("2d");
  const before = items.map(() => []), after = items.map(() => []);
  edges.forEach((e, n) => { after[e[0]].push(n); before[e[1]].push(n); });
  let chosen = -1, view = d3.zoomIdentity, waiting = false, drawn = 0, scale = 1, width = 0, height = 0;

  // Rows of the layout, so that a window finds its boxes without asking all of them.
  const rows = d3.nest().key(i => items[i][3]).entries(d3.range(items.length)).map(r => ({ y: +r.key, items: r.values.sort((a, b) => items[a][2] - items[b][2]) })).sort((a, b) => a.y - b.y);
  const rowAt = y => d3.bisector(r => r.y).left(rows, y);
  const spans = edges.map((e, n) => ({ n, top: Math.min(items[e[0]][3], items[e[1]][3]), bottom: Math.max(items[e[0]][3], items[e[1]][3]) })).sort((a, b) => a.top - b.top);
  const longest = d3.max(spans, s => s.bottom - s.top) || 0;

  const inks = {};
  function way(e) {
    const a = items[e[0]], b = items[e[1]], points = [[a[2], a[3] + boxHeight / 2]];
    for (let i = 5; i + 1 < e.length; i += 2) points.push([e[i], e[i + 1]]);
    points.push([b[2], b[3] - boxHeight / 2]);
    return points;
  }
  function traceWay(points) {
    pen.moveTo(points[0][0], points[0][1]);
    for (let i = 1; i < points.length; ++i) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i], m = (y0 + y1) / 2;
      pen.bezierCurveTo(x0, m, x1, m, x1, y1);
    }
  }
  /// As much of a text as the width holds: what stands in its middle gives way, for names are told apart by their ends.
  const lengths = new Map(), ends = text => text.length <= 80 ? text : text.slice(0, 40) + text.slice(-40);
  function fits(text, most) {
    const key = `${pen.font} ${most} ${text}`;
    if (lengths.has(key)) return lengths.get(key);
    let length = text.length, cut = text;
    while (length > 1 && pen.measureText(cut).width > most) {
      length = Math.max(1, Math.floor(length * Math.min(.95, most / pen.measureText(cut).width)));
      cut = text.slice(0, Math.ceil(length / 2)) + "…" + text.slice(text.length - Math.floor(length / 2));
    }
    lengths.set(key, cut);
    return cut;
  }

  function draw() {
    if (!node.isConnected) return;  // the page shows another part by now
    waiting = false;
    const rect = frame.node().getBoundingClientRect();
    scale = window.devicePixelRatio || 1;
    width = rect.width || 800, height = rect.height || 500;
    if (node.width !== Math.round(width * scale) || node.height !== Math.round(height * scale)) { node.width = Math.round(width * scale); node.height = Math.round(height * scale); }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = colour("--ground");
    pen.fillRect(0, 0, width, height);
    pen.translate(view.x, view.y);
    pen.scale(view.k, view.k);
    const left = -view.x / view.k, top = -view.y / view.k, right = left + width / view.k, bottom = top + height / view.k;
    const quiet = colour("--quiet"), ground = colour("--ground"), accent = colour("--accent"), line = colour("--line"), panel = colour("--panel");
    const reads = view.k > .38;
    // Edges, those of what is chosen last.
    const near = [];
    for (let s = d3.bisector(s => s.top).left(spans, top - longest - boxHeight); s < spans.length && spans[s].top <= bottom; ++s)
      if (spans[s].bottom >= top) near.push(edges[spans[s].n]);
    for (const strong of [false, true]) {
      const some = near.filter(e => (e[0] === chosen || e[1] === chosen) === strong);
      d3.nest().key(e => strong ? accent : options.edgeColour && options.edgeColour(e) || quiet).entries(some).forEach(group => {
        pen.beginPath();
        group.values.forEach(e => traceWay(way(e)));
        pen.strokeStyle = group.key;
        pen.lineWidth = (strong ? 2.5 : 1.2) / Math.min(1, Math.max(view.k, .15) * 1.6);
        pen.stroke();
      });
    }
    if (view.k > .6) {
      pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      pen.textAlign = "center";
      pen.lineWidth = 3;
      pen.strokeStyle = ground;
      pen.fillStyle = quiet;
      const written = {};  // where a tensor that goes two ways is named already
      near.forEach(e => {
        const [a, b] = way(e), what = ends(e[2]), text = fits(e[4] > 1 ? `${what}, ${e[4]} tensors` : what, boxWidth);
        const x = (a[0] + b[0]) / 2, y = (a[1] + b[1]) / 2 + 4, wide = pen.measureText(text).width;
        const names = written[e[0] + " " + text] || (written[e[0] + " " + text] = []);
        if (names.some(n => Math.abs(n[0] - x) < wide && Math.abs(n[1] - y) < 12)) return;
        names.push([x, y]);
        pen.strokeText(text, x, y);
        pen.fillText(text, x, y);
      });
    }
    drawn = 0;
    for (let r = rowAt(top - boxHeight); r < rows.length && rows[r].y <= bottom + boxHeight; ++r) {
      const list = rows[r].items;
      for (let at = d3.bisector(i => items[i][2]).left(list, left - boxWidth); at < list.length && items[list[at]][2] <= right + boxWidth; ++at) box_(list[at]);
    }
    function box_(i) {
      ++drawn;
      const [kind, , x, y] = items[i], fill = options.colour(i) || panel, x0 = x - boxWidth / 2, y0 = y - boxHeight / 2;
      pen.beginPath();
      if (reads) round(x0, y0, boxWidth, boxHeight, kind === "node" ? 6 : kind === "sheet" ? 3 : boxHeight / 2);
      else pen.rect(x0, y0, boxWidth, boxHeight);
      pen.fillStyle = fill;
      pen.fill();
      const hit = options.found && options.found(i);
      pen.setLineDash(kind === "from" || kind === "to" ? [5, 3] : []);
      pen.strokeStyle = i === chosen ? accent : hit ? "#e6007e" : options.marked && options.marked(i) ? "red" : line;
      pen.lineWidth = i === chosen || hit ? 4 / Math.min(1, view.k * 1.5) : options.marked && options.marked(i) ? 6 : 1;
      pen.stroke();
      pen.setLineDash([]);
      if (kind === "sheet" && reads) { pen.beginPath(); pen.rect(x0 + 4, y0 + 4, boxWidth - 8, boxHeight - 8); pen.lineWidth = 1; pen.strokeStyle = inkOn(fill); pen.stroke(); }
      if (!reads) return;
      const [bold, plain] = options.lines(i);
      pen.fillStyle = inks[fill] || (inks[fill] = inkOn(fill));
      pen.textAlign = "center";
      pen.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
      pen.fillText(fits(ends(bold), boxWidth - 14), x, plain ? y - 3 : y + 4);
      pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
      if (plain) pen.fillText(fits(ends(plain), boxWidth - 14), x, y + 13);
    }
  }
  function round(x, y, w, h, r) {
    pen.moveTo(x + r, y);
    pen.arcTo(x + w, y, x + w, y + h, r);
    pen.arcTo(x + w, y + h, x, y + h, r);
    pen.arcTo(x, y + h, x, y, r);
    pen.arcTo(x, y, x + w, y, r);
    pen.closePath();
  }
  function later() { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }
  function itemAt(px, py) {
    const [x, y] = view.invert([px, py]);
    for (let r = rowAt(y - boxHeight / 2); r < rows.length && rows[r].y <= y + boxHeight / 2; ++r)
      for (const i of rows[r].items) if (Math.abs(items[i][2] - x) <= boxWidth / 2) return i;
    return -1;
  }
  const zoom = d3.zoom().scaleExtent([.005, 4]).on("zoom", () => { view = d3.event.transform; later(); });
  canvas.call(zoom).on("dblclick.zoom", null);
  canvas.on("click", () => { const i = itemAt(...d3.mouse(node)); if (i >= 0) choose(i); });
  canvas.on("dblclick", () => { const i = itemAt(...d3.mouse(node)); if (i >= 0 && options.open) options.open(i); });
  canvas.on("mousemove", () => { const i = itemAt(...d3.mouse(node)); node.title = i >= 0 && options.title ? options.title(i) : ""; node.style.cursor = i >= 0 ? "pointer" : "grab"; });
  const rowOf = i => rows[rowAt(items[i][3])].items;
  canvas.on("keydown", () => {
    const key = d3.event.key, list = chosen >= 0 ? rowOf(chosen) : [], at = list.indexOf(chosen);
    let next = -1;
    if (key === "ArrowDown") next = chosen < 0 ? 0 : after[chosen].length ? edges[after[chosen][0]][1] : -1;
    else if (key === "ArrowUp") next = chosen >= 0 && before[chosen].length ? edges[before[chosen][0]][0] : -1;
    else if (key === "ArrowLeft") next = at > 0 ? list[at - 1] : -1;
    else if (key === "ArrowRight") next = at >= 0 && at + 1 < list.length ? list[at + 1] : -1;
    else if (key === "Home") next = 0;
    else if (key === "End") next = items.length - 1;
    else if (key === "Enter" && chosen >= 0 && options.open) { options.open(chosen); d3.event.preventDefault(); return; }
    else if (key === "+" || key === "-") { canvas.call(zoom.scaleBy, key === "+" ? 1.3 : 1 / 1.3); d3.event.preventDefault(); return; }
    else if (key === "0") { fit(); d3.event.preventDefault(); return; }
    else return;
    d3.event.preventDefault();
    if (next >= 0 && next < items.length) { choose(next); centre(next); }
  });
  function choose(i, quietly) {
    chosen = i;
    if (i >= 0) said.text(options.describe(i));
    if (i >= 0 && !quietly && options.pick) options.pick(i);
    later();
  }
  function centre(i, k) {
    measure();
    const to = k || Math.max(view.k, .7);
    canvas.call(zoom.transform, d3.zoomIdentity.translate(width / 2 - to * items[i][2], height / 2 - to * items[i][3]).scale(to));
  }
  function measure() { const r = frame.node().getBoundingClientRect(); width = r.width || 800; height = r.height || 500; }
  function fit() {
    measure();
    const k = Math.min(width / sheet.width, height / sheet.height, 1);
    canvas.call(zoom.transform, d3.zoomIdentity.translate((width - k * sheet.width) / 2, Math.max(4, (height - k * sheet.height) / 2)).scale(k));
  }
  /// As much of the beginning as can be read; of a wide one what has the most neighbours there.
  function begin() {
    if (!items.length) return;
    measure();
    const k = Math.max(Math.min(width / sheet.width, 1), .55), top = d3.range(items.length).filter(i => k * items[i][3] < height);
    const hub = d3.scan(top, (a, b) => before[b].length + after[b].length - before[a].length - after[a].length);
    const x = k * sheet.width <= width ? (width - k * sheet.width) / 2 : width / 2 - k * items[top[hub] || 0][2];
    canvas.call(zoom.transform, d3.zoomIdentity.translate(x, Math.min(8, height / 2 - k * items[0][3])).scale(k));
  }
  if (window.ResizeObserver) new ResizeObserver(later).observe(frame.node());
  window.matchMedia("(prefers-color-scheme: dark)").addListener(later);
  window.matchMedia("print").addListener(draw);
  begin();
  draw();  // at once: what is printed or pictured does not wait for a frame
  const api = { choose: i => choose(i, true), centre, fit, repaint: later, draw, count: items.length, edgeCount: edges.length, drawn: () => { draw(); return drawn; }, chosen: () => chosen };
  node.graph = api;
  return api;
}
