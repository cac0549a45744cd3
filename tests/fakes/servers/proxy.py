"""A small proxy for tests of routes: `proxy.py PORT BEHAVIOUR UPSTREAM_HOST UPSTREAM_PORT UPSTREAM_CA`.

It reads one request of a connection, passes it on, and gives the answer back. `relay` speaks plain HTTP/1.1 to the
server behind it; `tls` speaks TLS, and offers HTTP/1.1 alone; `tls-h2` offers HTTP/2 as well; `strict` checks the
certificate; `stubborn` always answers 502; `frail` dies after four requests.
"""

import socket
import ssl
import sys

ANSWER_502 = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def connected(behaviour: str, host: str, port: int, ca: str) -> socket.socket:
    plain = socket.create_connection((host, port), 5)
    if behaviour not in ("tls", "tls-h2", "strict"):
        return plain
    context = (
        ssl.create_default_context(cafile=ca) if behaviour == "strict" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    if behaviour != "strict":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"] if behaviour == "tls-h2" else ["http/1.1"])
    return context.wrap_socket(plain, server_hostname="localhost")


def passed_on(client: socket.socket, behaviour: str, host: str, port: int, ca: str) -> None:
    request = client.recv(65536)
    if behaviour == "stubborn":
        client.sendall(ANSWER_502)
        return
    try:
        with connected(behaviour, host, port, ca) as server:
            server.sendall(request)
            while data := server.recv(65536):
                client.sendall(data)
    except OSError as error:
        print(f"upstream: {error}", flush=True)
        client.sendall(ANSWER_502)


def main(port: str, behaviour: str, host: str, upstream_port: str, ca: str = "") -> None:
    served = 0
    with socket.create_server(("127.0.0.1", int(port))) as listener:
        while behaviour != "frail" or served < 4:
            client, _ = listener.accept()
            served += 1
            with client:
                passed_on(client, behaviour, host, int(upstream_port), ca)
    sys.exit("too many requests")


if __name__ == "__main__":
    main(*sys.argv[1:])
