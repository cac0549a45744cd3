"""Commands, one module each; and what the functions of Python share with them."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.cli.commands.ab import created as created_comparison
    from redline.cli.commands.limit import created as created_search
    from redline.cli.commands.load import LoadOrder, LoadOutputs, measure
    from redline.cli.commands.run import created as created_run
    from redline.cli.commands.run import created_of as created_run_of
    from redline.cli.experiment import search
    from redline.cli.quiet import wait_until_quiet
    from redline.cli.session_view import SessionView
else:
    __getattr__ = offered(__name__)
