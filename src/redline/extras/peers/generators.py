"""The options of other load generators, and what they do not report, for `redline load --like`. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from redline.extras.peers.options import Options
from redline.extras.peers.tool_flags import (
    ab_flags,
    h2load_flags,
    hey_flags,
    k6_flags,
    oha_flags,
    vegeta_flags,
    wrk2_flags,
    wrk_flags,
)

_LIST = "write what is requested as a list: redline load --requests FILE"
_PROXY = "load the proxy itself"
_CERTIFICATE = "a client certificate cannot be given to the engine"
_SOCKET = "let the server listen on a port of 127.0.0.1"
_HOST = "give the server's own address in the URL, and --host or -H 'Host: …'"
_CLOSED = (
    "a user waits for an answer before the next request, so while the server stalls no requests are sent: "
    "times under a given rate need -R"
)
_MEAN = "a mean and a standard deviation say little of response times: read the percentiles"
_ALONE = "whether the load generator itself was the limit; engine lateness and the findings show it here"


@dataclass(frozen=True)
class Generator:
    """A load generator: its options, the flags of `redline load` for them, and what it does not report.

    `read` gets the values by name; the flags may hold `says`, more texts about what the tool does not report.
    `adds_scheme`: whether it takes `host:port/` for a URL.
    """

    options: Options
    read: Callable[[Mapping[str, Any]], Mapping[str, object]]
    says: tuple[str, ...]
    adds_scheme: bool = False


_WRK_VALUES = {
    "-c --connections": "connections",
    "-t --threads": "threads",
    "-d --duration": "lasts",
    "-H --header": "headers",
    "-T --timeout": "timeout",
    "-s --script": "script",
}
GENERATORS = {
    "wrk": Generator(
        Options("mixed", _WRK_VALUES, {"-L --latency": "latency"}, shown="-v --version"),
        wrk_flags,
        (_CLOSED, _MEAN, "only statuses from 400 on count as errors, not wrong answers", _ALONE),
    ),
    "wrk2": Generator(
        Options(
            "mixed",
            {**_WRK_VALUES, "-R --rate": "rate"},
            {"-L --latency": "latency"},
            shown="-U --u_latency -B --batch_latency -v --version",
        ),
        wrk2_flags,
        ("a rate that is not reached is not reported as such", _ALONE),
    ),
    "hey": Generator(
        Options(
            "go",
            {
                "-n": "count",
                "-c": "connections",
                "-q": "pace",
                "-z": "lasts",
                "-m": "method",
                "-H": "headers",
                "-t": "timeout",
                "-A": "accept",
                "-d": "body",
                "-D": "body_file",
                "-T": "content_type",
                "-U": "agent",
                "-a": "user",
                "-host": "host",
            },
            {"-h2": "http2", "-disable-keepalive": "closes", "-disable-compression": "uncompressed"},
            shown="-o= -disable-redirects",
            unneeded="-cpus=",
            refused={"-x=": _PROXY, "-h=": "give headers with -H"},
        ),
        hey_flags,
        (_CLOSED, _MEAN, "answers of any status count as responses", _ALONE),
    ),
    "oha": Generator(
        Options(
            "mixed",
            {
                "-n": "count",
                "-c": "connections",
                "-p": "depth",
                "-q": "rate",
                "-z --duration": "lasts",
                "-m --method": "method",
                "-H": "headers",
                "-t --timeout": "timeout",
                "-A": "accept",
                "-d": "body",
                "-D": "body_file",
                "-T": "content_type",
                "-a": "user",
                "--host": "host",
                "--http-version": "version",
                "--cacert": "cacert",
            },
            {
                "--http2": "http2",
                "--disable-keepalive": "closes",
                "--disable-compression": "uncompressed",
                "--insecure": "insecure",
            },
            shown="--no-tui -j --json --fps= --latency-correction -w --wait-ongoing-requests-after-deadline "
            "--disable-color --no-color --stats-success-breakdown --db-url= -o= --output= --output-format= "
            "-u= --time-unit=",
            unneeded="-r= --redirect= --no-pre-lookup --ipv4 --ipv6 --connect-timeout=",
            refused={
                "--burst-delay= --burst-rate=": "there are no bursts here",
                "--rand-regex-url --urls-from-file": _LIST,
                "-Z= -F= --form=": _LIST,
                "-x= --proxy-header= --proxy-http-version= --proxy-http2": _PROXY,
                "--cert= --key=": _CERTIFICATE,
                "--unix-socket= --vsock-addr=": _SOCKET,
                "--connect-to=": _HOST,
                "--aws-session= --aws-sigv4=": "requests cannot be signed individually",
                "--debug --dump-urls=": "it makes no load: leave it out",
            },
        ),
        oha_flags,
        (_CLOSED, "with -q and without --latency-correction, waiting for a free connection is not counted", _ALONE),
    ),
    "h2load": Generator(
        Options(
            "mixed",
            {
                "-n --requests": "count",
                "-c --clients": "connections",
                "-t --threads": "threads",
                "-m --max-concurrent-streams": "depth",
                "-D --duration": "lasts",
                "-H --header": "headers",
                "-d --data": "body_file",
                "-N --connection-inactivity-timeout": "timeout",
                "-p --no-tls-proto": "clear",
                "--npn-list --alpn-list": "spoken",
                "--rps": "pace",
                "--warm-up-time": "warmup",
            },
            {"--h1": "http1"},
            shown="-v --verbose --log-file= --qlog-file-base=",
            unneeded="-f= --max-frame-size= -w= --window-bits= -W= --connection-window-bits= --header-table-size= "
            "--encoder-header-table-size= --ciphers= --tls13-ciphers= --groups= --ktls --no-udp-gso "
            "--max-udp-payload-size=",
            refused={
                "-i= --input-file= --timing-script-file=": _LIST,
                "-B= --base-uri=": "give the whole URL",
                "-r= --rate= --rate-period=": "clients cannot be opened at a rate; for requests at a rate, use -R",
                "-T= --connection-active-timeout=": "connections are not closed after a time; "
                "see --requests-per-connection",
                "--connect-to=": _HOST,
                "--h3": "the engine speaks HTTP/1.1 and HTTP/2",
            },
        ),
        h2load_flags,
        (_CLOSED, "percentiles are not printed, only minimum, maximum, mean and deviation", _ALONE),
    ),
    "vegeta": Generator(
        Options(
            "go",
            {
                "-rate": "rate",
                "-duration": "lasts",
                "-max-connections": "most_connections",
                "-header": "headers",
                "-body": "body_file",
                "-timeout": "timeout",
                "-root-certs": "cacert",
                "-max-workers": "workers",
            },
            {"-http2": "http2", "-h2c": "http2_clear", "-insecure": "insecure", "-keepalive": "keeps"},
            shown="-name= -output= -prometheus-addr= -opentelemetry-addr= -max-body=",
            unneeded="-workers= -connections= -lazy -redirects= -dns-ttl= -resolvers= -session-tickets -chunked",
            refused={
                "-targets= -format=": "write the targets as a list: redline load --requests FILE",
                "-cert= -key=": _CERTIFICATE,
                "-proxy-header=": _PROXY,
                "-unix-socket=": _SOCKET,
                "-connect-to=": _HOST,
                "-laddr=": "the kernel chooses the local address",
            },
        ),
        vegeta_flags,
        ("times begin when a request is written, so the lateness of the attack itself is not in them", _ALONE),
    ),
    "ab": Generator(
        Options(
            "first",
            {
                "-n": "count",
                "-c": "connections",
                "-t": "lasts",
                "-H": "headers",
                "-C": "cookie",
                "-p": "body_file",
                "-u": "put_file",
                "-T": "content_type",
                "-m": "method",
                "-s": "timeout",
                "-A": "user",
            },
            {"-k": "keeps", "-i": "head"},
            shown="-l -q -r -d -S -w -v= -x= -y= -z= -g= -e=",
            unneeded="-b= -I -Z= -f=",
            refused={
                "-X= -P=": _PROXY,
                "-E=": _CERTIFICATE,
                "-B=": "the kernel chooses the local address",
                "-V -h": "it makes no load: leave it out",
            },
        ),
        ab_flags,
        (
            _CLOSED,
            _MEAN,
            "its requests are HTTP/1.0; here they are 1.1",
            "answers of another length are counted as failed, which dynamic pages always have",
            "whether its one thread, which drives all connections, was the limit",
        ),
        adds_scheme=True,
    ),
    "k6": Generator(
        Options(
            "mixed",
            {
                "-u --vus": "connections",
                "-d --duration": "lasts",
                "-i --iterations": "count",
                "-s --stage": "stages",
            },
            {"--insecure-skip-tls-verify": "insecure", "--no-connection-reuse": "closes"},
            shown="-q --quiet -v --verbose --no-color --no-summary --no-usage-report --no-thresholds -o= --out= "
            "--summary-export= --summary-mode= --summary-trend-stats= --summary-time-unit= --log-output= "
            "--log-format= --console-output= --http-debug --tag= --address=",
            unneeded="-e= --env= --discard-response-bodies --max-redirects= --user-agent=",
            refused={
                "--rps=": "give -R in place of users, or --pace for each user",
                "-c= --config=": "give its values as flags, such as --vus 10",
                "-p --paused": "it makes no load: leave it out",
                "--execution-segment= --execution-segment-sequence=": "a load is not cut into segments here",
                "--no-vu-connection-reuse --batch= --batch-per-host= --blacklist-ip= --dns= --hosts= --local-ips=": (
                    "leave it out, if the load may differ by it"
                ),
            },
            repeated=frozenset({"stages"}),
        ),
        k6_flags,
        (
            _CLOSED,
            "the script is not read: what it does between requests is missing here",
            "response times begin when a request is sent, and a check that fails fails no load",
            _ALONE,
        ),
    ),
}
