"""Where the time of a small request goes, in thousands of instructions of user space, by callgrind.

Arguments: the server, the bare server, and files of bodies named json, vnd.safetensors or inference.
Counts 2,000 requests on one connection: the difference of two runs; the first file's by TLS, too. The zeroing of
libmicrohttpd's memory is left out, of which callgrind counts each turn of one instruction."""
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

FEW, MANY = 500, 2500
STEPS = [  # functions with those that they call, without others; none may have gone
    ("framing", ["srv_mhd_recv", "-srv_begin"]),
    ("header", ["srv_begin"]),
    ("decode and plan", ["parse"]),
    ("compute and encode", ["run", "write_loss"]),
    ("header fields of the answer", ["srv_response_make", "MHD_destroy_response"]),
    ("log line", ["srv_log_access"]),
]
IN_FOLDER = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=a -keyout key -out cert"


def connect(port, is_tls):
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ssl._create_unverified_context().wrap_socket(s) if is_tls else s


def ask(port, is_tls, path, content_type, body, times):
    request = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/"
               f"{content_type}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    with connect(port, is_tls) as s:
        for _ in range(times):
            s.sendall(request)
            answer = b""
            while True:
                answer += s.recv(65536)
                head, _, rest = answer.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                if length and len(rest) >= int(length[1]):
                    break
            assert head.startswith(b"HTTP/1.1 200"), head


def count(server, is_bare, is_tls, path, content_type, body, times):
    """Instructions by function: (of its own, with those that it calls)."""
    with tempfile.TemporaryDirectory() as folder:
        out, ports = f"{folder}/out", f"{folder}/port"
        flags = [] if is_bare else ["--listen", "127.0.0.1:0", "--port-file", ports]
        if is_tls:
            subprocess.run(IN_FOLDER.split(), cwd=folder, stderr=subprocess.DEVNULL, check=True)
            flags += ["--tls-cert", f"{folder}/cert", "--tls-key", f"{folder}/key"]
        with open(ports if is_bare else f"{folder}/printed", "w") as printed:
            process = subprocess.Popen(["valgrind", "-q", "--tool=callgrind",
                                        f"--callgrind-out-file={out}", server, *flags],
                                       stdout=printed, stderr=subprocess.DEVNULL)
        while not os.path.exists(ports) or not os.path.getsize(ports):
            time.sleep(0.1)
        time.sleep(0.5)
        ask(int(open(ports).read()), is_tls, path, content_type, body, times)
        process.send_signal(signal.SIGTERM)
        process.wait()
        return [table(out, "no"), table(out, "yes")]


def table(out, inclusive):
    text = subprocess.run(["callgrind_annotate", f"--inclusive={inclusive}", "--threshold=100", out],
                          capture_output=True, text=True, check=True).stdout
    result = {}
    for n, name in re.findall(r"^ *([\d,]+) \([^)]*\) +\S+?:(\S+)", text, re.M):
        result[name] = max(result.get(name, 0), int(n.replace(",", "")))
    return result


def measure(server, is_bare, is_tls, path, content_type, body):
    few, many = (count(server, is_bare, is_tls, path, content_type, body, n) for n in (FEW, MANY))
    def each(kind, name):
        if name.startswith("-"):
            return -each(kind, name[1:])
        return (many[kind].get(name, 0) - few[kind].get(name, 0)) / (MANY - FEW)
    total = sum(each(0, name) for name in many[0] if "memset" not in name)
    return total, [sum(each(1, name) for name in names) for _, names in STEPS]


def print_row(label, server, file, is_tls=False):
    name = os.path.basename(file)
    path = "/v2/models/kl_div/infer" if name == "inference" else "/kl_div"
    with open(file, "rb") as opened:
        body = opened.read()
    total, steps = measure(server, False, is_tls, path + "?reduction=sum", name, body)
    assert min(steps) > 0, steps
    print(f"| {label} | " + " | ".join(f"{n / 1e3:.1f}" for n in [total, *steps, total - sum(steps)]) + " |")


def main():
    server, bare, *files = sys.argv[1:]
    print("| thousands a request | all | " + " | ".join(label for label, _ in STEPS) + " | the rest |")
    print("|---|" + "---|" * (len(STEPS) + 2))
    for file in files:
        print_row(os.path.basename(file), server, file)
    print_row(os.path.basename(files[0]) + " by TLS", server, files[0], is_tls=True)
    total, _ = measure(bare, True, False, "/", "json", b"{}")
    print(f"| bare libmicrohttpd | {total / 1e3:.1f} |" + " |" * (len(STEPS) + 1))


main()
