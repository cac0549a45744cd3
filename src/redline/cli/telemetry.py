"""What `--openmetrics` and `--otlp` ask for: the load shows itself to other tools while it runs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from redline.cli.command_line import TelemetryFlags
from redline.cli.show import insist
from redline.errors import UsageError
from redline.plugins.telemetry.meter import Meter


@contextmanager
def metered(flags: TelemetryFlags, console: Console) -> Iterator[Meter | None]:
    """What takes in what the loads of a command show, until it ends; None where nobody asks for it.

    Raises UsageError for a port that is in use, a URL that is none, and without the extra.
    """
    openmetrics, otlp = flags.openmetrics, flags.otlp
    if openmetrics is None and otlp is None:
        yield None
        return
    meter = Meter()

    def say(text: str) -> None:
        insist(console, text)

    with ExitStack() as stack:
        url = None
        if openmetrics is not None:  # first: what can be refused at once must not wait for a collector
            if not 0 < openmetrics < 1 << 16:
                message = f"--openmetrics {openmetrics}: this is no port"
                raise UsageError(message, hint="give one from 1 to 65535, such as 9464")
            from redline.plugins.telemetry.openmetrics import served  # noqa: PLC0415 - no other load needs it

            url = stack.enter_context(served(meter, openmetrics))
        if otlp is not None:
            try:
                from redline.plugins.telemetry.otlp import pushed  # noqa: PLC0415 - an extra
            except ModuleNotFoundError as error:
                if not (error.name or "").startswith("opentelemetry"):
                    raise
                package = "opentelemetry-exporter-otlp-proto-http"
                hint = f"install {package} where Redline is; in a checkout: uv sync --extra otlp"
                raise UsageError("--otlp: the SDK of OpenTelemetry is not installed", hint=hint) from None
            stack.enter_context(pushed(meter, otlp, say))
        if url is not None:
            console.print(f"metrics: {url}", soft_wrap=True, highlight=False, markup=False)
        yield meter
