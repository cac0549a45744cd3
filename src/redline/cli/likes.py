"""`redline load --like`: the load of another load generator's command, as flags."""

from redline.cli.command_line import LoadFlags
from redline.peers.like import Like, read_like
from redline.suite.urls import is_secure, is_url


def as_like(flags: LoadFlags) -> tuple[LoadFlags, Like | None]:
    """Return the flags with the load of `--like`, if given; other flags take precedence. Raises UsageError."""
    if flags.like is None:
        return flags, None
    like = read_like(flags.like)
    own = {name: getattr(flags, name) for name in flags.declared()}
    given = {name: value for name, value in own.items() if name in flags.typed or flags.given(among={name})}
    values = own | dict(like.flags) | given
    if values["url"] is not None and not (is_url(str(values["url"])) and is_secure(str(values["url"]))):
        values |= {"insecure": flags.insecure, "cacert": flags.cacert}
    return LoadFlags(**values | {"typed": flags.typed}), like
