"""What makes the course a project: citing, reporting, releasing, and its address."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from grader import __version__
from tools import address, release
from tools.install import PYTHONS
from tools.site.versions import LIST, CourseVersion, publish, version_of

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings this one
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))


def git(root, *words):
    ada = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *ada, *words], cwd=root, check=True, capture_output=True)


# Versions and citing. ---------------------------------------------------------------------


def test_version_citation_and_changelog_agree():
    assert release.version() == __version__ == str(Version(__version__))
    date, lines = release.changes(__version__)
    assert lines
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], str(cited["date-released"])) == (__version__, date)
    # what the format's schema asks for
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= cited.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited["license"] == project["license"]
    assert [{"name": one["name"]} for one in cited["authors"]] == project["authors"]


@pytest.fixture
def checkout(tmp_path):
    """A checkout that can be released, as far as its files say."""
    (tmp_path / "grader").mkdir()
    (tmp_path / "grader" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\ndate-released: 2026-01-31\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-31\n\n- New.\n"
        "\n## [1.1.0] - 2026-01-01\n\n- Old.\n"
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "All of it")
    return tmp_path


def replaced(name, old, new):
    def spoil(root):
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new))
        git(root, "commit", "-q", "-a", "-m", "Spoil it")

    return spoil


def test_a_clean_checkout_can_be_released(checkout):
    assert release.refusals(checkout, "2026-01-31") == []
    assert release.refusals(checkout, "") == []
    assert release.changes("1.2.0", checkout) == ("2026-01-31", "- New.")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda root: (root / "new.txt").touch(), "not committed"),
        (lambda root: git(root, "tag", "v1.2.0"), "v1.2.0 is tagged already"),
        (replaced("CHANGELOG.md", "[1.2.0]", "[1.2.1]"), r"nothing under ## \[1.2.0\]"),
        (replaced("CHANGELOG.md", "- New.\n\n", ""), r"nothing under ## \[1.2.0\]"),
        (replaced("CHANGELOG.md", " - 2026-01-31", ""), "no date"),
        (replaced("CHANGELOG.md", "d]\n", "d]\n\n- Newer.\n"), r"under ## \[Unreleased\]"),
        (replaced("CITATION.cff", "1.2.0", "1.1.0"), "does not say version: 1.2.0"),
        (replaced("CITATION.cff", "01-31", "01-30"), "does not say date-released: 2026-01-31"),
    ],
)
def test_what_cannot_be_released_is_refused_with_the_mend(checkout, spoil, said):
    spoil(checkout)
    (refusal,) = release.refusals(checkout, "")
    assert re.search(said, refusal)


def test_a_change_waits_in_a_file_until_it_is_collected(checkout):
    log = checkout / "CHANGELOG.md"
    log.write_text(
        log.read_text().replace("[1.2.0] - 2026-01-31\n\n- New.", "[1.0.0] - 2025-01-01")
    )
    log.write_text(log.read_text().replace("d]\n", "d]\n\n### Added\n\n- One.\n"))
    (checkout / "changes").mkdir()
    (checkout / "changes" / "two.added.md").write_text("- Two.\n")
    (checkout / "changes" / "three.fixed.md").write_text("- Three.\n")
    assert any("--collect" in refusal for refusal in release.refusals(checkout, ""))
    release.collect("2026-01-31", checkout)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "Collect")
    assert release.refusals(checkout, "2026-01-31") == []
    assert (
        release.changes("1.2.0", checkout)[1]
        == "### Added\n\n- Two.\n- One.\n\n### Fixed\n\n- Three."
    )
    assert log.read_text().startswith(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-31\n\n### Added\n"
    )


def test_a_change_of_no_kind_is_not_collected(checkout):
    (checkout / "changes").mkdir()
    (checkout / "changes" / "two.md").write_text("- Two.\n")
    with pytest.raises(release.ReleaseError, match=r"NAME\.KIND\.md"):
        release.collect("2026-01-31", checkout)
    assert (checkout / "changes" / "two.md").exists()


def test_a_release_is_dated_on_its_day(checkout):
    (refusal,) = release.refusals(checkout, "2026-02-01")
    assert "today is 2026-02-01" in refusal


def test_an_archive_is_compared_with_what_git_knows():
    held = ["grader/a.py", "solutions/00.py", "x-1.dist-info/METADATA"]
    assert release.spare_and_missing(held, release.WHEELS_OWN, ["grader/a.py", "grader/b.css"]) == [
        "solutions/00.py should not be in it",
        "grader/b.css is missing",
    ]


@pytest.mark.parametrize("repository", ["", "ada/rounds"])
def test_no_link_on_a_package_index_leads_nowhere(repository):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if repository:
        readme = readme.replace("{owner}", "ada").replace("{name}", "rounds")
    shown = release.for_index(readme, repository, "v1.0.0")
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", shown) == []
    assert "{owner}" not in shown
    ring = "https://raw.githubusercontent.com/ada/rounds/v1.0.0/imgs/ring_all_reduce.svg"
    assert (ring in shown) == bool(repository)


# The address. -----------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path):
    """The files that wait for the address, or have it."""
    for place in address.PLACES:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    return tmp_path


def texts(root):
    return {place: (root / place).read_text(encoding="utf-8") for place in address.PLACES}


def test_an_address_is_filled_in_everywhere_and_moves(places):
    waiting = texts(places)
    assert set(address.own("ada/rounds", places)) == set(address.PLACES)
    owned = texts(places)
    for place, text in owned.items():
        assert not re.search(r"\{owner\}|\{name\}|<!-- published|# published:", text), place
    urls = tomllib.loads(owned["pyproject.toml"])["project"]["urls"]
    assert urls["Repository"] == "https://github.com/ada/rounds"
    assert yaml.safe_load(owned["CITATION.cff"])["repository-code"] == urls["Repository"]
    assert address.own("ada/rounds", places) == []
    assert set(address.own("bob/circle.s", places)) == set(address.PLACES)
    moved = texts(places)
    assert not any("ada" in re.findall(r"[\w]+", text) for text in moved.values())
    assert "https://bob.github.io/circle.s/" in moved["README.md"]
    assert all(waiting[place] != moved[place] for place in address.PLACES)


@pytest.mark.parametrize("given", ["", "rounds", "ada/", "https://github.com/ada/rounds", "a b/c"])
def test_what_is_no_address_is_refused(places, given):
    before = texts(places)
    with pytest.raises(ValueError, match="name/repository"):
        address.own(given, places)
    assert texts(places) == before


def test_no_reader_sees_a_placeholder():
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = done.stdout.decode().split("\0")
    pages = [name for name in names if re.search(r"\.(md|cff|ya?ml|toml)$", name)]
    assert {"README.md", "docs/servers.md", "CITATION.cff"} <= set(pages)
    for name in pages:
        text = address.without_comments((ROOT / name).read_text(encoding="utf-8"))
        text = re.sub(r"^# published:.*\n", "", text, flags=re.M)
        found = re.findall(r"\{owner\}|\bOWNER/|\byour-org\b|\bexample\.com/", text)
        assert not found, name


# Forms, workflows, the container. ---------------------------------------------------------


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_one(path):
    """By GitHub's syntax for issue forms, as far as these use it."""
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys() <= {
        "name", "description", "title", "labels", "body",
    }  # fmt: skip
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    ids = [one["id"] for one in fields]
    assert len(ids) == len(set(ids)) > 0
    for one in fields:
        assert one["type"] in ("input", "textarea", "dropdown", "checkboxes")
        assert one["attributes"]["label"]
        if one["type"] in ("dropdown", "checkboxes"):
            options = [str(option) for option in one["attributes"]["options"]]
            assert len(options) == len(set(options)) > 0
    assert any(one.get("validations", {}).get("required") for one in fields)


