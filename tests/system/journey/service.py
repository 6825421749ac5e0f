"""A server for programs that run commands of pages."""
import os
import subprocess
import tempfile
import time


class Server:
    """A server on a free port and a unix socket, with its store in a file. At the end of the block it must end with 0."""

    def __init__(self, binary, *flags):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.folder.name, "socket")
        self.command = [os.path.abspath(binary), "--listen", "127.0.0.1:0,unix:" + self.socket,
                        "--store", "sqlite:" + os.path.join(self.folder.name, "kldiv.db"), "--log-level", "warning", *flags]

    def __enter__(self):
        port = os.path.join(self.folder.name, "port")
        self.process = subprocess.Popen([*self.command, "--port-file", port])
        for _ in range(300):
            if os.path.exists(port) and os.path.getsize(port):
                break
            time.sleep(0.05)
        with open(port) as file:
            self.url = "http://127.0.0.1:" + file.read().strip()
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        status = self.process.wait()
        self.folder.cleanup()
        assert kind or status == 0, f"the server ended with {status}"
