"""A client for tests of code that starts servers: not the engine, which they test."""

import http.client


def request_status(host: str, port: int, path: str = "/", within_s: float = 5) -> int | str:
    """The status of `GET path`, on a connection of its own; or why there was no answer in that time."""
    connection = http.client.HTTPConnection(host, port, timeout=within_s)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()
