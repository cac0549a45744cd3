"""Check that a client's certificate and its key can be used, before anything is built or sent."""

from redline.errors import UsageError
from redline.model.way import ClientCertificate
from redline.wording import part

_MISMATCH = "KEY_VALUES_MISMATCH"


class _EncryptedError(Exception):
    """OpenSSL asked for the password of a key."""


def check_certificate(certificate: ClientCertificate) -> None:
    """Raise UsageError for a key that belongs to another certificate, has a password, or is none."""
    import ssl  # noqa: PLC0415 - few loads show a certificate

    def no_password() -> str:
        raise _EncryptedError

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_cert_chain(certificate.file, certificate.key_file, no_password)
    except _EncryptedError:
        hint = f"write it without: openssl pkey -in {certificate.key_file} -out plain.pem"
        raise UsageError(f"{certificate.key_file}: the key is encrypted with a password", hint=hint) from None
    except ssl.SSLError as error:
        if error.reason == _MISMATCH:
            message = f"{certificate.key_file} is not the key of the certificate in {certificate.file}"
            raise UsageError(message, hint="give the two files that belong together") from None
        message = f"{certificate.key_file} has no private key that can be read"
        raise UsageError(message, hint=f"give a PEM file with the certificate's key, {part('key')} or `key`") from None
    except OSError as error:
        raise UsageError(f"{certificate.key_file}: {error.strerror}", hint="name files that you may read") from None
