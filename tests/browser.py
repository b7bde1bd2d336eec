# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that opens one local page: what it logs, asks the network for, and answers when scripts ask it.

Speaks the DevTools protocol over two pipes, so that no port and no driver is needed.
"""

import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe"]
PATIENCE = 120


def program():
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class Browser:
    """with Browser() as browser: browser.open(path); browser.ask("document.title")"""

    def __init__(self, state=None):
        """`state`: what its file "Local State" holds, if anything."""
        self.state = state

    def __enter__(self):
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its helpers may still write

        if self.state:
            (pathlib.Path(self.folder.name) / "Local State").write_text(json.dumps(self.state))

        def place():  # the browser reads from 3 and writes to 4
            read, write = os.dup(to_read), os.dup(of_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen([program(), *FLAGS, f"--user-data-dir={self.folder.name}"], preexec_fn=place, close_fds=False,
                                        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(of_write)
        self.answers, self.number, self.buffer = {}, 0, b""
        self.errors, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.of)
        self.folder.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while self.number not in self.answers:
            self.take()
        answer = self.answers.pop(self.number)
        assert "error" not in answer, answer
        return answer["result"]

    def take(self):
        while b"\0" not in self.buffer:
            assert select.select([self.of], [], [], PATIENCE)[0], f"the browser has said nothing for {PATIENCE} s"
            piece = os.read(self.of, 1 << 16)
            assert piece, "the browser ended"
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if "id" in message:
            self.answers[message["id"]] = message
        elif message["method"] == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message["method"] == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"])
        elif message["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled"):
            self.errors.append(message["params"])
        elif message["method"] == "Page.loadEventFired":
            self.loaded = True

    def open(self, path, part=""):
        self.visit(pathlib.Path(path).resolve().as_uri() + part)

    def visit(self, address):
        self.loaded = False
        if "loaderId" not in self.call("Page.navigate", url=address):  # only the part behind # is new, which loads nothing
            self.call("Page.reload")
        while not self.loaded:
            self.take()

    def ask(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def resize(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        import base64
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
