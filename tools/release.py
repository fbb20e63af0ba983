"""Builds what is published and tries it: ``make release``; with ``ARGS=--tag`` it tags it as well.

    python -m tools.release          # builds, checks and tries; nothing else changes
    python -m tools.release --tag    # and tags the commit; what to push is printed, and not pushed
    python -m tools.release --collect  # before: moves changes/*.md into CHANGELOG.md, dated today

What is built is the commit, and nothing that lies beside it.  The version is that of
``grader/__init__.py``.  The wheel and the source archive are looked through, and the wheel is
installed into a new environment, in which its command judges a right answer and a wrong one.  Only
Python's standard library is there when this runs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.course.answers import FOLDER
from grader.exercise.answers import RIGHT
from tools import address, install

__all__ = [
    "WHEELS_OWN",
    "ReleaseError",
    "changes",
    "collect",
    "for_index",
    "main",
    "published",
    "refusals",
    "spare_and_missing",
    "version",
]

ROOT = Path(__file__).resolve().parent.parent

#: Where all of it happens.
PLACE = ROOT / "build" / "release"

#: What a wheel, or a source archive, has besides the package.
WHEELS_OWN = re.compile(
    r"[^/]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt|top_level\.txt|licenses/LICENSE)"
)
_ARCHIVES_OWN = re.compile(
    r"LICENSE|MANIFEST\.in|PKG-INFO|README\.md|pyproject\.toml|setup\.cfg|gather_round\.egg-info/[^/]+"
)

#: An answer to ``broadcast`` that does nothing.
_WRONG = "def broadcast(x, src):\n    pass\n"


class ReleaseError(Exception):
    """Something that was built is not what it should be, and nothing has been tagged."""


def _git(*words: str, root: Path = ROOT) -> str:
    """Return what git prints."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def version(root: Path = ROOT) -> str:
    """Return the version of a checkout: that of the grader, which there is no other place for."""
    text = (root / "grader" / "__init__.py").read_text(encoding="utf-8")
    (found,) = re.findall(r'^__version__ = "([^"]+)"$', text, re.M)
    return str(found)


def changes(name: str, root: Path = ROOT) -> tuple[str, str]:
    """Return the date of a section of the changelog and its lines; both empty if it is not there.

    Args:
        name: a version, or ``Unreleased``, which has no date.
        root: a checkout.
    """
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.compile(rf"^## \[{re.escape(name)}\](?: - (\d{{4}}-\d\d-\d\d))?\n", re.M)
    found = heading.search(text)
    if found is None:
        return "", ""
    lines = re.split(r"^(?:## \[|<!-- published|\[[^\]]+\]: )", text[found.end() :], flags=re.M)[0]
    return found[1] or "", lines.strip()


#: The name of a file in ``changes/``: that of the change, and its kind.
_FRAGMENT = re.compile(r"[\w-]+\.(added|changed|fixed|removed)\.md")


def fragments(root: Path = ROOT) -> list[Path]:
    """Return the files of changes that the changelog does not have yet."""
    return sorted((root / "changes").glob("*"))


def collect(today: str, root: Path = ROOT) -> None:
    """Move what is unreleased, and the files of changes, to the version's section of the changelog.

    Raises:
        ReleaseError: the name of a file does not say what kind of change it is; nothing is moved.
    """
    lines = changes("Unreleased", root)[1]
    for path in fragments(root):
        kind = _FRAGMENT.fullmatch(path.name)
        if kind is None:
            raise ReleaseError(
                f"changes/{path.name}: name it NAME.KIND.md, where KIND is added,"
                " changed, fixed or removed"
            )
        heading = f"### {kind[1].capitalize()}\n\n"
        if heading not in lines:
            lines = f"{lines}\n\n{heading}".lstrip()
        item = path.read_text(encoding="utf-8").strip()
        lines = lines.replace(heading, f"{heading}{item}\n").strip()
    changelog = root / "CHANGELOG.md"
    before, found, after = changelog.read_text(encoding="utf-8").partition("## [Unreleased]\n")
    section = f"\n## [{version(root)}] - {today}\n\n{lines}\n\n"
    rest = after.removeprefix("\n").replace(changes("Unreleased", root)[1], "", 1).lstrip("\n")
    changelog.write_text(before + found + section + rest, encoding="utf-8")
    for path in fragments(root):
        path.unlink()


