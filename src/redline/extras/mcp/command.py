"""`redline mcp`: serve the tools on stdin and stdout until the client goes. Progress goes to stderr."""

from redline.cli.command_line import McpFlags
from redline.extras.mcp.tools import served


def execute(flags: McpFlags) -> None:
    """Serve them. The SDK keeps stdout for the protocol alone: what else is written there goes to stderr."""
    del flags
    served().run("stdio")
