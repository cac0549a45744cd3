"""What `--openmetrics`, `--otlp` and `--remote-write` ask for: the load shows itself to other tools while it runs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from redline.cli.command_line import TelemetryFlags
from redline.cli.show import insist
from redline.errors import UsageError
from redline.extras.telemetry.meter import SummingMeter

OTLP_PACKAGES = "opentelemetry-exporter-otlp-proto-http"
REMOTE_WRITE_PACKAGES = "cramjam and protobuf"


@contextmanager
def metered(flags: TelemetryFlags, console: Console) -> Iterator[SummingMeter]:
    """What takes in what the loads of a command show, until it ends.

    Raises UsageError for a port that is in use, a URL that is none, and without the extra.
    """
    openmetrics = flags.openmetrics
    meter = SummingMeter()

    def say(text: str) -> None:
        insist(console, text)

    with ExitStack() as stack:
        url = None
        if openmetrics is not None:  # first: what can be refused at once must not wait for a collector
            if not 0 < openmetrics < 1 << 16:
                message = f"--openmetrics {openmetrics}: this is no port"
                raise UsageError(message, hint="give one from 1 to 65535, such as 9464")
            from redline.extras.telemetry.openmetrics import served  # noqa: PLC0415 - no other load needs it

            url = stack.enter_context(served(meter, openmetrics))
        if flags.otlp is not None:
            with _extra("--otlp", "opentelemetry", "the SDK of OpenTelemetry", OTLP_PACKAGES):
                from redline.extras.telemetry.otlp import pushed  # noqa: PLC0415 - an extra
            stack.enter_context(pushed(meter, flags.otlp, say))
        if (traces := getattr(flags, "otlp_traces", None)) is not None:
            with _extra("--otlp-traces", "opentelemetry", "the SDK of OpenTelemetry", OTLP_PACKAGES):
                from redline.extras.telemetry.otlp_traces import traced  # noqa: PLC0415 - an extra
            meter.traces = stack.enter_context(traced(traces, say))
        if flags.remote_write is not None:
            with _extra("--remote-write", ("cramjam", "google"), "what encodes it", REMOTE_WRITE_PACKAGES):
                from redline.extras.telemetry.remote_write import written  # noqa: PLC0415 - an extra
            stack.enter_context(written(meter, flags.remote_write, say))
        if url is not None:
            console.print(f"metrics: {url}", soft_wrap=True, highlight=False, markup=False)
        yield meter


@contextmanager
def _extra(flag: str, modules: str | tuple[str, ...], what: str, packages: str) -> Iterator[None]:
    """Import what an extra brings. Raises UsageError where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(modules):
            raise
        name = flag.removeprefix("--").removesuffix("-traces")
        hint = f"install {packages} where Redline is; in a checkout: uv sync --extra {name}"
        raise UsageError(f"{flag}: {what} is not installed", hint=hint) from None
