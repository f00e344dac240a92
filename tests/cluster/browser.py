"""A headless Chromium over the DevTools protocol: just what the tests of the dashboard need."""

import base64
import json
import os
import re
import socket
import struct
import subprocess
import time
import urllib.request
from pathlib import Path

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--remote-debugging-port=0", "--hide-scrollbars",
]  # fmt: skip


class Browser:
    """One page. `close` ends the process."""

    def __init__(self, program: str, directory: Path) -> None:
        self._log = (directory / "chromium.log").open("wb")
        command = [program, *FLAGS, f"--user-data-dir={directory / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        port = self._port(directory / "profile" / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60) as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        self._connect(port, re.sub(r"^ws://[^/]*", "", pages[0]["webSocketDebuggerUrl"]))
        self._number = 0
        self.messages = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _port(self, path: Path) -> int:
        ends = time.monotonic() + 90
        while time.monotonic() < ends:
            if path.exists() and path.read_text().count("\n") >= 1:
                return int(path.read_text().split("\n")[0])
            time.sleep(0.05)
        raise TimeoutError("Chromium did not start")

    # -- the socket -----------------------------------------------------------------------------------------------

    def _connect(self, port: int, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=90)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._stream = self._socket.makefile("rb")
        while self._stream.readline().strip():
            pass

    def _send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = bytes([0x81, 0x80 | size]) if size < 126 else b"\x81\xfe" + struct.pack(">H", size)
        if size >= 1 << 16:
            head = b"\x81\xff" + struct.pack(">Q", size)
        self._socket.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))

    def _receive(self) -> dict:
        data = b""
        while True:
            first, second = self._stream.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._stream.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._stream.read(8))
            data += self._stream.read(size)
            if first & 0x80:
                return json.loads(data)

    def call(self, method: str, **parameters) -> dict:
        self._number += 1
        self._send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.messages.append(message)

    # -- pages ----------------------------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str):
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, script: str, seconds: float = 60):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            found = self.run(f"(() => {{ try {{ return {script}; }} catch {{ return null; }} }})()")
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"never true: {script}\n{self.text()[:2000]}")

    def text(self) -> str:
        return self.run("document.body ? document.body.innerText : ''") or ""

    def wait_for_text(self, text: str) -> None:
        """Editors write blanks that do not break lines."""
        self.wait_for(f"document.body.innerText.replaceAll('\\u00a0', ' ').includes({json.dumps(text)})")

    def click(self, label: str, within: str = "body") -> None:
        """The button or link with this text."""
        selector = json.dumps(f"{within} button, {within} a")
        self.wait_for(
            f"(() => {{ const found = [...document.querySelectorAll({selector})]"
            f".find((one) => one.innerText.trim() === {json.dumps(label)}); found?.click(); return !!found; }})()"
        )

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def colours(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def script_errors(self) -> list[str]:
        """Exceptions that no script has caught."""
        self.run("1")
        return [
            str(message["params"]["exceptionDetails"])
            for message in self.messages
            if message["method"] == "Runtime.exceptionThrown"
        ]

    def problems(self) -> list[str]:
        """Errors of scripts and of the content security policy, and requests to other hosts."""
        self.run("1")
        found = []
        for message in self.messages:
            details = message.get("params", {})
            if message["method"] == "Runtime.exceptionThrown":
                found.append(str(details["exceptionDetails"]))
            if message["method"] == "Log.entryAdded" and details["entry"]["source"] in {"security", "violation"}:
                found.append(details["entry"]["text"])
            if message["method"] == "Network.requestWillBeSent":
                url = details["request"]["url"]
                if not re.match(r"(blob:)?http://127\.0\.0\.1:|data:|about:|chrome", url):
                    found.append(f"request to {url}")
        return found

    def close(self) -> None:
        self._stream.close()
        self._socket.close()
        self._process.terminate()
        self._process.wait(60)
        self._log.close()
