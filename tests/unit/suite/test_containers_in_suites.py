"""Containers in suites: which variants they make, and errors in them."""

from pathlib import Path

import pytest

from redline.analysis.own_servers import own_server
from redline.errors import Problem, UsageError
from redline.model import Cell, Container, Suite
from redline.model.catalogue import OwnImage
from redline.suite import Overrides, load_catalogue, load_suite
from redline.suite.planning import expected_trial_ns, make_plan
from tests.fakes.catalogues import FAMILY, PROXIES, write_catalogue

BOXED = """\
servers:
  - {use: fam.plain, in: [process, container], route: [direct, fronted]}
  - {use: fam.plain, in: container, container: {network: published, cpus: 0.5, memory: 0.0625GiB, pids: 100}}
  - {use: fam.plain, in: container, container: {image: "registry/debian:12"}}
baseline: {"*+container*": fam.plain}
routes:
  fronted: [h1, {use: proxy.front, with: {workers: 1}, in: container, container: {cpus: 2}}, h1]
scenarios: [Get]
loads:
  saturate: {closed: {users: 64}, for: 1s}
"""
PLAIN = """\
servers: [{use: fam.plain%s}]
scenarios: [Get]
loads:
  saturate: {closed: {users: 64}, for: 1s}
"""


def read(folder: Path, text: str = BOXED) -> Suite:
    catalogue = load_catalogue(write_catalogue(folder / "catalogue", fam=FAMILY, proxy=PROXIES))
    file = folder / "some.yaml"
    file.write_text(text, encoding="utf-8")
    return load_suite(file, catalogue, Overrides())


def problems(folder: Path, keys: str, more: str = "") -> tuple[Problem, ...]:
    with pytest.raises(UsageError) as caught:
        read(folder, PLAIN % keys + more)
    return caught.value.problems


def test_a_place_is_an_axis_and_a_part_of_the_slug(tmp_path: Path) -> None:
    suite = read(tmp_path)
    assert [variant.slug for variant in suite.variants] == [
        "fam.plain",
        "fam.plain+container",
        "fam.plain+via=fronted",
        "fam.plain+container+via=fronted",
        "fam.plain+container-published-cpus=0.5-memory=64MiB-pids=100",
        "fam.plain+container-image=debian-12-c8cb30",
    ]
    assert suite.variants[4].container == Container(network="published", cpus=0.5, memory_bytes=64 << 20, pids=100)
    assert [hop.slug for hop in suite.variants[2].hops] == ["proxy.front+workers=1+container-cpus=2"]
    assert suite.variants[2].container is None


def test_a_container_is_compared_with_the_process_on_the_same_route(tmp_path: Path) -> None:
    assert read(tmp_path).baselines["fam.plain+container"] == "fam.plain"


