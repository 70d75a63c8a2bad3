# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Chromium without a window, spoken to over a pipe in its own DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from edpm_lab.command import tied

SECONDS = 60.0
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip

Scheme = Literal["light", "dark"]
Answer = dict[str, Any]


class Browser:
    """One tab. What the page does wrong is collected: `errors` of its script and console, `requests` that it makes."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._pending = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{room}.enable")

    def look_at(self, *, width: int = 1280, height: int = 900, scheme: Scheme = "light") -> None:
        """The size of the window and the colours that the reader prefers."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, file: Path, fragment: str = "") -> None:
        """Load the page anew and wait until its script has run."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=file.as_uri() + (f"#{fragment}" if fragment else ""))
        deadline = time.monotonic() + SECONDS
        while self.run("location.protocol + document.readyState") != "file:complete":
            assert time.monotonic() < deadline, "the page does not load"
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def type(self, text: str) -> None:
        """Text at the keyboard, into whatever has the focus."""
        self._call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """One key: Tab or Enter."""
        code = {"Tab": 9, "Enter": 13}[key]
        more = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def screenshot(self, file: Path) -> None:
        """The whole page as a picture, for a person to look at."""
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self._call("Browser.close")

    def _call(self, method: str, **params: Any) -> Answer:
        self._number += 1
        message: Answer = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._note(answer)

    def _next(self) -> Answer:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "Chromium does not answer"
            read = os.read(self._reader, 1 << 20)
            assert read, "Chromium has ended"
            self._pending += read
        first, _, self._pending = self._pending.partition(b"\0")
        return dict(json.loads(first))

    def _note(self, event: Answer) -> None:
        method, params = event.get("method", ""), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.errors.append(json.dumps(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own that is gone with the test."""
    to_browser, from_browser = os.pipe(), os.pipe()
    # The protocol's pipes are the descriptors 3 and 4, by definition; the shell puts them there.
    script = f'exec chromium "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [*tied(), "bash", "-c", script, "bash", *FLAGS, f"--user-data-dir={folder / 'profile'}"],
            pass_fds=(to_browser[0], from_browser[1]),
            env={**os.environ, "HOME": str(folder)},
            stdout=log,
            stderr=log,
        )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        browser = Browser(from_browser[0], to_browser[1])
        yield browser
        browser.close()
    finally:
        os.close(to_browser[1])
        os.close(from_browser[0])
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
