"""The course as a student uses it: JupyterLab, keyboard and mouse."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from tests.system.browser.lab import PATIENCE, Reader, Server
from tests.system.browser.replays import Watched

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

WRONG = """def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)


check(broadcast)"""

RIGHT = """def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)


check(broadcast)"""


def test_a_wrong_answer_turns_red_and_a_right_one_green(reader: Reader) -> None:
    reader.open("notebooks/02_broadcast.ipynb")
    reader.cell("from grader import check").run()
    stub = reader.cell("Everyone's x becomes src's x.")
    stub.run()
    expect(stub.output).to_contain_text("not written yet")
    stub.write(WRONG)
    stub.run()
    expect(stub.output).to_contain_text("± broadcast")
    expect(stub.output).to_contain_text("Hint:")
    # hints open where they stand, each inside the one before, by mouse and keyboard
    first = stub.output.get_by_text("Hint 1 of 2")
    answer = stub.output.get_by_text("Show the answer")
    expect(first).to_be_visible()
    expect(answer).to_be_hidden()
    first.click()
    stub.output.get_by_text("Hint 2 of 2").press("Enter")
    expect(answer).to_be_visible()
    expect(stub.output.get_by_text("This is the whole answer:")).to_be_hidden()
    answer.press("Enter")
    expect(stub.output.get_by_text("This is the whole answer:")).to_be_visible()
    stub.write(RIGHT)
    stub.run()
    expect(stub.output).to_contain_text("✓ broadcast passed")


def test_the_next_exercise_is_a_click_away(reader: Reader) -> None:
    reader.open("notebooks/02_broadcast.ipynb")
    cell = reader.cell("Everyone's x becomes src's x.")
    # the tests keep no progress, and this reader does
    kept = "import os\nos.environ['GRADER_PROGRESS'] = '../kept.json'\n"
    cell.write(kept + "import torch.distributed as dist\nfrom grader import check\n\n" + RIGHT)
    cell.run()
    expect(cell.output).to_have_count(1)
    expect(cell.output).to_contain_text("1 of 1 point · 1 of ")
    heading = reader.page.get_by_role("heading", name="Exercise: tree_broadcast")
    expect(heading).not_to_be_in_viewport()
    cell.output.get_by_role("link", name="tree_broadcast").click()
    expect(heading).to_be_in_viewport()


REPLAY = RIGHT.replace("check(broadcast)", "from grader import replay\n\nreplay(broadcast, 4)")

HANG = """import time


def never():
    while True:
        time.sleep(0.01)


