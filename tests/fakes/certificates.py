"""Certificates for one test run, which are not kept."""

import ssl
import subprocess
from pathlib import Path


class Certificate:
    """For these names: the server's certificate and key, and the authority that a client trusts."""

    def __init__(self, folder: Path, names: str = "DNS:localhost,IP:127.0.0.1") -> None:
        self._certificate, self._key = folder / "certificate.pem", folder / "key.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-days", "2", "-subj", "/CN=localhost", "-addext", f"subjectAltName={names}"),
                *("-addext", "basicConstraints=critical,CA:FALSE"),
                *("-keyout", str(self._key), "-out", str(self._certificate)),
            ],
            check=True,
            capture_output=True,
        )

    @property
    def files(self) -> tuple[Path, Path]:
        """The files of certificate and key."""
        return self._certificate, self._key

    @property
    def pem(self) -> str:
        """The certificate as text."""
        return self._certificate.read_text()

    def context(self, *alpn: str) -> ssl.SSLContext:
        """A server's TLS context, which agrees to these protocols."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self._certificate, self._key)
        if alpn:
            made.set_alpn_protocols(list(alpn))
        return made


def write_certificate(folder: Path, *, name: str = "localhost", days: int = 2) -> None:
    """`server.pem` for this name and this many days, maybe negative, `server.key`, and the authority `ca.pem`."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    made = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", "server.key")
    signed = ("-copy_extensions", "copyall", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    for command in (
        ("req", "-x509", *key, "-subj", "/CN=authority", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem"),
        ("req", *key, *made, "-out", "server.csr"),
        ("x509", "-req", "-in", "server.csr", *signed, "-days", str(days), "-out", "server.pem"),
    ):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)


class Issued:
    """A certificate of an authority, its key, and a file with both."""

    def __init__(self, certificate: Path, key: Path, both: Path) -> None:
        self.certificate, self.key, self.both = certificate, key, both


class Authority:
    """An authority that issues certificates for localhost, 127.0.0.1 and shop.example, and for clients."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.file, self._key = folder / "ca.pem", folder / "ca.key"
        _openssl("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", "/CN=ca", "-keyout", self._key, "-out", self.file)

    def issue(self, name: str, days: int = 2) -> Issued:
        """Issue a certificate that is valid for this many days; with -1 it has expired."""
        certificate, key, request = (self._folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        _openssl("req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        names = self._folder / "names"
        names.write_text("subjectAltName=DNS:localhost,DNS:shop.example,IP:127.0.0.1\n")
        signed = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-days", str(days), "-extfile", names)
        _openssl("x509", "-req", "-in", request, *signed, "-out", certificate)
        both = self._folder / f"{name}-both.pem"
        both.write_text(certificate.read_text() + key.read_text())
        return Issued(certificate, key, both)


_NEW_KEY = ("-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