def test_there_is_a_form_for_each_kind_of_report():
    assert [path.stem for path in FORMS] == [
        "1_wrong_verdict", "2_false_accusation", "3_chapter", "4_feature",
    ]  # fmt: skip


def test_ci_runs_the_oldest_and_the_newest_python_that_is_promised():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == [
        "{}.{}".format(*one) for one in PYTHONS
    ]
    assert jobs["linux"]["steps"][-1]["run"] == "bash .ci/run"
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    promised = re.findall(r"Python :: 3\.(\d+)", "\n".join(classifiers))
    assert [int(one) for one in promised] == [*range(PYTHONS[0][1], PYTHONS[1][1] + 1)]


def test_a_workflow_runs_what_there_is_and_may_write_only_where_it_has_to():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text())
        writes = {"contents": "write"} if path.stem == "site" else {"contents": "read"}
        assert workflow["permissions"] == writes, path
        for job in workflow["jobs"].values():
            for command in (step["run"] for step in job["steps"] if "run" in step):
                for target in re.findall(r"\bmake ([a-z-]+)", command):
                    assert target in targets, f"{path}: {command}"
                for script in re.findall(r"\bbash (\S+)", command):
                    assert (ROOT / script).is_file(), f"{path}: {command}"


def test_the_container_installs_what_make_lab_would():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    container = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))
    image = re.fullmatch(
        r"mcr\.microsoft\.com/devcontainers/python:3\.(\d+)-\w+", container["image"]
    )
    assert PYTHONS[0] <= (3, int(image[1])) <= PYTHONS[1]
    (target,) = re.findall(r"^lab: \$\(VENV\)(\S+)", (ROOT / "Makefile").read_text(), re.M)
    assert container["postCreateCommand"] == f"make .venv{target}"