run(never, 3)"""


def test_a_replay_is_stepped_with_mouse_and_keyboard(reader: Reader) -> None:
    reader.open("notebooks/02_broadcast.ipynb")
    reader.cell("from grader import check").run()
    cell = reader.cell("Everyone's x becomes src's x.")
    cell.write(REPLAY)
    cell.run()
    watched = Watched(reader.page, cell.output.locator(".gather-round-replay"))
    watched.is_stepped()
    watched.is_stepped_from_its_picture()
    # the still picture is folded away
    still = cell.output.get_by_role("img", name="Every round as a picture.")
    expect(still).not_to_be_visible()
    cell.output.get_by_text("All rounds in one picture").click()
    expect(still).to_be_visible()
    # and it still steps after it was scrolled away
    watched.button("First").click()
    watched.button("Next").click()
    cells = reader.page.locator(".jp-Notebook .jp-Cell:visible")
    cells.last.scroll_into_view_if_needed()
    cells.first.scroll_into_view_if_needed()
    watched.says("Round 1 of")
    watched.button("First").click()
    watched.says("Before round 1 of")


def _until_ranks(server: Server, some: bool) -> None:
    until = time.monotonic() + PATIENCE
    while bool(server.ranks()) != some:
        assert time.monotonic() < until, server.ranks()
        time.sleep(0.02)


def test_stopping_a_cell_that_hangs_leaves_no_process(reader: Reader) -> None:
    reader.open("notebooks/02_broadcast.ipynb")
    reader.cell("from grader import check").run()
    cell = reader.cell("Everyone's x becomes src's x.")
    cell.write(HANG)
    cell.start()
    _until_ranks(reader.server, True)
    reader.page.get_by_role("button", name="Interrupt the kernel").click()
    cell.wait()
    expect(cell.output).to_contain_text("Stopped: every rank has been ended")
    _until_ranks(reader.server, False)
    # and the kernel is as good as new
    cell.write(RIGHT)
    cell.run()
    expect(cell.output).to_contain_text("✓ broadcast passed")


def test_a_solved_chapter_runs_without_an_error(reader: Reader) -> None:
    reader.open("solutions/03_scatter_gather.ipynb")
    reader.run_all()
    outputs = reader.page.locator(".jp-OutputArea-output")
    # once where it is written, and its points at the end
    expect(outputs.filter(has_text="✓ gather passed")).to_have_count(1)
    expect(outputs.filter(has_text="✓ gather 1 of 1 point")).to_have_count(1)
    for wrong in ("error", "stderr"):
        kind = f"application/vnd.jupyter.{wrong}"
        expect(reader.page.locator(f'[data-mime-type="{kind}"]')).to_have_count(0)


NOT_DECODED = """async () => {
    const all = [...document.querySelectorAll(".jp-Notebook img")];
    await Promise.all(all.map((i) => i.decode().catch(() => null)));
    return all.filter((i) => !i.naturalWidth).map((i) => i.src);
}"""


@pytest.mark.parametrize(
    ("chapter", "picture"),
    [("11_ring_all_reduce", "Every round as a picture."), ("12_deadlock_clinic", "Who waits for")],
)
def test_a_notebook_that_is_not_trusted_shows_its_pictures(
    reader: Reader, chapter: str, picture: str
) -> None:
    reader.open(f"solutions/{chapter}.ipynb")
    page = reader.page
    if chapter == "11_ring_all_reduce":
        assert page.locator(".gather-round-replay svg").count() == 0, "it was to be untrusted"
        words = page.locator(".jp-OutputArea-output pre", has_text="round 1").first
        expect(words).to_be_visible()
        page.locator(".jp-OutputArea-output summary", has_text="All rounds in one picture").click()
    # vector graphics, which stay because they are an image
    image = page.get_by_role("img", name=picture).first
    image.scroll_into_view_if_needed()
    expect(image).to_be_visible()
    assert image.get_attribute("src").startswith("data:image/svg+xml,")
    assert page.locator(".jp-Notebook img").count() > 1
    assert page.evaluate(NOT_DECODED) == []


def test_progress_opens_the_next_chapter(reader: Reader) -> None:
    reader.open("notebooks/02_broadcast.ipynb")
    cell = reader.cell("from grader import check")
    cell.write("from grader import progress\n\nprogress()")
    cell.run()
    expect(cell.output).to_contain_text("exercises passed")
    cell.output.get_by_role("link", name="03 · Scatter and gather").click()
    title = reader.page.get_by_role("heading", name="03 · Scatter and gather")
    expect(title).to_be_visible(timeout=PATIENCE * 1000)
    reader.wait_until_idle()


def test_reset_puts_the_stub_below_and_leaves_the_answer(reader: Reader) -> None:
    reader.open("notebooks/02_broadcast.ipynb")
    setup = reader.cell("from grader import check")
    setup.run()
    answer = reader.cell("Everyone's x becomes src's x.")
    answer.write('mine = "my text"\nreset("broadcast")')
    setup.write("import torch\nimport torch.distributed as dist\nfrom grader import check, reset")
    setup.run()
    answer.run()
    expect(answer.output).to_contain_text("in a new cell below")
    stub = reader.cell("Everyone's x becomes src's x.")
    expect(reader.page.locator(".jp-CodeCell", has_text='mine = "my text"')).to_have_count(1)
    stub.run()
    expect(stub.output).to_contain_text("not written yet")