def refusals(root: Path, today: str) -> list[str]:
    """Return why a checkout cannot be released, a line each, with the mend.

    Args:
        root: a checkout.
        today: the date that the release has to have, as ``2026-11-27``; empty if any will do.
    """
    found, number = [], version(root)
    if _git("status", "--porcelain", root=root):
        found.append("the working tree has changes that are not committed: commit them first")
    if _git("tag", "--list", f"v{number}", root=root):
        found.append(f"v{number} is tagged already: write the next version into grader/__init__.py")
    date, lines = changes(number, root)
    if not lines:
        found.append(f"CHANGELOG.md has nothing under ## [{number}]: say there what is new")
    elif not date:
        found.append(f"CHANGELOG.md has no date beside ## [{number}]: write ## [{number}] - DATE")
    if changes("Unreleased", root)[1]:
        found.append(f"CHANGELOG.md has lines under ## [Unreleased]: move them under ## [{number}]")
    if fragments(root):
        found.append("changes/ has files: python -m tools.release --collect, and commit")
    cited = (root / "CITATION.cff").read_text(encoding="utf-8")
    for field, wanted in (("version", number), ("date-released", date)):
        given = re.search(rf"^{field}: (.*)$", cited, re.M)
        if wanted and (given is None or given[1] != wanted):
            found.append(f"CITATION.cff does not say {field}: {wanted}")
    if today and date and date != today:
        found.append(
            f"CHANGELOG.md dates {number} {date}, and today is {today}:"
            " change it there and in CITATION.cff"
        )
    return found


def spare_and_missing(
    held: Iterable[str], own: re.Pattern[str], package: Iterable[str]
) -> list[str]:
    """Return what an archive has too much, and what it lacks, a line each.

    Args:
        held: the files in the archive.
        own: what it has besides the package's files.
        package: the files of the package, as git knows them.
    """
    inside, wanted = {name for name in held if not own.fullmatch(name)}, set(package)
    return [
        *(f"{name} should not be in it" for name in sorted(inside - wanted)),
        *(f"{name} is missing" for name in sorted(wanted - inside)),
    ]


def published(package: Iterable[str]) -> list[str]:
    """Return those of the package's files that students may have: all but right answers."""
    return [path for path in package if not re.match(rf"grader/course/answers/\w+/{RIGHT}/", path)]


def for_index(readme: str, repository: str, tag: str) -> str:
    """Return the README for a page of a package index, where files of the repository are not.

    Links lead to the repository; as long as its address is not known their words are left.
    """
    readme = address.without_comments(readme)
    picture, link = r"!\[([^\]]*)\]\((?!\w+://)([^)]+)\)", r"\[([^\]]*)\]\((?!\w+://|#)([^)]+)\)"
    if repository:
        readme = re.sub(
            picture, rf"![\1](https://raw.githubusercontent.com/{repository}/{tag}/\2)", readme
        )
        # of a picture that is a link, this is the link
        return re.sub(
            r"\]\((?!\w+://|#)([^)]+)\)",
            rf"](https://github.com/{repository}/blob/{tag}/\1)",
            readme,
        )
    readme = re.sub(rf"\[{picture}\]\([^)]+\)\n*", "", readme)
    return re.sub(link, r"\1", re.sub(rf"{picture}\n*", "", readme))


def _step(words: str) -> None:
    print(words, flush=True)


def _run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    """Run a command whose words appear only if it fails.

    Raises:
        ReleaseError: it failed.
    """
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        said = f"{done.stdout}\n" if done.stdout else ""
        raise ReleaseError(
            f"{said}failed, with status {done.returncode}: {' '.join(map(str, command))}"
        )


def _environment(name: str) -> Path:
    """Make an environment that holds pip alone, and return its folder of programs."""
    folder = PLACE / name
    _run(sys.executable, "-m", "venv", folder)
    return folder / "bin"


