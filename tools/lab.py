"""Starts JupyterLab, and with it the kernel of the notebook that it is going to show.

    python -m tools.lab ...          # what follows is for JupyterLab

By itself, JupyterLab starts a kernel when the page has shown the notebook, and the grader is
imported when the learner asks for it: one waits for the other.  Here all three go on at once, and
the page finds its kernel running, as it does after a reload.
"""

from __future__ import annotations

import posixpath
import sys

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import ApiPath
from jupyterlab.labapp import LabApp

#: What the kernel imports as it starts: it starts the fork server, too.
_IMPORTED = "grader.api"

#: Where JupyterLab shows a file.
_TREE = "/lab/tree/"


async def start_kernel(server: ServerApp) -> None:
    """Start the kernel of the notebook behind the default address, if one is there."""
    path = server.default_url.partition(_TREE)[2]
    if not path.endswith(".ipynb"):
        return
    name = posixpath.basename(path)
    kernel = await server.kernel_manager.start_kernel(
        path=ApiPath(posixpath.dirname(path)),
        env=server.session_manager.get_kernel_env(path, name),
        extra_arguments=[f"--ext={_IMPORTED}"],
    )
    await server.session_manager.create_session(
        path=path, name=name, type="notebook", kernel_id=kernel
    )


def main() -> None:
    """Start the server and the kernel, and serve until told to stop."""
    server = LabApp.initialize_server(argv=sys.argv[1:])
    # the page would have Node look whether JupyterLab itself has to be built anew
    server.web_app.settings["page_config_data"].update(buildAvailable=False, buildCheck=False)
    server.io_loop.run_sync(lambda: start_kernel(server))
    server.start()


if __name__ == "__main__":
    main()
