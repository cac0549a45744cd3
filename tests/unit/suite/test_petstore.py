"""The petstore's request and the TLS material: a token that can be verified, a certificate that clients accept."""

import base64
import json
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from redline.suite import load_catalogue

CATALOGUE = Path(__file__).parents[3] / "catalogue"
PETS = [{"id": 1, "name": "catten", "tag": "cat"}, {"id": 2, "name": "doggy", "tag": "dog"}]
NEW_YEAR_2100 = 4_102_444_800


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def verified_claims(token: str, certificate: Path, folder: Path) -> dict[str, object]:
    """The claims of a token, if openssl verifies its signature."""
    head, claims, signature = token.split(".")
    public, signed = folder / "public.pem", folder / "signature"
    subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout", "-out", public], check=True)
    signed.write_bytes(decoded(signature))
    check = ["openssl", "dgst", "-sha256", "-verify", str(public), "-signature", str(signed)]
    subprocess.run(check, input=f"{head}.{claims}".encode(), check=True, capture_output=True)
    assert json.loads(decoded(head))["alg"] == "RS256"
    read: dict[str, object] = json.loads(decoded(claims))
    return read


def test_the_scenario_sends_the_token_that_the_certificate_verifies(tmp_path: Path) -> None:
    request = load_catalogue(CATALOGUE).scenarios["Petstore"].request
    token = (CATALOGUE / "petstore" / "token.txt").read_text().strip()
    assert (request.method, request.path) == ("GET", "/v1/pets")
    assert request.headers == {"J-Tenant-Id": "1007", "Authorization": f"Bearer {token}"}
    claims = verified_claims(token, CATALOGUE / "petstore" / "issuer.crt", tmp_path)
    assert (claims["exp"], claims["scope"]) == (NEW_YEAR_2100, ["read:pets", "write:pets"])
    assert request.expect.body == json.dumps(PETS, separators=(",", ":"))


def test_another_token_can_be_signed_that_expires_earlier(tmp_path: Path) -> None:
    subprocess.run([CATALOGUE / "petstore" / "sign", tmp_path, "1700000000"], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["issuer.crt", "token.txt"]
    token = (tmp_path / "token.txt").read_text().strip()
    assert verified_claims(token, tmp_path / "issuer.crt", tmp_path)["exp"] == 1_700_000_000


def handshake(folder: Path, name: str) -> None:
    """A TLS handshake in memory, between a server with the made certificate and a client that trusts the authority."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "server-both.pem")
    trusting = ssl.create_default_context(cafile=folder / "ca.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue


def test_the_made_certificate_is_for_localhost_and_127_0_0_1(tmp_path: Path) -> None:
    subprocess.run([CATALOGUE / "tls" / "make", tmp_path], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.pem", "server-both.pem", "server.key", "server.pem"]
    for name in ("localhost", "127.0.0.1"):
        handshake(tmp_path, name)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, "example.org")


@pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool of a JDK is not installed")
def test_a_jvm_gets_a_key_and_a_trusted_authority(tmp_path: Path) -> None:
    subprocess.run([CATALOGUE / "tls" / "make", tmp_path, "--jvm"], check=True)
    for store, holds in (("server.keystore", "PrivateKeyEntry"), ("ca.truststore", "trustedCertEntry")):
        listing = ["keytool", "-list", "-keystore", str(tmp_path / store), "-storepass", "password"]
        assert holds in subprocess.run(listing, check=True, capture_output=True, text=True).stdout


def test_a_wrong_command_line_prints_the_usage_and_makes_nothing(tmp_path: Path) -> None:
    for arguments in ([], [str(tmp_path / "tls"), "--java"]):
        done = subprocess.run([CATALOGUE / "tls" / "make", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "./make DIR [--jvm]" in done.stderr
    assert not (tmp_path / "tls").exists()
