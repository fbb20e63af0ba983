// Steps through the rounds of a run.  Everything it shows is in the element's
// data-replay attribute, so it needs no kernel and no network.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = ["#a6cfe6", "#f7d9a6", "#a6dac8", "#ecd0de", "#c4e4f7", "#f0c3a6", "#dbdbb8", "#cccccc"];
  const CELL = { width: 84, height: 24 }, GAP = 72, SIDE = 84;

  const element = (parent, name, attributes = {}, text = "") => {
    const made = parent.namespaceURI === SVG || name === "svg"
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    parent.appendChild(made);
    return made;
  };

  class Player {
    constructor(home) {
      this.film = JSON.parse(home.dataset.replay);
      this.step = 0;
      this.timer = null;
      home.replaceChildren();
      this.build(home);
      this.show(0);
    }

    build(home) {
      const { film } = this;
      home.setAttribute("role", "group");
      home.setAttribute("aria-label", `Replay of ${film.title} on ${film.ranks} ranks`);
      const last = film.frames.length - 1;
      const bar = element(home, "div", { class: "gr-bar" });
      const button = (label, key, action) => {
        const made = element(bar, "button", { type: "button", "aria-label": label, title: `${label} (${key})` });
        made.addEventListener("click", action);
        return made;
      };
      button("First round", "Home", () => this.go(0)).textContent = "Start";
      button("One round back", "←", () => this.go(this.step - 1)).textContent = "Back";
      this.toggle = button("Play", "Space", () => this.play());
      this.toggle.textContent = "Play";
      button("One round on", "→", () => this.go(this.step + 1)).textContent = "Next";
      button("End", "End", () => this.go(last)).textContent = "End";
      this.slider = element(bar, "input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Round" });
      this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
      const label = element(bar, "label", {}, "Speed ");
      this.speed = element(label, "select");
      for (const [name, value] of [["slow", 2400], ["normal", 1200], ["fast", 400]]) {
        element(this.speed, "option", { value }, name);
      }
      this.speed.value = "1200";
      this.caption = element(home, "p", { class: "gr-caption", "aria-live": "polite" });
      const width = 2 * SIDE + film.ranks * CELL.width + (film.ranks - 1) * GAP;
      const rows = Math.max(1, film.headings.reduce((sum, [, count]) => sum + count, 0));
      const gaps = Math.max(0, film.headings.length - 1) * 10;
      // messages that pass over other ranks need room above
      const longest = Math.max(1, ...film.frames.flatMap((f) => f.arrows.map(([a, b]) => this.isWrap(a, b) ? 1 : Math.abs(b - a))));
      this.top = longest > 1 ? 44 + 7 * longest : 22;
      const height = this.top + rows * CELL.height + gaps + 34;
      this.bottom = height - 34;
      this.picture = element(home, "svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img" });
      this.details = element(home, "ul", { class: "gr-details" });
      home.addEventListener("keydown", (event) => this.key(event, last));
    }

    key(event, last) {
      // a key that is meant for the player is not one of the page's shortcuts:
      // in JupyterLab, Enter would edit the cell and an arrow leave it
      if (!(event.ctrlKey || event.metaKey || event.altKey)) event.stopPropagation();
      const onControl = event.target === this.slider || event.target === this.speed;
      const to = { ArrowRight: this.step + 1, ArrowLeft: this.step - 1, Home: 0, End: last }[event.key];
      if (to === undefined || onControl) return;
      this.go(to);
      event.preventDefault();
    }

    play() {
      if (this.timer !== null) return this.stop();
      if (this.step === this.film.frames.length - 1) this.show(0);
      this.toggle.textContent = "Pause";
      this.toggle.setAttribute("aria-label", "Pause");
      const next = () => {
        if (this.step === this.film.frames.length - 1 || !this.picture.isConnected) return this.stop();
        this.show(this.step + 1);
        this.timer = setTimeout(next, Number(this.speed.value));
      };
      this.timer = setTimeout(next, Number(this.speed.value) / 3);
    }

    stop() {
      clearTimeout(this.timer);
      this.timer = null;
      this.toggle.textContent = "Play";
      this.toggle.setAttribute("aria-label", "Play");
    }

    go(step) {
      this.stop();
      this.show(Math.max(0, Math.min(step, this.film.frames.length - 1)));
    }

    // whether a message goes round the back of the ring
    isWrap(from, to) {
      const last = this.film.ranks - 1;
      return last > 1 && Math.abs(to - from) === last && this.film.ring;
    }

    x(rank) { return SIDE + rank * (CELL.width + GAP); }

    // groups of cells stand a little apart
    y(row) {
      let above = 0, offset = 0;
      for (const [, count] of this.film.headings) {
        above += count;
        if (row >= above) offset += 10;
      }
      return this.top + row * CELL.height + offset;
    }

    show(step) {
      const { film, picture } = this, frame = film.frames[step], last = film.frames.length - 1;
      this.step = step;
      this.slider.value = step;
      const name = step < last ? `Round ${step + 1} of ${last}` : last ? `The end, after ${last} ${last === 1 ? "round" : "rounds"}` : "No messages";
      this.slider.setAttribute("aria-valuetext", name);
      const told = frame.arrows.map(([from, to, what]) => `${from} → ${to}: ${film.contents[what][0]}`);
      this.caption.textContent = name;
      picture.replaceChildren();
      const title = `${name}. ${told.join(", ")}`;
      picture.setAttribute("aria-label", title);
      this.headings();
      const busy = new Set(frame.arrows.filter((a) => a[5] !== null).flatMap(
        (a) => Array.from({ length: a[7] }, (_, i) => `${a[0]}/${a[5] + i}`)));
      frame.cells.forEach((column, rank) => this.column(column, rank, busy));
      frame.arrows.forEach((arrow) => this.arrow(arrow));
      this.details.replaceChildren();
      for (const [from, to, what, size, site] of frame.arrows) {
        element(this.details, "li", {}, `rank ${from} → rank ${to}: ${film.contents[what][0]}, ${size}, ${site}`);
      }
    }

    headings() {
      let row = 0;
      for (const [name, count] of this.film.headings) {
        if (this.film.headings.length > 1) {
          element(this.picture, "text", { x: 4, y: this.y(row) + 16, class: "gr-faint" }, name);
        }
        row += count;
      }
    }

    column(column, rank, busy) {
      const { picture, film } = this, x = this.x(rank);
      element(picture, "text", { x: x + CELL.width / 2, y: this.bottom + 20, class: "gr-rank" }, `rank ${rank}`);
      if (!column.length) {
        element(picture, "rect", { x, y: this.top, width: CELL.width, height: CELL.height, class: "gr-empty" });
      }
      column.forEach((what, row) => {
        const [text, owners] = film.contents[what], y = this.y(row);
        const part = CELL.width / Math.max(owners.length, 1);
        owners.forEach((owner, i) => {
          element(picture, "rect", { x: x + i * part, y, width: part, height: CELL.height, fill: COLOURS[owner % COLOURS.length] });
        });
        element(picture, "rect", {
          x, y, width: CELL.width, height: CELL.height,
          class: busy.has(`${rank}/${row}`) ? "gr-cell gr-busy" : owners.length || text ? "gr-cell" : "gr-empty",
        });
        const size = Math.min(13, 1.42 * (CELL.width - 6) / Math.max(text.length, 1));
        element(picture, "text", {
          x: x + CELL.width / 2, y: y + CELL.height / 2 + size * 0.36,
          class: owners.length ? "gr-label gr-dark" : "gr-label", "font-size": size,
        }, text);
      });
    }

    arrow([from, to, what, , , leaves, enters]) {
      const { picture, film } = this, all = film.contents[what][0];
      const text = all.includes(" ") ? `${all.split(" ")[0]} …` : all;
      const y1 = this.y(leaves ?? enters ?? 0) + CELL.height / 2;
      const y2 = this.y(enters ?? leaves ?? 0) + CELL.height / 2;
      const n = film.ranks, right = this.x(n - 1) + CELL.width;
      const group = element(picture, "g", { class: "gr-arrow" });
      const head = (x, y, angle) => element(group, "path", {
        d: "M0,0 L-9,-4.5 L-9,4.5 Z", transform: `translate(${x} ${y}) rotate(${angle})`, class: "gr-head",
      });
      const note = (x, y) => {
        const size = Math.min(11, 1.35 * (GAP - 4) / Math.max(text.length, 1));
        element(group, "text", { x, y: y - 5, "font-size": Math.max(size, 7.5), class: "gr-note" }, text);
      };
      if (this.isWrap(from, to) && to === 0) {
        // round the back of the ring: out on the right, in on the left
        element(group, "path", { d: `M${right},${y1} h${SIDE - 30}`, class: "gr-line" });
        head(right + SIDE - 22, y1, 0);
        note(right + (SIDE - 26) / 2, y1);
        element(group, "path", { d: `M24,${y2} H${SIDE - 9}`, class: "gr-line" });
        head(SIDE - 1, y2, 0);
        note((SIDE + 16) / 2, y2);
      } else if (this.isWrap(from, to)) {
        element(group, "path", { d: `M${SIDE},${y1} H30`, class: "gr-line" });
        head(22, y1, 180);
        note((SIDE + 16) / 2, y1);
        element(group, "path", { d: `M${right + SIDE - 24},${y2} H${right + 9}`, class: "gr-line" });
        head(right + 1, y2, 180);
        note(right + (SIDE - 26) / 2, y2);
      } else {
        const forth = to > from, near = Math.abs(to - from) === 1;
        const x1 = this.x(from) + (forth ? CELL.width : 0), x2 = this.x(to) + (forth ? -1 : CELL.width + 1);
        if (near) {
          const shift = forth ? 0 : 9;
          element(group, "path", { d: `M${x1},${y1 + shift} L${x2 + (forth ? -7 : 7)},${y2 + shift}`, class: "gr-line" });
          head(x2, y2 + shift, Math.atan2(y2 - y1, x2 - x1) * 180 / Math.PI);
          note((x1 + x2) / 2, (y1 + y2) / 2 + (forth ? 0 : 22));
        } else {
          const high = Math.min(y1, y2) - 56 - 14 * Math.abs(to - from);
          const middle = (x1 + x2) / 2;
          element(group, "path", { d: `M${x1},${y1} Q${middle},${high} ${x2 + (forth ? -5 : 5)},${y2 - 4}`, class: "gr-line" });
          head(x2, y2, Math.atan2(y2 - high, x2 - middle) * 180 / Math.PI);
          note(middle, (high + (y1 + y2) / 2) / 2);
        }
      }
    }
  }

  const start = () => {
    for (const home of document.querySelectorAll(".gather-round-replay:not([data-live])")) {
      home.dataset.live = "yes";
      new Player(home);
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
