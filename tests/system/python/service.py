"""A server for tests: KLDIV_SERVER is the program. And a server that answers as a script says."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time


class Server:
    def __init__(self, *flags):
        self.directory = tempfile.mkdtemp(prefix="kldiv-python-")
        self.socket = os.path.join(self.directory, "socket")
        port_file = os.path.join(self.directory, "port")
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.process = subprocess.Popen(
            [os.environ["KLDIV_SERVER"], "--listen", "127.0.0.1:0", "--listen", f"unix:{self.socket}", "--port-file",
             port_file, *flags], stdout=self.log, stderr=self.log, env={})
        deadline = time.monotonic() + 20
        while not (os.path.exists(port_file) and os.path.getsize(port_file)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(self.log.name, errors="replace") as log:
                    raise RuntimeError(f"the server did not start: {log.read()}")
            time.sleep(0.02)
        with open(port_file, encoding="ascii") as file:
            self.url = f"http://127.0.0.1:{int(file.read())}"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.log.close()
        shutil.rmtree(self.directory)


class Script:
    """Takes connections one after another; each answers its requests by its list of responses, and then closes. None
    closes without a response."""

    def __init__(self, *connections):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.requests = []
        self.thread = threading.Thread(target=self.run, args=[connections], daemon=True)
        self.thread.start()

    def run(self, connections):
        for responses in connections:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as file:
                for response in responses:
                    line, size = file.readline().decode().strip(), 0
                    while (header := file.readline().strip().lower()):
                        if header.startswith(b"content-length:"):
                            size = int(header.split(b":")[1])
                    file.read(size)
                    self.requests.append(line)
                    if response is None:
                        break
                    status, headers, body = response
                    connection.sendall(f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n{headers}\r\n{body}".encode())
        self.listener.close()
