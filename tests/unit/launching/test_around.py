"""Commands around a start: in which order they run, with what, what their failures say, and that they end."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from redline.errors import LaunchError
from redline.launching.around import Around
from redline.launching.command import CommandLauncher
from redline.launching.guard import LaunchOrder
from redline.model import ServerEntry, Start, Variant
from redline.ports import Launch, Placement
from tests.unit.launching.test_servers import COMMAND


def launch(folder: Path, start: Start, took_ns: list[int]) -> Launch:
    entry = ServerEntry(name="shop", about="a shop", runtime="", family_folder=str(folder), start=start)
    return Launch(Variant(entry=entry), Placement(), folder / "logs/server.log", on_setup=took_ns.append)


def around(folder: Path, within_s: float = 20.0, **commands: str) -> Around:
    launched = launch(folder, Start.model_validate({"command": COMMAND, **commands}), [])
    order = LaunchOrder(COMMAND, folder, dict(os.environ), (), 1, None, launched.log, secrets=("swordfish-1", "fish-1"))
    return Around(launched, order, 8000, folder, within_s)


def failure(made: Around) -> LaunchError:
    with pytest.raises(LaunchError) as error, made.set_up():
        pass
    return error.value


def test_they_run_around_the_server_in_its_folder_with_its_port(tmp_path: Path) -> None:
    took_ns = list[int]()
    start = Start(
        command=COMMAND,
        env={"N": "seven {port}"},
        before='echo "before $PORT $N" >> trace; touch "$SCRATCH/here"',
        prepare='echo "prepare $PORT $(ls "$SCRATCH")" >> trace',
        after='echo "after $PORT" >> trace',
    )
    launched = launch(tmp_path, start, took_ns)
    with CommandLauncher().running(launched) as running:
        port = running.endpoint.port
        expected = [f"before {port} seven {port}", f"prepare {port} here"]
        assert (tmp_path / "trace").read_text().splitlines() == expected
    assert (tmp_path / "trace").read_text().splitlines() == [*expected, f"after {port}"]
    assert len(took_ns) == 3
    assert min(took_ns) > 0


def test_a_failure_names_the_command_its_code_and_its_last_words(tmp_path: Path) -> None:
    error = failure(
        around(tmp_path, before="echo ERROR: no swordfish-1 here; echo done; exit 3", after="touch cleaned")
    )
    assert error.message == "shop: `before` ended with code 3; its last words: ERROR: no *** here"
    assert "with PORT=8000: echo ERROR" in error.hint
    assert "swordfish" not in error.log_tail
    assert (tmp_path / "logs/server-before.log").read_text() == "ERROR: no *** here\ndone\n"
    assert (tmp_path / "cleaned").exists()
    assert "`after` ended with code 1; it wrote nothing" in failure(around(tmp_path, after="false")).message
    assert "by SIGTERM" in failure(around(tmp_path, before="kill $$")).message


def test_only_the_first_failing_command_runs(tmp_path: Path) -> None:
    failure(around(tmp_path, before="false\ntouch second"))
    assert not (tmp_path / "second").exists()


def test_what_hangs_is_ended_and_the_message_names_the_time(tmp_path: Path) -> None:
    error = failure(around(tmp_path, 0.3, before="echo waiting; sleep 654.25 & sleep 654.25"))
    assert error.message == "shop: `before` did not end within 0.3 s; its last words: waiting"
    assert "it runs for each start" in error.hint
    assert not any(b"654.25" in file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists())


def test_an_error_within_goes_before_one_of_after(tmp_path: Path) -> None:
    made = around(tmp_path, after="touch cleaned; false")
    with pytest.raises(KeyboardInterrupt), made.set_up():
        raise KeyboardInterrupt
    assert (tmp_path / "cleaned").exists()


def test_what_a_command_leaves_running_is_not_waited_for_and_can_still_write(tmp_path: Path) -> None:
    made = around(tmp_path, before="(sleep 1; echo late; touch alive) & echo early")
    began = time.monotonic()
    with made.set_up():
        assert time.monotonic() - began < 1
        assert (tmp_path / "logs/server-before.log").read_text() == "early\n"
        deadline = threading.Event()
        while not (tmp_path / "alive").exists():
            assert time.monotonic() - began < 20
            deadline.wait(0.05)


def test_the_end_of_much_output_is_kept_without_parts_of_secrets(tmp_path: Path) -> None:
    made = around(tmp_path, before="yes swordfish-1 | head -c 3000000; echo end")
    with made.set_up():
        kept = (tmp_path / "logs/server-before.log").read_text()
    assert kept.endswith("***\nend\n")
    assert not any(part in kept for part in ("sword", "fish", "ish-1"))


def test_no_command_is_no_log_and_no_time(tmp_path: Path) -> None:
    made = around(tmp_path)
    with replace(made).set_up():
        made.prepare()
    assert not (tmp_path / "logs").exists()


def test_a_start_that_is_given_up_ends_its_commands_but_not_the_last(tmp_path: Path) -> None:
    made = around(tmp_path, before="sleep 600", after="touch cleaned")
    unwanted = replace(made, launch=replace(made.launch, is_wanted=lambda: False))
    assert failure(unwanted).message == "shop: its start was given up"
    assert (tmp_path / "cleaned").exists()


def test_commands_of_servers_that_start_together_run_one_after_the_other(tmp_path: Path) -> None:
    each = [around(tmp_path, before="echo in >> trace; sleep 0.2; echo out >> trace") for _ in range(3)]

    def set_up(made: Around) -> None:
        with made.set_up():
            pass

    threads = [threading.Thread(target=set_up, args=(made,)) for made in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "trace").read_text().split() == ["in", "out"] * 3
