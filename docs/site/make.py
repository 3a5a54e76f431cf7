# ruff: noqa: INP001, T201 - a script that stands alone and prints for the person who starts it
"""Builds the documentation site into build/site: `make docs`.

    .venv/bin/python docs/site/make.py [--quick]      --quick: notebooks without what their cells show

Fails on a broken link or anchor, on a page that the navigation lacks, and on a page that would load something from
elsewhere.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import htfi

SITE = Path(__file__).parent
sys.path.insert(0, str(SITE))

from pages import NOTEBOOKS, ROOT, write_pages  # noqa: E402
from shipped import check_site  # noqa: E402

PAGES, BUILT = ROOT / "build" / "site-pages", ROOT / "build" / "site"
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main(*options: str) -> None:
    """Write the pages, build them, check what was built."""
    shutil.rmtree(PAGES, ignore_errors=True)
    files = sorted(NOTEBOOKS.glob("*.ipynb"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        notebooks = dict(
            zip(
                [one.name for one in files], pool.map(lambda one: _notebook(one, options), files), strict=True
            )
        )
    write_pages(PAGES, htfi.__all__, notebooks)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", str(ROOT / "mkdocs.yml")]
    if subprocess.run(
        command, cwd=ROOT, check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "true"}
    ).returncode:
        sys.exit("the site was not built: mend what is named above")
    num_pages = check_site(BUILT)
    print(f"{num_pages} pages in {BUILT.relative_to(ROOT)}: open {BUILT.relative_to(ROOT)}/index.html")


def _notebook(file: Path, options: tuple[str, ...]) -> str:
    command = [sys.executable, str(SITE / "notebook.py"), str(file), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | _THREADS)
    if done.returncode:
        sys.exit(f"{file.relative_to(ROOT)} does not run:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
