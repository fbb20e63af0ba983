/* Tables to sort and to search.  Without this script they are plain tables. */
(() => {
  "use strict";
  const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  /* What a cell is sorted by: a number if it is one, its text otherwise. */
  const key = (cell) => {
    if (!cell) return "";
    const text = (cell.dataset.v ?? cell.textContent).trim();
    const number = Number(text);
    return text !== "" && Number.isFinite(number) ? number : text;
  };

  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      if (!("sort" in head.dataset)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        /* numbers are asked for to see the largest, names to find one */
        const first = typeof key(body.rows[0]?.cells[column]) === "number" && column ? "descending" : "ascending";
        const next = !now ? first : now === "ascending" ? "descending" : "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        const rows = [...body.rows].map((row) => [key(row.cells[column]), row]);
        rows.sort((a, b) => sign * compare(a[0], b[0]));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  const table = document.getElementById("class");
  if (!table) return;
  const search = document.getElementById("search");
  const show = document.getElementById("show");
  const shown = document.getElementById("shown");
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    text: plain(row.textContent),
    tags: row.dataset.tags.split(" "),
  }));
  const filter = () => {
    const wanted = plain(search.value).split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { row, text, tags } of rows) {
      const fits = wanted.every((word) => text.includes(word)) && (!show.value || tags.includes(show.value));
      row.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${rows.length} shown`;
    document.getElementById("nobody").hidden = count > 0;
  };
  search.addEventListener("input", filter);
  show.addEventListener("change", filter);
  document.querySelector(".tools").hidden = false;
  filter();
})();
