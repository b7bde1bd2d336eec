# SPDX-License-Identifier: Apache-2.0
"""A headless Firefox under test, where one is installed: what it complains of, and answers when scripts ask it.

Speaks Marionette, its own protocol (each message is its length, a colon, and JSON), so that no driver is needed.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PREFERENCES = {"marionette.port": 0, "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
               "toolkit.telemetry.reportingpolicy.firstRun": False, "app.update.disabledForTesting": True, "network.captive-portal-service.enabled": False,
               "network.connectivity-service.enabled": False, "browser.startup.page": 0, "security.sandbox.content.level": 0}
# Of what pages of files ask a network for; the browser's own errands are not theirs.
WATCH = """globalThis.asked = [];
Services.obs.addObserver(channel => {
  const who = channel.QueryInterface(Ci.nsIChannel).loadInfo.triggeringPrincipal;
  if (who && who.schemeIs("file")) asked.push(channel.URI.spec);
}, "http-on-modify-request");"""
COMPLAINTS = """return Services.console.getMessageArray().filter(each => each instanceof Ci.nsIScriptError && each.sourceName.startsWith("file:"))
  .map(each => each.toString());"""


def program():
    return next((path for path in map(shutil.which, ("firefox-esr", "firefox")) if path), None)


class Firefox:
    """with Firefox() as browser: browser.open(path); browser.ask("document.title")"""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = pathlib.Path(self.folder.name)
        (profile / "user.js").write_text("".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()))
        self.process = subprocess.Popen([program(), "--headless", "--marionette", "--no-remote", "--profile", profile], start_new_session=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder.name})
        try:
            self.connect(profile / "MarionetteActivePort")
            self.call("WebDriver:NewSession", strictFileInteractability=False)
            self.browser(WATCH)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.folder.cleanup()

    def connect(self, port):
        while not (port.exists() and port.read_text().strip()):
            assert self.process.poll() is None, "Firefox ended"
            time.sleep(0.05)
        self.socket = socket.create_connection(("127.0.0.1", int(port.read_text())))
        self.stream, self.number = self.socket.makefile("rb"), 0
        self.take()  # it says who it is

    def take(self):
        length = b""
        while not length.endswith(b":"):
            piece = self.stream.read(1)
            assert piece, "Firefox ended"
            length += piece
        return json.loads(self.stream.read(int(length[:-1])))

    def call(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, number, error, result = self.take()
        assert number == self.number and error is None, error
        return result

    def browser(self, script):
        """Runs it where the browser itself lives."""
        self.call("Marionette:SetContext", value="chrome")
        answer = self.call("WebDriver:ExecuteScript", script=script, args=[])["value"]
        self.call("Marionette:SetContext", value="content")
        return answer

    def open(self, path, part=""):
        self.call("WebDriver:Navigate", url=pathlib.Path(path).resolve().as_uri() + part)

    def ask(self, script):
        return self.call("WebDriver:ExecuteScript", script=f"return {script}", args=[])["value"]

    def resize(self, width, height):
        self.call("WebDriver:SetWindowRect", width=width, height=height)

    @property
    def errors(self):
        return self.browser(COMPLAINTS)

    @property
    def requests(self):
        return self.browser("return globalThis.asked")
