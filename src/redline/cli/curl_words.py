"""Options of curl that have another name here, or none: what is said to somebody who gives them."""

import re

_SENDS_HEADERS = "give the header that the server wants: -H 'Authorization: …'"
_BODY = "use `--body TEXT` or `--body @FILE`"
_HTTP = "the engine speaks HTTP/1.1, and HTTP/2 with `--http2`"
_INSTEAD = {
    "-L --location --location-trusted --max-redirs --post301 --post302 --post303 "
    "--proto-redir": "redirects are not followed under load; `redline load --follow` asks for what they lead to",
    "-u --basic": "use `--user NAME:PASSWORD`",
    "-n": "use `--count N` for a number of requests",
    "--digest --ntlm --ntlm-wb --negotiate --anyauth --delegation --service-name": _SENDS_HEADERS,
    "--netrc --netrc-file --netrc-optional": "use `--user 'NAME:${PASSWORD}'`, a variable of your environment",
    "--login-options --sasl-ir --sasl-authzid --krb": "it is not for HTTP: leave it out",
    "--data --data-raw --data-binary --data-ascii --data-urlencode -T --upload-file": _BODY,
    "--crlf -B --use-ascii -a --append": "leave it out: a body is sent as it is",
    "-F --form --form-string --form-escape": "write `multipart: [{name: photo, file: photo.png}]` into a list for "
    "`--requests`",
    "-G --get --url-query": "write the query into the URL",
    "-r --range -C --continue-at": "give -H 'Range: bytes=0-99', and `--status 206`",
    "-z --time-cond --etag-compare --etag-save": "give -H 'If-None-Match: …' or -H 'If-Modified-Since: …', and "
    "`--status 304`",
    "--cookie-jar -j --junk-session-cookies": "a journey has a jar of cookies for each user",
    "--url": "give the URL alone",
    "-: --next --config -K": "write the requests into a list, for `--requests FILE`; a file of commands of curl is "
    "one too",
    "--expect100-timeout": "write `expect_continue: 1s` into a list for --requests",
    "-Z --parallel-max --parallel-immediate": "use `-c N`, the number of connections; in `ab`, `--load closed:N`",
    "--interface --local-port": "use `--source ADDRESS`",
    "-4 --ipv4 -6 --ipv6 --dns-interface --dns-ipv4-addr --dns-ipv6-addr --dns-servers --doh-url --doh-insecure "
    "--doh-cert-status": "use `--resolve HOST:PORT:ADDRESS`; otherwise the system looks names up",
    "--happy-eyeballs-timeout-ms": "several addresses are tried in turn: see `--addresses`",
    "--abstract-unix-socket": "let the server listen on a socket with a path, for `--unix-socket PATH`",
    "--capath": "use `--cacert FILE`, one file with all authorities",
    "--pinnedpubkey": "use `--cacert FILE` with the server's own certificate",
    "--pass --cert-type --key-type": "certificates and keys are PEM without a password: `openssl pkey -in KEY -out "
    "plain.pem`",
    "--cert-status --crlfile": "leave it out: revocation is not checked",
    "--tlsauthtype --tlsuser --tlspassword": "the engine does not speak TLS-SRP; use `--cert` or `--user`",
    "-2 --sslv2 -3 --sslv3 --tlsv1.0 --tlsv1.1 -1 --tlsv1 --tlsv1.2": "TLS 1.2 and 1.3 are the default; `--tls-max "
    "1.2` leaves only the former",
    "--tlsv1.3": "use `--tls-min 1.3`",
    "--tls13-ciphers": "use `--ciphers NAME:…`, which has the suites of all versions",
    "--curves": "the engine offers X25519, P-256 and P-384, and no choice of them",
    "--ssl --ssl-reqd": "write https:// in the URL",
    "--false-start --ssl-allow-beast --ssl-no-revoke --ssl-revoke-best-effort --ssl-auto-client-cert --egd-file "
    "--engine --random-file": "leave it out: it is about another library for TLS",
    "--no-sessionid": "use `--no-session-resumption`",
    "--no-alpn --no-npn": "leave it out: only `--http2` depends on ALPN",
    "--http2-prior-knowledge": "use `--http2`, which is by prior knowledge without TLS",
    "--http1.1": "leave it out: HTTP/1.1 is the default",
    "-0 --http1.0 --http0.9 --http3 --http3-only": _HTTP,
    "--alt-svc --hsts": "leave it out: only the URL says where requests go",
    "--tr-encoding --raw --ignore-content-length": "leave it out: bodies are framed as RFC 9112 says, and counted as "
    "they come",
    "--max-time --connect-timeout": "use `--timeout TIME`",
    "-Y --speed-limit -y --speed-time": "use `--timeout TIME`, or `--abort-when`",
    "--limit-rate --max-filesize": "leave it out: answers are read as fast as they come",
    "--retry --retry-all-errors --retry-connrefused --retry-delay --retry-max-time": "leave it out: a request is sent "
    "once, and failures are counted",
    "--fail --fail-early --fail-with-body": "leave it out: an answer with another status than that of `--status` is "
    "an error",
    "--tcp-nodelay --keepalive-time": "leave it out: requests are sent at once, and idle connections without probes",
    "--tcp-fastopen": "the engine does not send data with the first packet",
    "-U --proxy-user": "write them into the URL: -x http://USER:PASSWORD@HOST:PORT",
    "-p --proxytunnel --proxy-basic --proxy1.0 --suppress-connect-headers": "leave it out: `-x` always opens a "
    "tunnel, and signs in by Basic",
    "--proxy-anyauth --proxy-digest --proxy-negotiate --proxy-ntlm --proxy-service-name "
    "--proxy-header": "a proxy gets no header but its sign-in by Basic: -x http://USER:PASSWORD@HOST:PORT",
    "--proxy-cacert --proxy-capath --proxy-cert --proxy-cert-type --proxy-ciphers --proxy-crlfile --proxy-insecure "
    "--proxy-key --proxy-key-type --proxy-pass --proxy-pinnedpubkey --proxy-ssl-allow-beast "
    "--proxy-ssl-auto-client-cert --proxy-tls13-ciphers --proxy-tlsauthtype --proxy-tlspassword --proxy-tlsuser "
    "--proxy-tlsv1": "a proxy is spoken to without TLS: `-x http://HOST:PORT`",
    "--socks4 --socks4a --socks5 --socks5-hostname --socks5-basic --socks5-gssapi --socks5-gssapi-nec "
    "--socks5-gssapi-service --preproxy": "only HTTP proxies are spoken to: `-x http://HOST:PORT`",
    "--noproxy": "leave out `-x`: variables such as http_proxy are not read",
    "--path-as-is -g --globoff": "leave it out: paths are sent as they are",
    "--request-target": "write the path into the URL",
    "--haproxy-protocol": "the engine does not speak the PROXY protocol",
    "--proto --proto-default --disallow-username-in-url --disable": "leave it out: URLs are of http:// or https://, "
    "without a user, and no .curlrc is read",
}
_HINTS = {option: hint for options, hint in _INSTEAD.items() for option in options.split()}
_UNKNOWN = re.compile(r"redline (?:load|limit|ab): no such option: ([^\s=]+)")


def instead_of_curl(message: str) -> str:
    """The hint for a message of typer about an option of curl; empty for other messages."""
    match = _UNKNOWN.match(message)
    return "" if match is None else _HINTS.get(match[1], "")
