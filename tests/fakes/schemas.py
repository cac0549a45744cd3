"""The JSON Schemas of what users write, as docs/reference publishes them."""

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import DictSchema

from redline.schema.project import ProjectSchema
from redline.schema.scenario import ScenariosSchema
from redline.schema.server import FamilySchema, LibrariesSchema
from redline.schema.suite import SuiteSchema

FILES: dict[str, type[BaseModel]] = {
    "suite.schema.json": SuiteSchema,
    "server.schema.json": FamilySchema,
    "scenarios.schema.json": ScenariosSchema,
    "libraries.schema.json": LibrariesSchema,
    "project.schema.json": ProjectSchema,
}


class _JsonSchema(GenerateJsonSchema):
    """Names that do not match their pattern are errors, as they are to the parser."""

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": False} if "patternProperties" in made else made


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema (draft 2020-12) of each kind of file, by the name under which docs/reference publishes it."""
    return {
        name: {"$schema": GenerateJsonSchema.schema_dialect, **model.model_json_schema(schema_generator=_JsonSchema)}
        for name, model in FILES.items()
    }
