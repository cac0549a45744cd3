"""The schema of a scenario, in a suite or in the catalogue's `scenarios.yaml`."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from redline.errors import WrongValueError
from redline.model import Journey, Request, Scenario
from redline.schema.journey import JourneySchema
from redline.schema.request import METHOD_KEYS, METHODS, NAME, MixedSchema, RequestSchema
from redline.schema.types import Scalar, Schema
from redline.schema.websocket import WebSocketSchema

_INSTEAD = ("requests", "journey", "websocket")
"""What a scenario may have instead of a single request."""


class ScenarioSchema(RequestSchema):
    """A scenario: one request, `requests` that are drawn by weight, a `journey` of steps, or a `websocket`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in (*METHOD_KEYS, *_INSTEAD)]})

    about: str = Field(default="", description="one line for the reports")
    requests: list[MixedSchema] = Field(
        default=[],
        description="several requests instead of a single request",
        examples=[[{"weight": 3, "get": "/path0"}, {"get": "/path1"}]],
    )
    journey: JourneySchema | None = Field(
        default=None,
        description="steps in order instead of a single request",
        examples=[{"steps": [{"get": "/items"}, {"get": "/orders"}]}],
    )
    websocket: WebSocketSchema | None = Field(
        default=None,
        description="a message on a WebSocket of each user instead of a request",
        examples=[{"path": "/ws", "send": "message {seq}"}],
    )
    requires: dict[str, Scalar] = Field(
        default={}, description="server options that it needs", examples=[{"routes": 128}]
    )
    against: str | None = Field(
        default=None,
        description="the scenario to compare it with, on the same server",
        examples=["SimpleGet"],
    )

    @model_validator(mode="after")
    def _something_to_ask(self) -> "ScenarioSchema":
        several = next((key for key in _INSTEAD if getattr(self, key)), None)
        named = [*self.methods, *(key for key in _INSTEAD if getattr(self, key))]
        if len(named) != 1:
            problem = f"has {' and '.join(named)}" if named else "has no method"
            hint = f"write exactly one of {', '.join(METHODS)}: `get: /path0`; or `requests`, `journey` or `websocket`"
            raise WrongValueError(f"this scenario {problem}", hint)
        names = [request.name for request in self.requests if request.name]
        if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
            raise WrongValueError(f"the request `{twice}` is given twice", "rename one of the two", field="requests")
        if several and self.beside_method:
            message = f"`{self.beside_method}` cannot be combined with `{several}`"
            where = "`websocket`, if it has it" if self.websocket else "every step" if self.journey else "every request"
            raise WrongValueError(message, f"write it in {where}")
        return self

    def all_requests(self) -> tuple[Request, ...]:
        """All requests as values of the model."""
        if self.journey is not None:
            return tuple(step.request(name=step.name or "") for step in (*self.journey.once, *self.journey.steps))
        if self.websocket is not None:
            return (self.websocket.request(),)
        return tuple(request.request(request.weight, request.name or "") for request in self.requests) or (
            self.request(),
        )

    def scenario(self, name: str, picks: Mapping[str, tuple[str, ...]], journey: Journey | None = None) -> Scenario:
        """The value of the model, with the lines of the files that its requests pick from, and its journey."""
        first, *others = self.all_requests()
        return Scenario(
            name=name,
            about=self.about,
            request=first,
            others=tuple(others),
            picks=dict(picks),
            journey=journey,
            requires=self.requires,
            against=self.against,
        )


class ScenariosSchema(Schema):
    """`catalogue/scenarios.yaml`: scenarios that any suite may name."""

    about: str = Field(default="", description="what these scenarios have in common")
    scenarios: dict[Annotated[str, Field(pattern=NAME)], ScenarioSchema] = Field(
        min_length=1, description="scenarios by name: a letter, then letters, digits, - and _"
    )
