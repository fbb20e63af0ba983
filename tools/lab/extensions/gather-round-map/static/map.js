// What the course adds to JupyterLab: its map in the left bar, and pictures for the dark theme.
//
// JupyterLab takes extensions as containers of webpack's module federation: an object with `init`
// and `get`. This one is written by hand, so that there is nothing to build: it asks the server for
// the page that `progress()` shows in a notebook, and asks again after a cell has run.
(() => {
  const NAME = "gather-round-map";
  /** Pixels of a window in which the map does not open by itself. */
  const NARROW = 1000;
  const ICON =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">' +
    '<g class="jp-icon3" fill="#616161"><path d="M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm0 1.5a7.5 7.5' +
    ' 0 1 1 0 15 7.5 7.5 0 0 1 0-15Z"/><circle cx="12" cy="4" r="3"/><circle cx="20" cy="12" r="3"/>' +
    '<circle cx="12" cy="20" r="3"/><circle cx="4" cy="12" r="3"/></g></svg>';

  let shared;
  /** Return a module of JupyterLab's own. */
  const ask = async (name) => (await Object.values(shared[name])[0].get())();

  const plugin = (modules) => ({
    id: `${NAME}:plugin`,
    autoStart: true,
    requires: [modules.application.ILayoutRestorer],
    activate: (app, restorer) => {
      const panel = new modules.widgets.Widget();
      panel.id = NAME;
      panel.title.caption = "Course";
      panel.title.icon = new modules.ui.LabIcon({ name: NAME, svgstr: ICON });
      panel.node.style.cssText =
        "overflow-y: auto; padding: 10px; color: var(--jp-ui-font-color1);" +
        " background: var(--jp-layout-color1); font-size: var(--jp-ui-font-size1)";

      const { makeSettings, makeRequest } = modules.services.ServerConnection;
      const settings = app.serviceManager.serverSettings ?? makeSettings();
      const refresh = async () => {
        const answer = await makeRequest(`${settings.baseUrl}${NAME}`, {}, settings);
        if (!answer.ok) return;
        const page = await answer.text();
        if (page === panel.shown) return;
        panel.shown = page;
        panel.node.innerHTML = page;
      };
      panel.node.addEventListener("click", (event) => {
        const link = event.target.closest("a[href]");
        if (link === null) return;
        event.preventDefault();
        const path = decodeURIComponent(link.getAttribute("href"));
        void app.commands.execute("docmanager:open", { path });
      });
      modules.notebook.NotebookActions.executed.connect(() => void refresh());

      app.shell.add(panel, "left", { rank: 50 });
      restorer.add(panel, NAME);
      void refresh();
      // In a new workspace JupyterLab shows the file browser; in any other, what was there.
      void Promise.all([app.restored, app.shell.restored]).then(([, layout]) => {
        if (!layout.fresh) return;
        setTimeout(() => {
          app.shell.activateById(NAME);
          // beside the bar, a chapter would be a few words wide
          if (window.innerWidth < NARROW) app.shell.collapseLeft();
        });
      });

      // A picture that is drawn for a light page is turned dark by its colours' lightness alone.
      document.head.appendChild(document.createElement("style")).textContent =
        'body[data-jp-theme-light="false"] .jp-RenderedMarkdown img[src*="/imgs/"][src*=".png"]' +
        " { filter: invert(0.92) hue-rotate(180deg) saturate(1.6); }";
    },
  });

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB[NAME] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const modules = {
        application: await ask("@jupyterlab/application"),
        notebook: await ask("@jupyterlab/notebook"),
        services: await ask("@jupyterlab/services"),
        ui: await ask("@jupyterlab/ui-components"),
        widgets: await ask("@lumino/widgets"),
      };
      return () => ({ __esModule: true, default: plugin(modules) });
    },
  };
})();
