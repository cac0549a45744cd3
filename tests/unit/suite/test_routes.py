"""Routes in suites and catalogues: the variants that they make, and errors in them."""

from pathlib import Path

import pytest

from redline.errors import Problem, UsageError
from redline.extras.hosts.executor import check_for_hosts
from redline.model import Cell, Ready, Suite
from redline.suite import Overrides, load_catalogue, load_suite
from redline.suite.planning import expected_trial_ns, make_plan
from tests.fakes.catalogues import FAMILY, PROXIES, SUITE, suite_of, write_catalogue

SERVES_ALL = FAMILY.replace("runtime: native\n", "runtime: native\nhttp: [1.1, 2]\n", 1)
ROUTED = """\
servers:
  - {use: fam.plain, route: [direct, fronted, secure]}
  - {use: fam.layered, route: [direct, fronted]}
baseline: fam.plain
routes:
  fronted: [h1, {use: proxy.front, with: {workers: 1}}, h1]
  secure: [h2+tls, proxy.front, h2c]
  twice: [h1+tls, proxy.front, h1, proxy.front, h1]
  early: [h2c]
scenarios: [Get]
loads:
  saturate: {closed: {users: 64}, for: 1s}
"""


def routed(folder: Path, text: str = ROUTED, overrides: Overrides | None = None, **families: str) -> Suite:
    families = {"fam": SERVES_ALL, "proxy": PROXIES, **families}
    catalogue = load_catalogue(write_catalogue(folder / "catalogue", **families))
    file = folder / "some.yaml"
    file.write_text(text, encoding="utf-8")
    return load_suite(file, catalogue, overrides or Overrides())


def problems(folder: Path, text: str = ROUTED, **families: str) -> tuple[Problem, ...]:
    with pytest.raises(UsageError) as caught:
        routed(folder, text, None, **families)
    return caught.value.problems


def test_a_route_is_an_axis(tmp_path: Path) -> None:
    suite = routed(tmp_path)
    assert [variant.slug for variant in suite.variants] == [
        "fam.plain",
        "fam.plain+via=fronted",
        "fam.plain+via=secure",
        "fam.layered",
        "fam.layered+via=fronted",
    ]
    direct, fronted, secure = suite.variants[:3]
    assert (direct.route, direct.http, direct.tls, direct.serves) == (None, "1.1", None, "h1")
    assert (fronted.http, fronted.tls, fronted.serves) == ("1.1", None, "h1")
    assert fronted.route is not None
    assert fronted.route.text == "h1 → proxy.front+workers=1 → h1"
    assert [hop.options for hop in fronted.hops] == [{"workers": 1}]
    assert (secure.http, secure.serves) == ("2", "h2c")
    assert secure.tls is not None
    assert secure.tls.server_name == "localhost"
    assert secure.hops[0].serves == "h2+tls"


def test_each_is_compared_with_the_baseline_on_its_own_route(tmp_path: Path) -> None:
    suite = routed(tmp_path, ROUTED.replace(", secure]", "]"))
    assert suite.baselines == {"fam.layered": "fam.plain", "fam.layered+via=fronted": "fam.plain+via=fronted"}


def test_routes_of_one_server_are_compared_with_direct(tmp_path: Path) -> None:
    text = ROUTED.replace("baseline: fam.plain\n", 'baseline: {"*+via=*": fam.plain}\n')
    text = text.replace("  - {use: fam.layered, route: [direct, fronted]}\n", "")
    assert routed(tmp_path, text).baselines == {
        "fam.plain+via=fronted": "fam.plain",
        "fam.plain+via=secure": "fam.plain",
    }


def test_a_route_without_a_hop_says_the_protocol(tmp_path: Path) -> None:
    suite = routed(tmp_path, ROUTED.replace("[direct, fronted, secure]", "[direct, early]"))
    early = suite.variants[1]
    assert (early.slug, early.http, early.hops, early.serves) == ("fam.plain+via=early", "2", (), "h2c")


def test_a_cell_without_a_route_keeps_its_id(tmp_path: Path) -> None:
    """Ids are in stored runs, and a history follows cells by them."""
    cells = make_plan(suite_of(tmp_path, SUITE)).cells
    assert list(cells) == ["fam.plain.Get.saturate-e9012fdd", "fam.layered.Get.saturate-19492486"]


def test_a_cell_with_a_route_is_stored_whole(tmp_path: Path) -> None:
    for cell in make_plan(routed(tmp_path)).cells.values():
        assert Cell.model_validate_json(cell.model_dump_json()) == cell


