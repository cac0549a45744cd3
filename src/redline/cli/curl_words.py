"""Options of curl that have another name here, or none: what is said to somebody who gives them."""

import re

_SENDS_HEADERS = "give the header that the server wants: -H 'Authorization: …'"
_BODY = "use `--body TEXT` or `--body @FILE`"
_HTTP = "the engine speaks HTTP/1.1, and HTTP/2 with `--http2`"
_INSTEAD = {
    "-k": "use `--insecure`",
    "-L --location --location-trusted": "redirects are not followed under load; `redline load --follow` asks for what "
    "they lead to",
    "-u --basic": "use `--user NAME:PASSWORD`",
    "--digest --ntlm --negotiate --anyauth --netrc --netrc-file": _SENDS_HEADERS,
    "-n": "use `--count N` for a number of requests",
    "--data --data-raw --data-binary --data-ascii --data-urlencode -T --upload-file": _BODY,
    "-F --form --form-string": "write `multipart: [{name: photo, file: photo.png}]` into a list for `--requests`",
    "-G --get --url-query": "write the query into the URL",
    "-A --user-agent": "give -H 'User-Agent: …'",
    "-b --cookie": "give -H 'Cookie: name=value'; a journey has a jar of cookies for each user",
    "-e --referer": "give -H 'Referer: …'",
    "-r --range": "give -H 'Range: bytes=0-99'",
    "-I --head": "use `-X HEAD`",
    "--url": "give the URL alone",
    "-E": "use `--cert FILE`",
    "--interface": "use `--source ADDRESS`",
    "--tlsv1 --tlsv1.2": "TLS 1.2 and 1.3 are the default; `--tls-max 1.2` leaves only the former",
    "--tlsv1.3": "use `--tls-min 1.3`",
    "--tls13-ciphers": "use `--ciphers NAME:…`, which has the suites of all versions",
    "--no-sessionid": "use `--no-session-resumption`",
    "--http2-prior-knowledge": "use `--http2`, which is by prior knowledge without TLS",
    "--http1.1": "leave it out: HTTP/1.1 is the default",
    "-0 --http1.0 --http3 --http3-only": _HTTP,
    "--max-time --connect-timeout": "use `--timeout TIME`",
    "-U --proxy-user": "write them into the URL: -x http://USER:PASSWORD@HOST:PORT",
    "-p --proxytunnel": "leave it out: `-x` always opens a tunnel",
    "--socks4 --socks4a --socks5 --socks5-hostname --preproxy": "only HTTP proxies are spoken to: `-x http://HOST:PORT`",
    "--path-as-is -g --globoff": "leave it out: paths are sent as they are",
    "--request-target": "write the path into the URL",
    "--haproxy-protocol": "the engine does not speak the PROXY protocol",
}
_HINTS = {option: hint for options, hint in _INSTEAD.items() for option in options.split()}
_UNKNOWN = re.compile(r"redline (?:load|limit|ab): no such option: ([^\s=]+)")


def instead_of_curl(message: str) -> str:
    """The hint for a message of typer about an option of curl; empty for other messages."""
    match = _UNKNOWN.match(message)
    return "" if match is None else _HINTS.get(match[1], "")
