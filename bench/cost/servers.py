"""The servers that peers and engine are compared on besides the oracle: nginx and nghttpd, with files of their own."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.rig import PATH
from redline.errors import LaunchError

TLS13_CIPHER = "TLS_AES_128_GCM_SHA256"
TLS12_CIPHER = "ECDHE-RSA-AES128-GCM-SHA256"
_STARTS_WITHIN_S = 10.0
_OPENSSL_CONFIG = f"""openssl_conf = all
[all]
ssl_conf = programs
[programs]
system_default = any
[any]
MinProtocol = TLSv1.3
Ciphersuites = {TLS13_CIPHER}
"""


@dataclass(frozen=True)
class TlsPorts:
    """One nginx's ports; each speaks one version with one cipher, so an answered client has agreed on them."""

    tls13: int
    tls12: int
    http2: int


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def nginx(folder: Path, core: int) -> Iterator[TlsPorts]:
    """nginx in one process on that core, with all its files below `folder`. Raises LaunchError."""
    certificate, key = _certificate(folder)
    ports = TlsPorts(free_port(), free_port(), free_port())
    config = folder / "nginx.conf"
    config.write_text(_nginx_config(folder, certificate, key, ports))
    command = [_needed("nginx"), "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]
    with _serving(command, core, ports.http2, folder / "error.log"):
        yield ports


@contextmanager
def nghttpd(folder: Path, core: int, *, tls: bool = False) -> Iterator[int]:
    """nghttpd with one thread on that core, and one small file: HTTP/2 by prior knowledge or over TLS 1.3. Raises
    LaunchError.
    """
    root, port = folder / "www", free_port()
    root.mkdir(exist_ok=True)
    (root / PATH[1:]).write_text(PATH[1:])
    command = [_needed("nghttpd"), "-a", "127.0.0.1", "-n1", "-d", str(root)]
    env = dict(os.environ)
    if tls:
        certificate, key = _certificate(folder)
        command += [str(port), str(key), str(certificate)]
        # It has no flag for the ciphers of TLS 1.3.
        config = folder / "openssl.cnf"
        config.write_text(_OPENSSL_CONFIG)
        env["OPENSSL_CONF"] = str(config)
    else:
        command += ["--no-tls", str(port)]
    with _serving(command, core, port, folder / "nghttpd.log", env):
        yield port


def _needed(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise LaunchError(f"{name} is not installed", hint=f"apt-get install {name}")
    return found


@contextmanager
def _serving(command: list[str], core: int, port: int, log: Path, env: dict[str, str] | None = None) -> Iterator[None]:
    with (log.parent / f"{log.name}.out").open("w") as output:
        pinned = ["taskset", "--cpu-list", str(core), *command]
        process = subprocess.Popen(pinned, stdout=output, stderr=output, env=env)
    try:
        _wait(process, port, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    said = "".join(file.read_text(errors="replace") for file in log.parent.glob(f"{log.name}*"))
    raise LaunchError(f"{process.args!r} does not listen: {said[-300:]}", hint="run it by hand")


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed one with an RSA key of 2,048 bits."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = [_needed("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(
        [*command, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True, timeout=60
    )
    return certificate, key


def _nginx_config(folder: Path, certificate: Path, key: Path, ports: TlsPorts) -> str:
    tls13 = f"ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites {TLS13_CIPHER};"
    tls12 = f"ssl_protocols TLSv1.2; ssl_ciphers {TLS12_CIPHER};"
    servers = "".join(
        f"  server {{ listen 127.0.0.1:{port} {words}; {tls} location / {{ return 200 '{PATH[1:]}'; }} }}\n"
        for port, words, tls in (
            (ports.tls13, "ssl", tls13),
            (ports.tls12, "ssl", tls12),
            (ports.http2, "ssl http2", tls13),
        )
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    scratch = "".join(f"  {kind}_temp_path {folder / kind};\n" for kind in kinds)
    return (
        f"daemon off;\nmaster_process off;\npid {folder / 'nginx.pid'};\nerror_log {folder / 'error.log'} warn;\n"
        "events { worker_connections 4096; }\n"
        f"http {{\n  access_log off;\n  default_type text/plain;\n{scratch}"
        "  keepalive_requests 1000000000;\n  keepalive_timeout 3600s;\n  keepalive_time 24h;\n"
        f"  ssl_certificate {certificate};\n  ssl_certificate_key {key};\n{servers}}}\n"
    )
