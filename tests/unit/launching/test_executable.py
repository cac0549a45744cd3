"""Why a program is not executed: the kernel's error, and the file."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redline.launching import executable
from redline.launching.executable import why_not_executed
from redline.linux import mounts


def refusal(program: str, folder: Path, path: str = "") -> str:
    """The kernel's reason for refusing a program now."""
    env = {"PATH": path or os.environ["PATH"]}
    with pytest.raises(OSError) as caught:  # noqa: PT011 - any
        subprocess.Popen([str(folder / program) if "/" in program else program], cwd=folder, env=env).wait()
    found = why_not_executed(program, folder, env, caught.value.errno or 0)
    return f"{found.reason}; {found.advice}" if found.advice else found.reason


def made(file: Path, content: bytes, mode: int = 0o755) -> Path:
    file.write_bytes(content)
    file.chmod(mode)
    return file


def test_what_is_not_there(tmp_path: Path) -> None:
    assert refusal("./server", tmp_path) == f"there is no {tmp_path}/server"
    assert refusal("no-such", tmp_path) == "there is no no-such on the PATH; install no-such, or write its path"
    made(tmp_path / "no-such", b"")
    assert refusal("no-such", tmp_path) == "there is no no-such on the PATH; write ./no-such"
    assert refusal("no-such/server", tmp_path) == f"there is no {tmp_path}/no-such/server"
    (tmp_path / "link").symlink_to("gone")
    assert refusal("./link", tmp_path) == f"{tmp_path}/link is a link to gone, which does not exist"
    assert why_not_executed("ls", tmp_path / "gone", {}, errno.ENOENT).reason.startswith("there is no folder")


def test_an_interpreter_or_a_loader_that_is_not_there(tmp_path: Path) -> None:
    made(tmp_path / "script", b"#!/no/such/python -u\n")
    assert refusal("./script", tmp_path).endswith("script names /no/such/python, which does not exist")
    loader = b"/lib/ld-gone-x86-64.so.1"
    program = Path(sys.executable).resolve().read_bytes()
    own = next(
        (each for each in (b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-linux-aarch64.so.1") if each in program), b""
    )
    if not own:
        pytest.skip("this Python is linked for another loader")
    made(tmp_path / "elf", program.replace(own, loader.ljust(len(own), b"\0"), 1))
    assert f"is linked for {loader.decode()}, which does not exist" in refusal("./elf", tmp_path)


def test_what_may_not_be_executed(tmp_path: Path) -> None:
    made(tmp_path / "server", b"#!/bin/sh\n", 0o644)
    assert (
        refusal("./server", tmp_path)
        == f"{tmp_path}/server is not executable; make it executable: chmod +x {tmp_path}/server"
    )
    (tmp_path / "folder").mkdir()
    assert refusal("./folder", tmp_path) == f"{tmp_path}/folder is a folder"
    made(tmp_path / "plain", b"", 0o644)
    made(tmp_path / "script", f"#!{tmp_path}/plain\n".encode())
    assert refusal("./script", tmp_path).endswith(f"names {tmp_path}/plain, which may not be executed")


def test_a_tool_that_is_there_and_may_not_be_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert executable.why_missing("tool") == "tool is not installed"
    made(tmp_path / "tool", b"", 0o644)
    assert executable.why_missing("tool") == f"{tmp_path}/tool is not executable"


def test_a_mount_that_forbids_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "server", b"#!/bin/sh\n")
    monkeypatch.setattr(executable, "noexec_mount", lambda _path: "/some is mounted noexec")
    found = why_not_executed("./server", tmp_path, {}, errno.EACCES)
    assert found.reason == f"{tmp_path}/server may not be executed: /some is mounted noexec"


def test_what_is_no_program(tmp_path: Path) -> None:
    made(tmp_path / "empty", b"")
    made(tmp_path / "text", b"hello\n")
    head = bytearray(Path("/proc/self/exe").read_bytes()[:4096])
    head[18:20] = b"\xf3\0" if head[18:20] != b"\xf3\0" else b"\x3e\0"
    made(tmp_path / "foreign", bytes(head))

    def said(name: str) -> str:
        return why_not_executed(f"./{name}", tmp_path, {}, errno.ENOEXEC).reason

    assert said("empty").endswith("is empty, or cannot be read")
    assert said("text").endswith("text is no program, and has no first line such as `#!/bin/sh`")
    assert "is a program for another processor than" in said("foreign")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_the_mount_is_found_by_what_the_kernel_says(tmp_path: Path) -> None:
    assert mounts.noexec_mount(tmp_path / "gone") == ""
    place = tmp_path / "a b"
    place.mkdir()
    script = (
        "import sys; from pathlib import Path; from redline.linux.mounts import noexec_mount;"
        "print(noexec_mount(Path(sys.argv[1])))"
    )
    look = f"{sys.executable} -c '{script}' '{place}/x'"
    mount = f"mount -t tmpfs -o noexec none '{place}' && mkdir '{place}/x' && exec {look}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", mount], capture_output=True, text=True, check=False)
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert done.stdout.strip() == f"{place} is mounted noexec", done.stderr
