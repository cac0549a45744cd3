"""The files that start a cluster: none of them starts one that is open to anybody."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

FILES = Path(__file__).parents[3] / "docs/guide/clusters"


def read(name: str) -> Any:
    return YAML(typ="safe").load((FILES / name).read_text())


def test_the_launcher_starts_every_host_with_authentication_and_full_priority() -> None:
    launcher = read("launcher.yaml")
    starts = [
        command
        for commands in ("head_start_ray_commands", "worker_start_ray_commands")
        for command in launcher[commands]
        if "ray start" in command
    ]
    assert len(starts) == 2
    for command in starts:
        assert "RAY_AUTH_MODE=token" in command
        assert "RAY_worker_niceness=0" in command
    assert "--include-dashboard=false" in starts[0]


def test_the_manifest_has_a_host_of_each_role_apart_from_the_others() -> None:
    spec = read("kuberay.yaml")["spec"]
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["headGroupSpec"]["rayStartParams"]["include-dashboard"] == "false"
    groups = {group["groupName"]: group for group in spec["workerGroupSpecs"]}
    assert groups.keys() == {"server", "load"}
    for name, group in groups.items():
        assert name in group["rayStartParams"]["resources"]
        pod = group["template"]["spec"]
        assert pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == container["resources"]["requests"]
        assert {"name": "RAY_worker_niceness", "value": "0"} in container["env"]


def test_the_script_is_one_and_keeps_its_token_to_itself() -> None:
    script = FILES / "slurm.sh"
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    text = script.read_text()
    assert text.index("umask 077") < text.index("get-auth-token")
    assert "RAY_AUTH_MODE=token" in text


@pytest.mark.parametrize("file", ["launcher.yaml", "kuberay.yaml", "slurm.sh"])
def test_the_guide_names_each(file: str) -> None:
    assert f"clusters/{file}" in (FILES.parent / "many-machines.md").read_text()