def test_a_hop_with_other_options_is_another_cell(tmp_path: Path) -> None:
    one, other = (
        [cell_id for cell_id in make_plan(routed(tmp_path, text)).cells if cell_id.startswith("fam.plain+via=fronted")]
        for text in (ROUTED, ROUTED.replace("workers: 1", "workers: 2"))
    )
    assert one != other


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        (
            "[direct, fronted, secure]",
            "nowhere",
            "there is no route and no proxy `nowhere`",
            "there is: direct, fronted",
        ),
        ("[direct, fronted, secure]", "[direct, direct]", "`direct` is given twice", "remove one"),
        ("[h2c]", "[h1, proxy.front]", "a leg is missing", "with a leg at both ends"),
        ("[h2c]", "[proxy.front]", "there is no leg in front of proxy.front", "alternate legs and proxies"),
        ("[h2c]", "[h3]", "`h3` is not a leg", "legs are: h1, h1+tls, h2c, h2+tls"),
        ("[h2c]", "[h1, h1, h1]", "`h1` follows another leg: a proxy is missing", "alternate"),
        ("[h2c]", "[h1, fam.plain, h1]", "fam.plain is a server, not a proxy", "the catalogue has: proxy.front"),
        ("[h2c]", "[h1, proxy.frnot, h1]", "there is no proxy `proxy.frnot`", "did you mean `proxy.front`?"),
        ("[h2c]", "[h2c, proxy.front, h1]", "proxy.front does not serve h2c", "it serves h1, h1+tls, h2+tls"),
        ("[h2c]", "[h1, proxy.front, h2+tls]", "proxy.front does not speak h2+tls", "it speaks h1, h2c"),
        ("workers: 1", "workers: 7", "`7` is not a value of `workers`", "1, 2"),
        ("workers: 1", "wokers: 1", "proxy.front has no option `wokers`", "did you mean `workers`?"),
        ("  early", "  direct", "`direct` is predefined", "another name"),
        ("{use: fam.plain, ", "{use: proxy.front, ", "proxy.front is a proxy, not a server", "name it in a route"),
        ("route: [direct, fronted]}", "route: fronted, http: 2}", "`http: 2` contradicts the route", "remove `http`"),
        ("route: [direct, fronted]}", "route: fronted, tls: {}}", "fam.layered does not serve TLS", "remove `tls`"),
    ],
)
def test_what_is_wrong_with_a_route(tmp_path: Path, old: str, new: str, says: str, hint: str) -> None:
    assert old in ROUTED
    found = problems(tmp_path, ROUTED.replace(old, new))
    assert any(says in each.message and hint in each.hint for each in found), [str(each) for each in found]
    assert all(each.place and each.place.line for each in found)


