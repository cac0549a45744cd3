"""The report as JSON: the model itself, so that the published schema is the contract."""

from redline.model import Report


class JsonRenderer:
    """Report -> JSON, indented by two, UTF-8, a newline at the end. The same report gives the same bytes."""

    def render(self, report: Report) -> bytes:
        """The whole report; docs/reference/report.schema.json describes it."""
        return report.model_dump_json(indent=2).encode() + b"\n"
