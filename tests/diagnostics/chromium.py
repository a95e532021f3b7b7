"""Drives a headless Chromium through its debugging pipe, with nothing but the standard library."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-sync",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--hide-scrollbars",
    "--no-first-run",
    "--mute-audio",
    "--remote-debugging-pipe",
)


def find_chromium():
    """The browser that the environment variable CHROMIUM names, or the first that is installed."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser with one page, whose messages, errors and requests are kept."""

    def __init__(self, program, timeout=60):
        self.timeout = timeout
        self.errors, self.requests = [], []
        self._number, self._buffer, self._answers, self._seen = 0, b"", {}, set()
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_commands, self._commands = os.pipe()
        self._messages, write_messages = os.pipe()
        # Copies beyond 4, so that neither is in the way of the other.
        pipes = [
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (read_commands, write_messages)
        ]
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"],
            # Chromium reads from descriptor 3 and writes to 4.
            preexec_fn=lambda: [os.dup2(end, place) for place, end in enumerate(pipes, 3)],
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (read_commands, write_messages, *pipes):
            os.close(end)
        targets = self._call("Target.getTargets", session=None)["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._call(
            "Target.attachToTarget",
            {"targetId": page["targetId"], "flatten": True},
            session=None,
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path, width, height=900):
        """Load a file at a width in pixels."""
        self.errors.clear()
        self.requests.clear()
        self._call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        self._seen.discard("Page.loadEventFired")
        self._call("Page.navigate", {"url": path.resolve().as_uri()})
        self._wait(lambda: "Page.loadEventFired" in self._seen)

    def run(self, script):
        """The value of an expression in the page."""
        options = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self._call("Runtime.evaluate", options)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key, code, text=""):
        """Press a key in whatever has the focus."""
        options = {"key": key, "windowsVirtualKeyCode": code}
        self._call("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **options})
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", **options})

    def type(self, text):
        """Type into whatever has the focus."""
        self._call("Input.insertText", {"text": text})

    def screenshot(self, path, whole=True):
        """Write a picture of the page, or of what of it is in sight."""
        answer = self._call("Page.captureScreenshot", {"captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self):
        """End the browser."""
        os.close(self._commands)
        os.close(self._messages)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def _call(self, method, options=None, session=""):
        self._number += 1
        message = {"id": self._number, "method": method, "params": options or {}}
        if session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        number = self._number
        self._wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _wait(self, is_done):
        end = time.monotonic() + self.timeout
        while not is_done():
            ready, _, _ = select.select([self._messages], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"Chromium did not answer in {self.timeout} s")
            received = os.read(self._messages, 1 << 20)
            if not received:
                raise RuntimeError("Chromium ended")
            *messages, self._buffer = (self._buffer + received).split(b"\0")
            for message in messages:
                self._handle(json.loads(message))

    def _handle(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, details = message["method"], message["params"]
        self._seen.add(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(details["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning"):
            self.errors.append(details["args"])
        elif method == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.errors.append(details["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