def test_a_last_leg_that_the_server_does_not_serve(tmp_path: Path) -> None:
    found = problems(tmp_path, ROUTED, fam=FAMILY)
    assert [each.message for each in found] == [
        "fam.plain does not serve h2c, the last leg of the route `secure`",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    upstream: [h1, h2c]\n", "", "`upstream` is missing"),
        ('"{protocol}", ', "", "proxy.front does not get the protocol that it has to serve"),
        (', "{upstream_protocol}"', "", "the proxy does not get `upstream_protocol`"),
        ('"{upstream_host}:{upstream_port}", ', "", "the proxy does not get `upstream_port`"),
        ("kind: proxy\n", "", "`upstream` is for proxies"),
        ("kind: proxy\n", "", "`{upstream_host}` is filled in for proxies alone"),
        ("[h1, h2c]", "[h1, h3]", "must be `h1`, `h1+tls`, `h2c` or `h2+tls`"),
        ("kind: proxy", "kind: proxi", "must be `server` or `proxy`"),
    ],
)
def test_what_is_wrong_with_a_proxy(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in PROXIES
    found = problems(tmp_path, ROUTED, proxy=PROXIES.replace(old, new))
    assert any(says in each.message for each in found), [str(each) for each in found]


def test_a_server_that_serves_both_versions_at_once_needs_no_protocol(tmp_path: Path) -> None:
    both = SERVES_ALL.replace("http: [1.1, 2]\n", "http: [1.1, 2]\nprotocols: [h1, h2c]\n")
    assert routed(tmp_path, fam=both).variants[0].serves == "h1"
    found = problems(tmp_path, fam=both.replace("[h1, h2c]", "[h1, h2c, h2+tls]"))
    assert any("does not get the protocol" in each.message for each in found)


@pytest.mark.parametrize(
    ("names", "slugs"),
    [
        (["direct"], ["fam.plain", "fam.layered"]),
        (["fronted", "secure"], ["fam.plain+via=fronted", "fam.plain+via=secure", "fam.layered+via=fronted"]),
    ],
)
def test_routes_are_selected_like_options(tmp_path: Path, names: list[str], slugs: list[str]) -> None:
    overrides = Overrides(options=tuple(("route", name) for name in names))
    assert [variant.slug for variant in routed(tmp_path, overrides=overrides).variants] == slugs


def test_a_route_that_no_server_has_cannot_be_selected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no server of this suite has route=early"):
        routed(tmp_path, overrides=Overrides(options=(("route", "early"),)))


def test_a_hop_adds_to_how_long_a_trial_takes(tmp_path: Path) -> None:
    cells = {cell.variant.slug: cell for cell in make_plan(routed(tmp_path)).cells.values()}
    direct, fronted = cells["fam.plain"], cells["fam.plain+via=fronted"]
    assert fronted.variant.runtimes == ("native", "native")
    assert expected_trial_ns(fronted) > expected_trial_ns(direct)


def named(name: str) -> str:
    return ROUTED.replace("[direct, fronted, secure]", f"[direct, {name}]")


@pytest.mark.parametrize("name", ["front", "proxy.front"])
def test_the_name_of_a_proxy_is_a_route_through_it(tmp_path: Path, name: str) -> None:
    direct, through = routed(tmp_path, named(name)).variants[:2]
    assert direct.route is None
    assert through.slug == f"fam.plain+via={name}"
    assert through.route is not None
    assert through.route.text == "h1 → proxy.front → h1"


def test_a_route_comes_before_a_proxy_of_its_name(tmp_path: Path) -> None:
    text = named("front").replace("fronted: [", "front: [").replace("fronted", "front")
    through = routed(tmp_path, text).variants[1]
    assert through.route is not None
    assert through.route.text == "h1 → proxy.front+workers=1 → h1"


def test_a_name_that_several_proxies_have_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, named("front"), other=PROXIES)
    assert problem.message == "several proxies have the name `front`"
    assert "proxy.front" in problem.hint
    assert "other.front" in problem.hint


def test_a_proxy_that_does_not_speak_what_the_server_does_is_refused(tmp_path: Path) -> None:
    text = named("front").replace("use: fam.plain,", "use: fam.plain, http: 2,")
    found = problems(tmp_path, text)
    assert "proxy.front does not serve h2c" in {problem.message for problem in found}


RUNNING = """\
servers: [{{url: "{url}", route: {route}}}]
routes:
  cleartext: [h2+tls, proxy.front, h2c]
  secure: [h1+tls]
scenarios: [{{name: Root, get: /up, headers: {{X: y}}}}]
loads: {{saturate: {{closed: {{users: 4}}, for: 1s}}}}
"""


def test_a_running_server_has_routes_too(tmp_path: Path) -> None:
    text = RUNNING.format(url="http://127.0.0.1:8080", route="[direct, front, cleartext]")
    direct, through, cleartext = routed(tmp_path, text).variants
    assert [variant.slug for variant in (direct, through)] == ["127.0.0.1:8080", "127.0.0.1:8080+via=front"]
    assert (direct.entry.ready, through.entry.ready) == (None, Ready(path="/up", headers={"X": "y"}))
    assert (cleartext.http, cleartext.serves, cleartext.tls and cleartext.tls.server_name) == ("2", "h2c", "localhost")


@pytest.mark.parametrize(
    ("url", "route", "says"),
    [
        ("https://127.0.0.1:1", "front", "a server behind https:// has no route: no proxy would know its certificate"),
        ("http://127.0.0.1:1", "secure", "the last leg of the route `secure` is h1+tls, and the URL is of http://"),
    ],
)
def test_a_running_server_over_tls_has_none(tmp_path: Path, url: str, route: str, says: str) -> None:
    (problem,) = problems(tmp_path, RUNNING.format(url=url, route=route))
    assert problem.message == says


def test_no_other_host_starts_a_proxy_in_front_of_a_url(tmp_path: Path) -> None:
    item = "  - {url: 'http://10.0.0.1:80', route: [direct, front]}\n"
    text = ROUTED.replace("  - {use: fam.layered, route: [direct, fronted]}\nbaseline: fam.plain\n", item)
    with pytest.raises(UsageError, match="a proxy in front of a URL, which cannot be had on several hosts"):
        check_for_hosts(routed(tmp_path, text))
