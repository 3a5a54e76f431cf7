"""The image of `deploy/container`: built on a new Debian, run without rights on a read-only file system."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE_ROOT = "7243fc36090edecf20f404d531ad9bf52b114e3ec4515aee4bd6d41a74306bb4"
BASE = "localhost/htfi-test-debian"
RUN = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && mount --bind "$2" "$1/data"
mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/tmp"
root=$1; shift 2
exec env -i PATH=/opt/htfi/bin:/usr/bin HOME=/data PYTHONDONTWRITEBYTECODE=1 \
    "$(command -v chroot || echo /usr/sbin/chroot)" --userspec=65532:65532 "$root" \
    /bin/sh -c 'cd /data && exec "$@"' sh "$@"
"""

pytestmark = pytest.mark.slow


def call(*words: str | Path, **others: str) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, cwd=ROOT,
        env=os.environ | {"BUILDAH_ISOLATION": "chroot"} | others,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root of the built image. Debian and PyPI are reached as on this machine."""
    missing = [one for one in ("buildah", "debootstrap", "unshare") if shutil.which(one) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(
            f"needs root and {', '.join(missing) or 'nothing else'}: apt-get install buildah debootstrap"
        )
    folder = tmp_path_factory.mktemp("image")
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for path in Path("/etc/apt").rglob("*")
        if path.suffix in (".list", ".sources")
    )
    mirror = re.search(r"^(?:URIs: *|deb (?:\[.*\] )?)(\S+)", sources, re.MULTILINE)
    assert mirror is not None
    call("debootstrap", "--variant=minbase", "bookworm", folder / "debian", mirror[1])
    for path in Path("/etc/apt/sources.list.d").glob("*.sources"):
        shutil.copy(path, folder / "debian/etc/apt/sources.list.d")
        (folder / "debian/etc/apt/sources.list").unlink(missing_ok=True)
    base = call("buildah", "from", "scratch")
    call("buildah", "add", "-q", base, folder / "debian", "/")
    call("buildah", "commit", "-q", base, BASE)
    made = folder / "authorities"
    made.mkdir()
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", made / "all.crt")
    (made / "pip.conf").write_text("[global]\ncert = /authorities/all.crt\n", encoding="utf-8")
    call(
        "buildah", "build", "--network", "host", "--build-arg", f"BASE={BASE}", "-t", "localhost/htfi-test",
        "--volume", f"{made}:/authorities:ro", "--volume", f"{made}/pip.conf:/etc/pip.conf:ro",
        "--volume", "/etc/apt/apt.conf.d:/etc/apt/apt.conf.d:ro",
        "--ignorefile", "deploy/container/Containerfile.containerignore", "-f", "deploy/container/Containerfile", ".",
    )  # fmt: skip
    container = call("buildah", "from", "localhost/htfi-test")
    yield Path(call("buildah", "mount", container))
    for one in (container, base):
        call("buildah", "rm", one)
    call("buildah", "rmi", "localhost/htfi-test", BASE)


def run_in(image: Path, data: Path, *words: str) -> str:
    data.mkdir(exist_ok=True)
    shutil.chown(data, 65532, 65532)
    return call("unshare", "-m", "-p", "-f", "sh", "-c", RUN, "sh", image, data, *words)


def test_sample_has_its_root_on_a_file_system_that_is_read_only(image: Path, tmp_path: Path) -> None:
    assert SAMPLE_ROOT in run_in(image, tmp_path / "data", "htfi", "run", "--out", "/data/sample", "--plain")
    assert "65532" in run_in(image, tmp_path / "data", "id", "-u")
    refused = run_in(image, tmp_path / "data", "sh", "-c", "touch /opt/htfi/x 2>&1 || true")
    assert "Read-only file system" in refused


def test_image_lists_what_is_in_it_and_keeps_no_path_of_its_build(image: Path) -> None:
    parts = json.loads((image / "opt/htfi/sbom.cdx.json").read_text(encoding="utf-8"))["components"]
    assert {"htfi", "numpy", "onnxruntime", "fastapi"} <= {one["name"] for one in parts}
    package = image / "opt/htfi/lib/python3.11/site-packages/htfi"
    assert len(list(package.rglob("*.so"))) == 30
    assert [path for path in package.rglob("*.so") if b"/build/" in path.read_bytes()] == []
    assert list((image / "opt/htfi").rglob("direct_url.json")) == []
