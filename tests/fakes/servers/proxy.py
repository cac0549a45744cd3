"""A small proxy for tests of routes: `proxy.py PORT BEHAVIOUR UPSTREAM_HOST UPSTREAM_PORT UPSTREAM_CA`.

It passes bytes on, both ways, so HTTP/1.1 stays HTTP/1.1. `relay` connects to the server behind it without TLS;
`tls` over TLS, and offers HTTP/1.1 only; `tls-h2` offers HTTP/2 as well; `strict` checks the certificate; `stubborn`
answers 502; `frail` ends after four connections.
"""

import contextlib
import select
import socket
import ssl
import sys
import threading

ANSWER_502 = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def connected(behaviour: str, host: str, port: int, ca: str) -> socket.socket:
    plain = socket.create_connection((host, port), 5)
    plain.settimeout(None)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if behaviour not in ("tls", "tls-h2", "strict"):
        return plain
    strict = behaviour == "strict"
    context = ssl.create_default_context(cafile=ca) if strict else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not strict:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"] if behaviour == "tls-h2" else ["http/1.1"])
    return context.wrap_socket(plain, server_hostname="localhost")


def pass_on_both_ways(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes on until both have ended. In one thread: no two may use an SSL connection at the same time."""
    other = {client: server, server: client}
    open_ends = {client, server}
    with contextlib.suppress(OSError):
        while open_ends:
            held = {end for end in open_ends if isinstance(end, ssl.SSLSocket) and end.pending()}
            for end in held or select.select(open_ends, [], [])[0]:
                end.settimeout(0)  # TLS may have read a record for itself
                try:
                    data = end.recv(65536)
                except (ssl.SSLWantReadError, BlockingIOError):
                    continue
                finally:
                    end.settimeout(None)
                if data:
                    other[end].sendall(data)
                    continue
                open_ends.remove(end)
                if isinstance(other[end], ssl.SSLSocket):
                    return  # it cannot be closed by half
                other[end].shutdown(socket.SHUT_WR)


def passed_on(client: socket.socket, behaviour: str, host: str, port: int, ca: str) -> None:
    with client:
        try:
            if behaviour == "stubborn":
                raise ConnectionRefusedError
            server = connected(behaviour, host, port, ca)
        except OSError as error:
            print(f"upstream: {error}", flush=True)
            client.recv(65536)
            client.sendall(ANSWER_502)
            return
        with server:
            pass_on_both_ways(client, server)


def main(port: str, behaviour: str, host: str, upstream_port: str, ca: str = "") -> None:
    served = 0
    with socket.create_server(("127.0.0.1", int(port)), backlog=128) as listener:
        while behaviour != "frail" or served < 4:
            client, _ = listener.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            served += 1
            arguments = (client, behaviour, host, int(upstream_port), ca)
            threading.Thread(target=passed_on, args=arguments, daemon=True).start()
    sys.exit("too many connections")


if __name__ == "__main__":
    main(*sys.argv[1:])
