"""Starts JupyterLab with the course's settings, its map in the left bar, and kernels at once.

    python -m tools.lab ...          # what follows is for JupyterLab

By itself, JupyterLab starts a kernel when the page has shown the notebook, and the grader is
imported when the learner asks for it: one waits for the other.  Here every kernel begins with that
import, and the first chapter's is started together with the server, so that the page finds it
running, as it does after a reload.

The settings are defaults of the application (``settings/overrides.json``): nothing is written into
the learner's own, which win over them and stay.
"""

from __future__ import annotations

import posixpath
import sys
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import NATIVE_KERNEL_NAME
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from jupyter_server.utils import ApiPath, url_path_join
from jupyterlab.labapp import LabApp
from tornado.web import authenticated

from grader.course.course_map import map_html
from grader.course.index import course_index
from grader.course.progress import overview

_HERE = Path(__file__).parent

#: What a kernel imports as it starts: it starts the fork server, too.
_IMPORTED = "grader.api"

#: Where JupyterLab shows a file.
_TREE = "/lab/tree/"

#: What the extension of this name asks the server for.
_MAP = "gather-round-map"


class CourseKernels(AsyncMappingKernelManager):
    """The kernels of the server, which import the grader before a learner asks for it."""

    async def start_kernel(self, **arguments: Any) -> str:  # type: ignore[override]
        """Start a kernel; one of another language is started as ever."""
        if arguments.get("kernel_name") in (None, "", NATIVE_KERNEL_NAME):
            arguments["extra_arguments"] = [f"--ext={_IMPORTED}"]
        kernel: str = await super().start_kernel(**arguments)
        return kernel


class CourseMap(JupyterHandler):
    """Answers with the learner's map of the course."""

    @authenticated
    def get(self) -> None:
        """Answer with what ``progress()`` shows in a notebook."""
        self.finish(map_html(overview(course_index())))


async def start_kernel(server: ServerApp) -> None:
    """Start the kernel of the notebook behind the default address, if one is there."""
    path = server.default_url.partition(_TREE)[2]
    if not path.endswith(".ipynb"):
        return
    name = posixpath.basename(path)
    kernel = await server.kernel_manager.start_kernel(
        path=ApiPath(posixpath.dirname(path)),
        env=server.session_manager.get_kernel_env(path, name),
    )
    await server.session_manager.create_session(
        path=path, name=name, type="notebook", kernel_id=kernel
    )


def main() -> None:
    """Start the server and the kernel, and serve until told to stop."""
    server = LabApp.initialize_server(
        argv=[
            f"--LabApp.app_settings_dir={_HERE / 'settings'}",
            f"--LabApp.extra_labextensions_path={_HERE / 'extensions'}",
            f"--ServerApp.kernel_manager_class={__name__}.{CourseKernels.__name__}",
            *sys.argv[1:],
        ]
    )
    # the page would have Node look whether JupyterLab itself has to be built anew
    server.web_app.settings["page_config_data"].update(buildAvailable=False, buildCheck=False)
    address = url_path_join(server.base_url, _MAP)
    server.web_app.add_handlers(".*$", [(address, CourseMap)])
    server.io_loop.run_sync(lambda: start_kernel(server))
    server.start()
