"""The schema of how a request signs in: `auth` with Basic, Bearer or a signature of AWS."""

from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from redline.errors import WrongValueError
from redline.model.catalogue import passed_names
from redline.model.sign_in import AwsSignIn, BasicSignIn, SignIn
from redline.model.template import has_placeholders
from redline.schema.http_texts import HeaderText
from redline.schema.types import Schema

_KINDS = ("basic", "bearer", "aws")
_NAMED = "write `${NAME}`, a variable of Redline's environment: suites and results are kept, and secrets are not"


def _checked_secret(text: str) -> str:
    if not passed_names(text):
        raise WrongValueError("a secret does not belong in a file", _NAMED)
    return text


def _named_or_filled(text: str) -> str:
    return text if has_placeholders(text) else _checked_secret(text)


def _plain(text: str) -> str:
    if has_placeholders(text):
        raise WrongValueError("placeholders are not filled in here", "write the text, or `${NAME}` for a variable")
    return text


_Plain = Annotated[HeaderText, AfterValidator(_plain)]
Secret = Annotated[_Plain, AfterValidator(_checked_secret)]


class BasicSignInSchema(Schema):
    """A user and a password."""

    user: _Plain = Field(description="the user, without a colon", pattern=r"^[^:]*$", examples=["ann"])
    password: Secret = Field(description="the password, as a variable", examples=["${PASSWORD}"])


class AwsSignInSchema(Schema):
    """A signature of AWS, Signature Version 4."""

    region: str = Field(pattern=r"^[A-Za-z0-9-]+$", description="the region", examples=["eu-central-1"])
    service: str = Field(pattern=r"^[A-Za-z0-9-]+$", description="the service", examples=["execute-api"])
    key: Annotated[_Plain, Field(min_length=1)] = Field(
        description="the access key's ID", examples=["${AWS_ACCESS_KEY_ID}"]
    )
    secret: Secret = Field(description="the secret access key, as a variable", examples=["${AWS_SECRET_ACCESS_KEY}"])
    session: Secret | None = Field(
        default=None,
        description="the session token of temporary keys, as a variable",
        examples=["${AWS_SESSION_TOKEN}"],
    )


class SignInSchema(Schema):
    """How a request signs in: exactly one of basic, bearer and aws."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in _KINDS]})

    basic: BasicSignInSchema | None = Field(
        default=None, description="a user and a password", examples=[{"user": "ann", "password": "${PASSWORD}"}]
    )
    bearer: Annotated[HeaderText, AfterValidator(_named_or_filled)] | None = Field(
        default=None, description="a token, as a variable; in a journey also a value taken", examples=["${TOKEN}"]
    )
    aws: AwsSignInSchema | None = Field(
        default=None,
        description="a signature of AWS, Signature Version 4, made at the beginning of each load",
        examples=[
            {
                "region": "eu-central-1",
                "service": "execute-api",
                "key": "${AWS_ACCESS_KEY_ID}",
                "secret": "${AWS_SECRET_ACCESS_KEY}",
            }
        ],
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [key for key in _KINDS if getattr(self, key) is not None]
        if len(given) != 1:
            problem = f"has {' and '.join(given)}" if given else "has nothing to sign in with"
            raise WrongValueError(f"`auth` {problem}", f"write exactly one of {', '.join(_KINDS)}")
        return self

    @property
    def headers(self) -> dict[str, str]:
        """The header of a token."""
        return {} if self.bearer is None else {"Authorization": f"Bearer {self.bearer}"}

    def sign_in(self) -> SignIn | None:
        """The value of the model; None for a token, which is a header."""
        if self.basic is not None:
            return BasicSignIn(user=self.basic.user, password=self.basic.password)
        if self.aws is None:
            return None
        aws = self.aws
        return AwsSignIn(
            region=aws.region, service=aws.service, key=aws.key, secret=aws.secret, session=aws.session or ""
        )