# Versions on the web site. ----------------------------------------------------------------


@pytest.fixture
def site(tmp_path):
    """Publishes pages that consist of their version alone."""
    pages = tmp_path / "pages"

    def add(what):
        built = tmp_path / "built"
        shutil.rmtree(built, ignore_errors=True)
        (built / "docs").mkdir(parents=True)
        for name in ("index.html", "docs/run.html", LIST):
            (built / name).write_text(what.label)
        (built / f"only-in-{what.folder}.html").touch()
        publish(built, pages, what)
        return {path.parent.name: path.read_text() for path in pages.glob("*/index.html")} | {
            "": (pages / "index.html").read_text()
        }

    add.pages = pages
    return add


def released(number):
    return CourseVersion(number, tagged=True, changed=False)


def test_the_newest_release_is_at_the_root_and_each_keeps_its_own_pages(site):
    begun = CourseVersion("1.0.0", tagged=False, changed=True)
    assert site(begun) == {"": "Version 1.0.0, not yet released", "main": begun.label}
    (site.pages / "CNAME").write_text("course.example.org")
    assert site(released("1.0.0"))[""] == "Version 1.0.0"
    site(released("1.10.0"))
    site(released("1.9.0"))
    found = site(CourseVersion("1.10.0", tagged=True, changed=True))
    assert found == {
        "": "Version 1.10.0", "v1.0": "Version 1.0.0", "v1.9": "Version 1.9.0",
        "v1.10": "Version 1.10.0", "main": "Changes since version 1.10.0",
    }  # fmt: skip
    assert site(released("1.0.1"))["v1.0"] == "Version 1.0.1"
    assert {path.name for path in site.pages.iterdir()} == {
        *("v1.0", "v1.9", "v1.10", "main", "docs", "index.html", LIST, "only-in-v1.10.html"),
        *("CNAME", ".nojekyll"),
    }
    # from every folder the list leads to all of them
    for folder in (site.pages, *(site.pages / name for name in ("v1.0", "v1.9", "v1.10", "main"))):
        links = re.findall(r'href="([^"]+)"', (folder / LIST).read_text())
        led_to = {(folder / link).resolve().relative_to(site.pages.resolve()) for link in links}
        assert led_to == {
            Path("index.html"), *(Path(name, "index.html") for name in found if name),
        }  # fmt: skip


def test_pages_know_whether_they_are_of_a_release(checkout):
    assert version_of(checkout).label == "Version 1.2.0, not yet released"
    git(checkout, "tag", "-a", "v1.2.0", "-m", "Released")
    known = version_of(checkout)
    assert (known.label, known.folder, known.reference) == ("Version 1.2.0", "v1.2", "v1.2.0")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "More")
    known = version_of(checkout)
    assert (known.label, known.folder) == ("Changes since version 1.2.0", "main")
