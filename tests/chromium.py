"""Chromium over its debugging pipe: opens a page, runs scripts, types, clicks, draws.

No driver and no package is needed: messages are JSON, each ended by a zero byte, on the
file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0  # seconds for an answer
KEYS = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Tab": {"code": "Tab", "windowsVirtualKeyCode": 9},
    " ": {"code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
}


def find_chromium() -> str | None:
    """Path of the system's Chromium; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A headless Chromium with one page, to be used in a ``with`` statement."""

    def __init__(self, path: str, *, language: str = "en-US"):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()
        self._out, self._in = ours_out, ours_in
        command = [
            path,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--lang={language}",
            f"--accept-lang={language}",
            f"--user-data-dir={self._folder.name}",
            "about:blank",
        ]
        # The browser expects its ends to be 3 and 4, whatever ours are.
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._buffer, self.events = 0, b"", list[dict[str, Any]]()
        self._session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(20)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give one command, and wait for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._out, text) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                break
            self.events.append(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select(
                [self._in], [], [], max(0, until - time.monotonic())
            )
            if not ready:
                raise TimeoutError("Chromium does not answer")
            got = os.read(self._in, 2**16)
            if not got:
                raise OSError("Chromium has ended")
            self._buffer += got
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    # pages --------------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        """Open a file, and wait until it is there."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait(
            "document.readyState === 'complete' && location.href !== 'about:blank'"
        )

    def run(self, script: str) -> Any:
        """What an expression of JavaScript gives, promises awaited."""
        done = self.call(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"])
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.02)

    # a person -----------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key, and let it go."""
        more = {"key": key, **KEYS[key]}
        kind = "keyDown" if "text" in more else "rawKeyDown"
        self.call("Input.dispatchKeyEvent", type=kind, **more)
        more.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **more)

    def click(self, what: str) -> None:
        """Click with the mouse on the middle of what an expression gives."""
        at = self.run(
            f"(() => {{ const e = {what}; e.scrollIntoView({{block: 'center'}}); "
            "const r = e.getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        where = {"x": at[0], "y": at[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **where)

    def click_button(self, words: str) -> None:
        """Click on the button that says some words, or is labelled with them."""
        self.click(
            "[...document.querySelectorAll('button')].find(b => "
            f"[b.textContent, b.ariaLabel].includes({json.dumps(words)}))"
        )

    # looks --------------------------------------------------------------------------------

    def look(self, width: int, height: int, dark: bool) -> None:
        """Give the page a size and a theme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        theme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self) -> bytes:
        """The whole page as a PNG."""
        taken = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True
        )
        return base64.b64decode(taken["data"])

    def paper(self) -> bytes:
        """The page as it is printed, a PDF."""
        printed = self.call("Page.printToPDF", preferCSSPageSize=True)
        return base64.b64decode(printed["data"])
