"""Files named by a suite, a scenario of the catalogue or a project: their allowed owners, and the errors."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from redline.errors import LaunchError, Problem, UsageError
from redline.launching.builds import StandingBuild
from redline.launching.process import authorities
from redline.model import ServedTls, ServerEntry, Tls, Variant
from redline.suite import load_catalogue, load_suite, read_text, referenced_files
from redline.suite.catalogue import read_family
from redline.suite.project import read_project
from tests.fakes.catalogues import FAMILY, SCENARIOS, SUITE, write_catalogue

SECRET = "tell nobody"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
OTHERS = (
    "../secret",
    "/etc/passwd",
    "link",
    "below/../../secret",
    "../none",
    "chain",
    "loop/../../secret",
    "down/secret",
)


def by_pick(folder: Path, name: str) -> None:
    _suite(folder, SUITE.replace("[Get]", f"[{{name: M, get: /a, headers: {{A: '{{pick:{name}}}'}}}}]"))


def by_pick_in_a_body(folder: Path, name: str) -> None:
    _suite(folder, SUITE.replace("[Get]", f"[{{name: M, requests: [{{post: /a, body: '{{pick:{name}}}'}}]}}]"))


def by_replay(folder: Path, name: str) -> None:
    load = f"  saturate: {{open: {{arrivals: {{replay: '{name}'}}}}, for: 2s}}\n"
    _suite(folder, SUITE.partition("loads:")[0] + f"loads:\n{load}")


def by_ca(folder: Path, name: str) -> None:
    servers = f"[{{use: fam.plain, tls: {{ca: '{name}'}}}}]"
    _suite(folder, SUITE.replace("[fam.plain, fam.layered]", servers), f"{FAMILY}tls: {{}}\n")


def by_a_scenario_of_the_catalogue(folder: Path, name: str) -> None:
    scenarios = f"{SCENARIOS}  Pick: {{get: /a, headers: {{A: '{{pick:{name}}}'}}}}\n"
    load_catalogue(write_catalogue(folder, scenarios=scenarios))


def by_a_project(folder: Path, name: str) -> None:
    file = folder / "redline.yaml"
    file.write_text(f"start: ./server --port {{port}}\ncheck: {{get: /a, headers: {{A: '{{pick:{name}}}'}}}}\n")
    read_project(read_text(file), str(file), referenced_files(file))


def by_the_body_of_a_suite(folder: Path, name: str) -> None:
    _suite(folder, SUITE.replace("[Get]", f"[{{name: M, post: /a, body: {{file: '{name}'}}}}]"))


def by_the_body_of_a_project(folder: Path, name: str) -> None:
    file = folder / "redline.yaml"
    requests = f"[{{name: a, get: /}}, {{name: b, post: /a, body: {{file: '{name}'}}}}]"
    file.write_text(f"start: ./server --port {{port}}\nrequests: {requests}\n")
    read_project(read_text(file), str(file), referenced_files(file))


def by_the_body_of_a_scenario_of_the_catalogue(folder: Path, name: str) -> None:
    scenarios = f"{SCENARIOS}  Send: {{post: /a, body: {{file: '{name}'}}}}\n"
    load_catalogue(write_catalogue(folder, scenarios=scenarios))


def _suite(folder: Path, text: str, family: str = FAMILY) -> None:
    file = folder / "some.yaml"
    file.write_text(text)
    load_suite(file, load_catalogue(write_catalogue(folder.parent / "elsewhere", fam=family)))


TEXTS = (by_pick, by_pick_in_a_body, by_replay, by_ca, by_a_scenario_of_the_catalogue, by_a_project)
BODIES = (by_the_body_of_a_suite, by_the_body_of_a_project, by_the_body_of_a_scenario_of_the_catalogue)
WAYS = (*TEXTS, *BODIES)
ways = pytest.mark.parametrize("named", WAYS)
Named = Callable[[Path, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with links to a file outside that is none of its owner's business."""
    (tmp_path / "secret").write_text(f"{SECRET} \x01\n")
    inner = tmp_path / "inner"
    (inner / "below").mkdir(parents=True)
    (inner / "link").symlink_to(tmp_path / "secret")
    (inner / "chain").symlink_to("link")
    (inner / "loop").symlink_to("below")
    (inner / "down").symlink_to(tmp_path, target_is_directory=True)
    return inner


def refused(named: Named, folder: Path, name: str) -> Problem:
    with pytest.raises(UsageError) as caught:
        named(folder, name)
    (problem,) = caught.value.problems
    assert caught.value.exit_code == 2
    assert problem.place is not None
    assert problem.place.line
    assert problem.place.field
    assert problem.hint
    assert SECRET not in str(problem)
    return problem


@ways
@pytest.mark.parametrize("name", OTHERS)
def test_a_file_outside_of_the_folder_is_refused_unread(named: Named, name: str, folder: Path) -> None:
    assert f"{name} leads out of the folder" in refused(named, folder, name).message