def build(commit: str, tag: str) -> tuple[Path, Path]:
    """Build the wheel and the source archive of a commit, look through them, and return them.

    Raises:
        ReleaseError: they could not be built, or hold what they should not.
    """
    source, made = PLACE / "source", PLACE / "made"
    source.mkdir(parents=True)
    tree = PLACE / "tree.tar"
    _git("archive", "--format=tar", f"--output={tree}", commit)
    _run("tar", "-xf", tree, "-C", source)
    readme = source / "README.md"
    readme.write_text(
        for_index(readme.read_text(encoding="utf-8"), address.repository(), tag), encoding="utf-8"
    )
    tools = _environment("tools")
    _run(tools / "pip", "install", "--quiet", "build", "twine")
    # two builds of a commit are alike
    moment = _git("show", "-s", "--format=%ct", commit)
    # the wheel is made from the source archive, which is thereby shown to be complete
    _run(tools / "python", "-m", "build", "--outdir", made, source, SOURCE_DATE_EPOCH=moment)
    (wheel,), (sources,) = made.glob("*.whl"), made.glob("*.tar.gz")
    _run(tools / "twine", "check", "--strict", wheel, sources)
    package = published(_git("ls-tree", "-r", "--name-only", commit, "grader").splitlines())
    with zipfile.ZipFile(wheel) as held:
        _complain(wheel, spare_and_missing(held.namelist(), WHEELS_OWN, package))
    with tarfile.open(sources) as inside:
        # all of it is in one folder
        names = [one.name.partition("/")[2] for one in inside.getmembers() if one.isfile()]
        _complain(sources, spare_and_missing(names, _ARCHIVES_OWN, package))
    return wheel, sources


def _complain(archive: Path, faults: Sequence[str]) -> None:
    if faults:
        raise ReleaseError("\n".join(f"{archive.name}: {fault}" for fault in faults))


def attempt(wheel: Path, number: str) -> None:
    """Install a wheel into a new environment, and judge a right and a wrong answer there.

    Raises:
        ReleaseError: it cannot be installed, or its command does not do what it should.
    """
    programs = _environment("fresh")
    if (
        platform.system() == "Linux"
        and not install.has_nvidia_driver()
        and install.reachable(f"{install.CPU_INDEX}/torch/")
    ):  # it spares gigabytes
        _run(programs / "pip", "install", "--quiet", "torch", "--index-url", install.CPU_INDEX)
    _run(programs / "pip", "install", "--quiet", wheel)
    away = PLACE / "away"
    away.mkdir()
    right = FOLDER / "02_broadcast" / RIGHT / "broadcast_flat.py"
    shutil.copy(right, away / "right.py")
    (away / "wrong.py").write_text(_WRONG, encoding="utf-8")
    command = str(programs / "gather-round")

    def call(*words: str) -> tuple[int, str]:
        bare = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        done = subprocess.run(
            [command, *words], cwd=away, env={**bare, "GRADER_PROGRESS": ""},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.stderr:
            raise ReleaseError(f"gather-round {' '.join(words)} said:\n{done.stderr}")
        return done.returncode, done.stdout

    if call("--version") != (0, f"{number}\n"):
        raise ReleaseError(f"the installed command does not say that it is {number}")
    for file, status, expected in (("right.py", 0, "passed"), ("wrong.py", 1, "failed")):
        ended, said = call("check", file, "broadcast", "--json")
        (verdict,) = json.loads(said)["exercises"]
        if (ended, verdict["status"]) != (status, expected):
            raise ReleaseError(f"{file} should be {expected}, with status {status}; it is:\n{said}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and try a release, and tag it if asked to.

    Returns:
        0 if all is well, 1 if what was built is wrong, 2 if there is nothing to release.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--tag", action="store_true", help="tag the commit, if all is well")
    parser.add_argument("--collect", action="store_true", help="move changes/ into CHANGELOG.md")
    request = parser.parse_args(arguments)
    if request.collect:
        collect(datetime.datetime.now(datetime.timezone.utc).date().isoformat())
        return 0
    number, commit = version(), _git("rev-parse", "HEAD")
    tag = f"v{number}"
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat() if request.tag else ""
    refused = refusals(ROOT, today)
    if refused:
        print("\n".join(refused), file=sys.stderr)
        return 2
    shutil.rmtree(PLACE, ignore_errors=True)
    try:
        _step(f"building {number} from {commit[:10]}")
        archives = build(commit, tag)
        _step("installing the wheel into a new environment, and judging with it")
        attempt(archives[0], number)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    (ROOT / "dist").mkdir()
    for archive in archives:
        shutil.copy(archive, ROOT / "dist")
        _step(f"dist/{archive.name}, {archive.stat().st_size / 1e6:.1f} MB")
    if not request.tag:
        _step(f"All is well. Nothing was tagged; make release ARGS=--tag makes the tag {tag}.")
        return 0
    notes = f"Gather Round {number}\n\n{changes(number)[1]}\n"
    # a heading of the notes is no comment
    _git("tag", "--annotate", "--cleanup=whitespace", "--message", notes, tag, commit)
    _step(f"Tagged {tag}. To publish it: git push origin {tag}, and twine upload dist/*")
    return 0


if __name__ == "__main__":
    sys.exit(main())
