"""Options that another command has: what is said to somebody who gives them."""

import re

from redline.cli.curl_words import instead_of_curl

_IN_A_SUITE = "write the suite that this is with --write-suite FILE, and it into the load there"
_OF_OPEN_LOADS = "a search sends requests at a rate, and knows no such loads: see `redline load`"
_FOLLOW = "ask for what the URL leads to: `redline load URL --follow` says what that is"
_BY_COMMAND = {
    "ab": {
        "--limit": "use `redline limit A B`",
        "-c --connections --users": "use --load closed:N, or --load open:RATE",
        "-R --rate": "use --load open:RATE",
        "-d --duration": "use --for TIME, which is how long all of it takes",
        "--warmup --count --depth --pace --think --stage --arrivals --requests-per-connection --connections-at-start "
        "-t --threads --trials": _IN_A_SUITE,
        "--objective": "a comparison has verdicts: see --fail-on; objectives are met by `redline load` and `limit`, or "
        "in a suite",
        "--follow": _FOLLOW,
        "-s --server": "name the two in place: `redline ab A B`",
        "--on": "a comparison on the hosts of a cluster is a suite: `redline run SUITE --on ADDRESS`",
    },
    "limit": {
        "--speed": "a search looks for the speed of a recording; --start 2x is the first that it tries",
        "-R --rate": "a search looks for the rate; --start N is the first that it tries",
        "--users": "use -c N, the most connections; a search sends requests at a rate",
        "--depth --pace --think --stage --count --requests-per-connection --connections-at-start": _OF_OPEN_LOADS,
        "--follow": _FOLLOW,
        "--metric": "a limit is of an objective: --objective says of which",
        "--route": "give both: a URL of the proxy and of the server; or write `route` in redline.yaml",
        "--same-answers": "answers are compared by `redline ab`",
    },
    "load": {
        "--for": "use -d TIME",
        "--load": "use -c N for users, or -R RATE",
        "--path": "write the path into the URL",
        "--port": "write the port into the URL",
        "--trials --metric --threshold --fail-on": "a load is a single trial: `redline ab` and `run` compare",
        "--on": "a load on the hosts of a cluster is a suite: `redline run SUITE --on ADDRESS`",
    },
}
_UNKNOWN = re.compile(r"redline (\w+): no such option: ([^\s=]+)")


def instead_of(message: str) -> str:
    """The hint for a message of typer about an option that another command, or curl, has; empty for other messages."""
    if (match := _UNKNOWN.match(message)) is None:
        return ""
    command, option = match.groups()
    hints = _BY_COMMAND.get(command, {})
    return next((hint for options, hint in hints.items() if option in options.split()), "") or instead_of_curl(message)