def test_a_container_is_part_of_a_cell_and_a_process_is_not(tmp_path: Path) -> None:
    cells = {cell.slug: cell for cell in make_plan(read(tmp_path)).cells.values()}
    process, boxed = cells["fam.plain.Get.saturate"], cells["fam.plain+container.Get.saturate"]
    assert "container" not in process.variant.content
    assert '"container"' not in process.model_dump_json()
    assert boxed.variant.content == {**process.variant.content, "container": {}}
    assert Cell.model_validate_json(boxed.model_dump_json()) == boxed
    hopped = cells["fam.plain+container+via=fronted.Get.saturate"]
    lengths = [expected_trial_ns(cell) for cell in (process, boxed, hopped)]
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize(
    ("keys", "message", "hint"),
    [
        (", container: {cpus: 1}", "this does not run in a container", "add `in: container`"),
        (", in: [container, container]", "`container` is given twice", "remove one"),
        (", in: container, container: {memory: 64}", "must be at least 6MB", "512MiB"),
        (", in: jail", "`jail`", "process, container"),
        (", in: container, container: {cpus: 0}", "greater than 0", ""),
        (", in: container, container: {network: bridge}", "`bridge`", "host, published"),
        (", in: container, container: {image: '--privileged'}", "--privileged", ""),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, keys: str, message: str, hint: str) -> None:
    (problem,) = problems(tmp_path, keys)
    assert message in problem.message
    assert hint in problem.hint
    assert problem.place is not None


@pytest.mark.parametrize(
    ("hop", "message"),
    [
        ("in: [process, container]", "a hop runs in one place"),
        ("in: container, container: {network: published}", "through the network of the machine"),
    ],
)
def test_a_hop_runs_in_one_place_on_the_network_of_the_machine(tmp_path: Path, hop: str, message: str) -> None:
    routes = f"routes:\n  fronted: [h1, {{use: proxy.front, {hop}}}, h1]\n"
    (problem,) = problems(tmp_path, ", route: fronted", routes)
    assert message in problem.message


def test_a_users_image_and_service_have_their_own_names_and_take_routes(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        "servers:\n"
        '  - {image: "registry:5000/me/shop:1", env: {A: "1"}, route: [direct, fronted]}\n'
        "  - {compose: deploy/compose.yaml, service: web, port: 8080, ready: {path: /up}}\n"
        "routes: {fronted: [h1, proxy.front, h1]}\n"
        "scenarios: [Get]\n"
        "loads: {saturate: {closed: {users: 64}, for: 1s}}\n",
    )
    assert [variant.slug for variant in suite.variants] == ["shop", "shop+via=fronted", "web"]
    assert [variant.is_in_container for variant in suite.variants] == [True, True, True]
    assert [variant.catalogued.ready.within_ns for variant in suite.variants] == [60_000_000_000] * 3
    shop, _, web = (variant.catalogued for variant in suite.variants)
    assert shop.image == OwnImage(name="registry:5000/me/shop:1")
    assert web.compose is not None
    assert (web.compose.service, web.compose.port, web.ready.path) == ("web", 8080, "/up")
    assert web.compose.file.endswith("deploy/compose.yaml")


def test_a_users_image_has_limits_and_a_service_says_what_starts_afresh(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        "servers:\n"
        "  - {image: 'shop:1', name: small, cpus: 0.5, memory: 512MiB}\n"
        "  - {image: 'shop:1', name: free}\n"
        "  - {compose: compose.yaml, service: web, port: 80, fresh: service}\n"
        "scenarios: [Get]\n"
        "loads: {saturate: {closed: {users: 64}, for: 1s}}\n",
    )
    small, free, web = suite.variants
    assert small.catalogued.image == OwnImage(name="shop:1", cpus=0.5, memory_bytes=512 << 20)
    assert [variant.memory_limit_bytes for variant in suite.variants] == [512 << 20, None, None]
    assert own_server(small) == "a container of shop:1, with 0.5 CPUs and 512 MiB of memory"
    assert own_server(free) == "a container of shop:1"
    assert web.catalogued.compose is not None
    assert web.catalogued.compose.fresh == "service"


def test_commands_around_containers_run_in_a_folder_where_the_file_of_variables_is(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        "servers:\n"
        "  - {image: 'shop:1', folder: deploy, env_file: e, before: a, prepare: b, after: c}\n"
        "  - {compose: compose.yaml, service: web, port: 8080, folder: deploy, before: a, prepare: b, after: c}\n"
        "scenarios: [Get]\n"
        "loads: {saturate: {closed: {users: 64}, for: 1s}}\n",
    )
    shop, web = (variant.catalogued for variant in suite.variants)
    assert {entry.family_folder for entry in (shop, web)} == {"deploy"}
    assert {(entry.start.before, entry.start.prepare, entry.start.after) for entry in (shop, web)} == {("a", "b", "c")}
    assert shop.start.env_file == "deploy/e"
    assert web.compose is not None
    assert web.compose.file == "compose.yaml"


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ("{image: 'shop:1', command: './shop {port}'}", "both `command` and `image`"),
        ("{url: 'http://127.0.0.1:1', folder: .}", "a server with `url` cannot have `folder`"),
        ("{compose: c.yaml, service: web, port: 80, env_file: e}", "a server with `compose` cannot have `env_file`"),
        ("{compose: compose.yaml, port: 80}", "`service` is missing: a server with `compose` needs it"),
        ("{compose: compose.yaml, service: web, port: 80, env: {A: '1'}}", "a server with `compose` cannot have `env`"),
        ("{url: 'http://127.0.0.1:1', port: 80}", "a server with `url` cannot have `port`"),
        ("{image: 'shop 1'}", "image"),
        ("{image: 'shop:1', cpus: 0}", "cpus"),
        ("{image: 'shop:1', memory: 512}", "must be at least 6MB"),
        ("{image: 'shop:1', memory: 1kB}", "at least 6MB"),
        ("{image: 'shop:1', fresh: service}", "a server with `image` cannot have `fresh`"),
        ("{compose: c.yaml, service: web, port: 80, cpus: 2}", "a server with `compose` cannot have `cpus`"),
        ("{compose: c.yaml, service: web, port: 80, fresh: once}", "fresh"),
        ("{image: 'shop:1', port: 70000}", "must be at most 65535"),
    ],
)
def test_what_a_users_container_cannot_have_is_refused(tmp_path: Path, server: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, f"servers: [{server}]\nscenarios: [Get]\nloads: {{load: {{closed: {{users: 1}}}}}}\n")
    assert says in str(caught.value)
