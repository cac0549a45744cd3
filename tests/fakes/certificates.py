"""Certificates that sign themselves, made for one test run; nothing of them is kept."""

import ssl
import subprocess
from pathlib import Path


class Certificate:
    """For `localhost` and 127.0.0.1: what a server shows, and what a client trusts."""

    def __init__(self, folder: Path) -> None:
        self._certificate, self._key = folder / "certificate.pem", folder / "key.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-addext", "basicConstraints=critical,CA:FALSE"),
                *("-keyout", str(self._key), "-out", str(self._certificate)),
            ],
            check=True,
            capture_output=True,
        )

    @property
    def pem(self) -> str:
        """The certificate as text."""
        return self._certificate.read_text()

    def context(self, *alpn: str) -> ssl.SSLContext:
        """A server's side, which agrees to these protocols."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self._certificate, self._key)
        if alpn:
            made.set_alpn_protocols(list(alpn))
        return made


def write_certificate(folder: Path, *, name: str = "localhost", days: int = 2) -> None:
    """`server.pem` for this name and so many days, which may be negative, `server.key`, and the same as `ca.pem`."""
    made_of = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}")
    request = ("req", "-new", *made_of, "-addext", f"subjectAltName=DNS:{name}")
    signed = ("x509", "-req", "-in", "request.pem", "-signkey", "server.key", "-copy_extensions", "copyall")
    for command in (
        (*request, "-keyout", "server.key", "-out", "request.pem"),
        (*signed, "-days", str(days), "-out", "server.pem"),
    ):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
    (folder / "ca.pem").write_text((folder / "server.pem").read_text())