def test_a_link_that_is_changed_meanwhile_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name meant when it was checked, the file that is read is in the folder."""
    (folder / "mine").write_text("mine")
    swapped = folder / "swapped"
    swapped.symlink_to("mine")
    looks = Path.resolve, Path.readlink

    def swap(path: Path) -> None:
        if path.name == swapped.name or str(path).startswith("/proc/"):
            swapped.unlink()
            swapped.symlink_to("../secret")

    def resolve(path: Path, strict: bool = False) -> Path:
        found = looks[0](path, strict)
        swap(path)
        return found

    def readlink(path: Path) -> Path:
        found = looks[1](path)
        swap(path)
        return found

    monkeypatch.setattr(Path, "resolve", resolve)
    monkeypatch.setattr(Path, "readlink", readlink)
    assert referenced_files(folder / "some.yaml").text(swapped.name) == "mine"
    assert looks[1](swapped) == Path("../secret")


def test_what_is_refused_is_not_kept_open(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("link", "pipe", "none", "below"):
        with pytest.raises(UsageError):
            referenced_files(folder / "some.yaml").text(name)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@ways
def test_what_never_ends_is_refused_at_once(named: Named, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")
    assert "pipe is not a regular file" in refused(named, folder, "pipe").message
    assert "leads out of the folder" in refused(named, folder, "zero").message


@pytest.mark.parametrize("named", TEXTS)
def test_what_is_no_text_of_a_fair_size_is_refused(named: Named, folder: Path) -> None:
    (folder / "huge").open("wb").truncate(1 << 40)
    (folder / "bytes").write_bytes(f"{SECRET}\n\xff".encode("latin-1"))
    assert "huge is longer than 4 MiB" in refused(named, folder, "huge").message
    assert "bytes:2:1: this is not UTF-8 text" in refused(named, folder, "bytes").message
    assert "below is a folder" in refused(named, folder, "below").message


@pytest.mark.parametrize("named", BODIES)
def test_a_body_is_a_file_of_a_fair_size(named: Named, folder: Path) -> None:
    (folder / "huge").open("wb").truncate(1 << 40)
    (folder / "bytes").write_bytes(b"\xff\x00")
    named(folder, "bytes")
    assert "huge is longer than 64 MiB" in refused(named, folder, "huge").message
    assert "below is a folder" in refused(named, folder, "below").message


@pytest.mark.parametrize("named", [way for way in TEXTS if way is not by_pick_in_a_body])
def test_a_line_that_is_wrong_is_not_quoted(named: Named, folder: Path) -> None:
    (folder / "mine").write_text(f"{SECRET} \x01\n")
    refused(named, folder, "mine")


@pytest.mark.parametrize("named", [by_pick, by_pick_in_a_body, by_a_scenario_of_the_catalogue, by_a_project, *BODIES])
def test_a_file_below_the_folder_is_read_by_a_link_too(named: Named, folder: Path) -> None:
    (folder / "below" / "ids").write_text("1\n2\n")
    (folder / "ids").symlink_to("below/ids")
    for name in ("below/ids", "ids", "below/../ids", "loop/ids"):
        named(folder, name)


def test_of_a_pem_file_only_certificates_are_kept(tmp_path: Path) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n"
    (tmp_path / "ca.pem").write_text(f"# {SECRET}\n{CERTIFICATE}{key}{CERTIFICATE}")
    file = tmp_path / "some.yaml"
    file.write_text(SUITE.replace("[fam.plain, fam.layered]", "[{use: fam.plain, tls: {ca: ca.pem}}]"))
    suite = load_suite(file, load_catalogue(write_catalogue(tmp_path / "catalogue", fam=f"{FAMILY}tls: {{}}\n")))
    assert suite.variants[0].tls is not None
    assert suite.variants[0].tls.ca_pem == CERTIFICATE * 2


def test_a_pipe_in_a_catalogue_is_not_waited_for(tmp_path: Path) -> None:
    write_catalogue(tmp_path, fam=FAMILY)
    (tmp_path / "odd").mkdir()
    os.mkfifo(tmp_path / "odd" / "server.yaml")
    with pytest.raises(UsageError, match=r"server\.yaml is not a regular file"):
        load_catalogue(tmp_path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../secret", "leads out of the folder"),
        ("link", "leads out of the folder"),
        ("pipe", "is not a regular file"),
        ("below", "Is a directory"),
        ("none", "No such file"),
        ("mine", "it holds no certificate"),
        ("bytes", "it is no text"),
    ],
)
def test_the_authority_of_a_server_is_a_file_of_its_build(folder: Path, name: str, says: str) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "mine").write_text(SECRET)
    (folder / "bytes").write_bytes(b"\xff")
    with pytest.raises(LaunchError, match=says) as caught:
        authorities(served_over_tls(name), StandingBuild(entry_with(name), "", folder, ""))
    assert SECRET not in str(caught.value)
    (folder / "ca.pem").write_text(f"{SECRET}\n{CERTIFICATE}")
    assert authorities(served_over_tls("ca.pem"), StandingBuild(entry_with("ca.pem"), "", folder, "")) == CERTIFICATE


def served_over_tls(ca: str) -> Variant:
    return Variant(entry=entry_with(ca), http="1.1", tls=Tls())


def entry_with(ca: str) -> ServerEntry:
    entry = read_family(FAMILY, "server.yaml", "fam")["fam.plain"]
    return entry.model_copy(update={"tls": ServedTls(ca=ca)})
