// What is wider than its box scrolls inside it; by keyboard, too, if it can have the focus.
const boxes = document.querySelectorAll(
  "article :is(p, .cell_output):has(> img.wide), article .output.text_html, .math-wrapper, .table-wrapper," +
    " article [style*='overflow-x: auto']",
);
const look = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth + 1) {
      target.tabIndex = 0;
    } else {
      target.removeAttribute("tabindex");
    }
  }
});
boxes.forEach((box) => look.observe(box));
