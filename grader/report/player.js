// Steps through the rounds of one run, or of two side by side.  Everything it shows is in the
// element's data-replay attribute, so it needs no kernel and no network.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  // pixels: a cell's height, an arrowhead, a lane for messages that pass over ranks, the margin, a
  // heading, and the words where a run hangs
  const CELL = 28, HEAD = 9, LANE = 18, MARGIN = 22, HEADING = 16, HALT = 38;
  // share of a round for which its messages travel
  const TRAVEL = 0.55;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const element = (parent, name, attributes = {}, text = "") => {
    const made = parent.namespaceURI === SVG || name === "svg"
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    parent.appendChild(made);
    return made;
  };
  const spread = (a) => Array.from({ length: a[7] }, (_, i) => i);

  // A label in one line, or in two where a sum is too long for one.
  const write = (parent, text, x, y, width, look, largest = 12) => {
    // bold letters are wider
    const ems = look.includes("gr-fresh") ? 1.36 : 1.48;
    const size = (longest) => Math.min(largest, ems * (width - 2) / Math.max(longest, 1));
    let lines = [text];
    if (size(text.length) < 10 && text.includes("+")) {
      const cuts = [...text.matchAll(/\+/g)].map((found) => found.index + 1);
      const cut = cuts.reduce((a, b) => Math.abs(b - text.length / 2) < Math.abs(a - text.length / 2) ? b : a);
      lines = [text.slice(0, cut), text.slice(cut)];
    }
    const points = Math.min(lines.length > 1 ? 11 : largest, size(Math.max(...lines.map((line) => line.length))));
    lines.forEach((line, i) => element(parent, "text", {
      x, y: y + points * 0.36 + (i - (lines.length - 1) / 2) * (points + 1), "font-size": points, class: look,
    }, line));
  };

  // One run: what every rank holds, and the messages of a round.
  class Picture {
    constructor(home, film) {
      this.film = film;
      if (film.name) element(home, "p", { class: "gr-name" }, film.name);
      this.svg = element(home, "svg", { role: "img" });
      this.lanes = film.frames.map((frame) => this.assign(frame.arrows));
      this.chunks = [];
    }

    isWrap(from, to) {
      const last = this.film.ranks - 1;
      return this.film.ring && last > 1 && Math.abs(to - from) === last;
    }

    // Messages that pass over other ranks, each with its lane; those that overlap get different ones.
    assign(arrows) {
      const taken = [], found = new Map();
      const long = arrows.filter(([from, to]) => Math.abs(to - from) > 1);
      long.sort((a, b) => Math.abs(a[1] - a[0]) - Math.abs(b[1] - b[0]));
      for (const arrow of long) {
        const ends = this.isWrap(arrow[0], arrow[1]) ? [-1, this.film.ranks]
          : [Math.min(arrow[0], arrow[1]), Math.max(arrow[0], arrow[1])];
        let lane = taken.findIndex((others) => others.every(([low, high]) => high <= ends[0] || ends[1] <= low));
        if (lane < 0) lane = taken.push([]) - 1;
        taken[lane].push(ends);
        found.set(arrow, lane);
      }
      return found;
    }

    layout(width) {
      const { film } = this, pitch = Math.max(60, Math.min(150, (width - 2 * MARGIN + 20) / film.ranks));
      this.gap = Math.round(14 + (pitch - 60) * 0.6);
      this.cell = Math.round(pitch - this.gap);
      const most = Math.max(0, ...this.lanes.map((of) => 1 + Math.max(-1, ...of.values())));
      this.sky = most * LANE + (most ? 8 : 0);
      this.top = this.sky + 18 + (Object.keys(film.roots).length ? 14 : 0);
      this.rows = [];
      let y = this.top;
      for (const [, count] of film.headings) {
        y += HEADING;
        for (let i = 0; i < count; i++, y += CELL) this.rows.push(y);
        y += 6;
      }
      if (!this.rows.length) {
        this.rows.push(y + 4);
        y += CELL + 8;
      }
      // where a run hangs, words stand below the ranks that go no further
      this.floor = y;
      if (film.halts) y += HALT;
      this.width = 2 * MARGIN + film.ranks * this.cell + (film.ranks - 1) * this.gap;
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${y}`);
      this.svg.setAttribute("width", this.width);
      this.svg.setAttribute("height", y);
    }

    x(rank) { return MARGIN + rank * (this.cell + this.gap); }

    // Draw a step: 0 is the start.  While messages travel, the cells are still as before.
    show(step, name, travels) {
      const { film, svg } = this, at = Math.min(step, film.frames.length - 1);
      const round = step > 0 && step < film.frames.length ? film.frames[step - 1] : null;
      const cells = film.frames[travels && round ? step - 1 : at].cells;
      const arrows = round ? round.arrows : [];
      const told = arrows.map(([from, to, what]) => `${from} → ${to}: ${film.contents[what][0]}`);
      svg.replaceChildren();
      const halts = film.halts && step >= film.frames.length - 1 && !travels;
      svg.setAttribute("aria-label", [film.name, name, round?.says.replace(/\.$/, ""), told.join(", "),
        halts ? film.halt : ""].filter(Boolean).join(". "));
      const sent = new Set(arrows.filter((a) => a[5] !== null).flatMap((a) => spread(a).map((i) => `${a[0]}/${a[5] + i}`)));
      const changed = travels || !round ? [] : round.changed;
      cells.forEach((column, rank) => this.column(column, rank, sent, new Set(changed[rank])));
      if (film.difference?.step === step && !travels) this.differs(film.difference.cells);
      this.odd = new Set(film.difference?.step === step ? film.difference.arrows.map((ends) => `${ends}`) : []);
      if (halts) this.halts(film.halts);
      this.chunks = arrows.map((arrow) => this.arrow(arrow, arrows, this.lanes[step - 1].get(arrow), travels));
    }

    column(column, rank, sent, changed) {
      const { svg, film, cell } = this, x = this.x(rank), middle = x + cell / 2;
      element(svg, "text", { x: middle, y: this.sky + 13, class: "gr-rank" }, `rank ${rank}`);
      if (film.roots[rank]) element(svg, "text", { x: middle, y: this.sky + 28, class: "gr-faint" }, `(${film.roots[rank]})`);
      let row = 0;
      for (const [heading, count] of film.headings) {
        if (column[row] >= 0) element(svg, "text", { x: middle, y: this.rows[row] - 4, class: "gr-faint" }, heading);
        row += count;
      }
      if (!column.length) element(svg, "rect", { x, y: this.rows[0], width: cell, height: CELL, class: "gr-empty" });
      column.forEach((what, row) => {
        if (what < 0) return;
        const [text, owners] = film.contents[what], y = this.rows[row];
        this.box(svg, x, y, cell, CELL, owners, owners.length || text ? "gr-cell" : "gr-empty");
        const place = `${rank}/${row}`, fresh = changed.has(row);
        if (fresh) {
          element(svg, "rect", { x: x + 2.5, y: y + 2.5, width: cell - 5, height: CELL - 5, class: "gr-changed" });
          element(svg, "path", { d: `M${x + cell - 10},${y + 1} h9 v9 Z`, class: "gr-corner" });
        }
        if (sent.has(place)) element(svg, "rect", { x, y, width: cell, height: CELL, class: "gr-sent" });
        write(svg, text, middle, y + CELL / 2, cell - 6, fresh ? "gr-label gr-fresh" : "gr-label");
      });
    }

    box(parent, x, y, width, height, owners, look) {
      const part = width / Math.max(owners.length, 1);
      owners.forEach((owner, i) => element(parent, "rect", {
        x: x + i * part, y, width: part, height, class: `gr-data gr-data${owner % 8}`,
      }));
      element(parent, "rect", { x, y, width, height, class: look });
    }

    // Say below each rank that goes no further what it waits for.
    halts(labels) {
      for (const [rank, [...lines]] of Object.entries(labels)) {
        lines.pop();
        const x = this.x(Number(rank)), middle = x + this.cell / 2;
        element(this.svg, "rect", { x: x - 4, y: this.floor + 1, width: this.cell + 8, height: HALT - 4, rx: 5, class: "gr-halt" });
        lines.forEach((line, i) => element(this.svg, "text", { x: middle, y: this.floor + 15 + 13 * i, class: "gr-rank gr-small" }, line));
      }
    }

    // Frame the cells that are not as in the run beside this one.
    differs(cells) {
      for (const [rank, row] of cells) {
        element(this.svg, "rect", {
          x: this.x(rank) - 4, y: this.rows[row] - 1, width: this.cell + 8, height: CELL + 2, class: "gr-differs",
        });
      }
    }

    // Draw a message; returns what travels, and along which line.
    arrow(arrow, all, lane, travels) {
      const [from, to, what, , , leaves, enters] = arrow, { svg, film, cell, gap } = this;
      const [whole, owners] = film.contents[what];
      const text = whole.includes(" ") ? `${whole.split(" ")[0]} …` : whole;
      const row = (place) => this.rows[Math.min(place ?? 0, this.rows.length - 1)] + CELL / 2;
      const back = all.some((other) => other[0] === to && other[1] === from);
      const wraps = this.isWrap(from, to);
      // to the right or to the left; around a ring the other way out
      const ahead = (to > from) !== wraps ? 1 : -1;
      const aside = back && !wraps ? -5 * ahead : 0;
      const y1 = row(leaves ?? enters) + aside, y2 = row(enters ?? leaves) + aside;
      const x1 = this.x(from) + (ahead > 0 ? cell : 0);
      const x2 = this.x(to) + (ahead > 0 ? 0 : cell), base = x2 - ahead * HEAD;
      let way, note;
      if (lane === undefined) {
        const middle = (x1 + base) / 2;
        way = `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${base},${y2}`;
        // where two cross, each has its words at its own beginning
        const crosses = back && y1 - y2 > CELL || back && y2 - y1 > CELL;
        note = crosses ? [x1 + ahead * gap / 4, y1 - 10, gap / 2] : [(x1 + x2) / 2, (y1 + y2) / 2 - 10, gap - 6];
      } else {
        const high = this.sky - 10 - lane * LANE, turn = Math.min(6, gap / 5);
        const up = x1 + ahead * (wraps ? 14 : Math.min(8, gap / 4)), down = base - ahead * (wraps ? 4 : Math.min(6, gap / 5));
        const over = Math.sign(down - up);
        way = `M${x1},${y1} H${up - ahead * 2} Q${up},${y1} ${up},${y1 - 4} V${high + turn} Q${up},${high} ${up + over * turn},${high}`
          + ` H${down - over * turn} Q${down},${high} ${down},${high + turn} V${y2 - 3} Q${down},${y2} ${down + ahead * 2},${y2} H${base}`;
        note = [(up + down) / 2, high - 8, Math.abs(down - up) - 16];
      }
      const group = element(svg, "g", { class: this.odd.has(`${from},${to}`) ? "gr-arrow gr-odd" : "gr-arrow" });
      element(group, "path", { d: way, class: "gr-line" });
      element(group, "path", { d: `M${x2},${y2} l${-ahead * HEAD},-5 v10 Z`, class: "gr-head" });
      if (!travels) {
        const size = Math.min(11, 1.6 * note[2] / Math.max(text.length, 1));
        if (size >= 9) element(group, "text", { x: note[0], y: note[1] + 4, "font-size": size, class: "gr-note" }, text);
        return null;
      }
      const home = this.x(from) + cell / 2, goal = this.x(to) + cell / 2;
      const line = element(group, "path", { d: `M${home},${y1} L${way.slice(1)} L${goal},${y2}`, class: "gr-way" });
      const chunk = element(svg, "g", { class: "gr-chunk" });
      const wide = Math.min(cell - 4, 14 + 7.5 * text.length);
      this.box(chunk, -wide / 2, -10, wide, 20, owners, owners.length ? "gr-cell gr-solid" : "gr-cell gr-plain");
      write(chunk, text, 0, 0, wide, "gr-label", 11);
      chunk.setAttribute("transform", `translate(${home},${y1})`);
      return { chunk, line, length: line.getTotalLength() };
    }

    // Put what travels where it is after this share of its way.
    move(share) {
      for (const { chunk, line, length } of this.chunks) {
        const { x, y } = line.getPointAtLength(share * length);
        chunk.setAttribute("transform", `translate(${x},${y})`);
      }
    }
  }

  class Player {
    constructor(home) {
      this.films = JSON.parse(home.dataset.replay);
      this.last = Math.max(...this.films.map((film) => film.frames.length)) - 1;
      this.timer = this.motion = null;
      home.replaceChildren();
      this.build(home);
      const fit = () => {
        const width = this.stage.clientWidth;
        if (!width || width === this.width) return;
        this.width = width;
        this.pictures.forEach((picture) => picture.layout(width));
        this.show(this.step);
      };
      this.step = 0;
      this.pictures.forEach((picture) => picture.layout(this.stage.clientWidth || 760));
      this.show(0);
      new ResizeObserver(fit).observe(this.stage);
    }

    build(home) {
      const [film] = this.films;
      home.setAttribute("role", "group");
      home.setAttribute("aria-label", `Replay of ${film.title} on ${film.ranks} ${film.ranks === 1 ? "rank" : "ranks"}`);
      const bar = element(home, "div", { class: "gr-bar" });
      const button = (label, key, action) => {
        const made = element(bar, "button", { type: "button", title: `${label} (${key})` }, label);
        made.addEventListener("click", action);
        return made;
      };
      button("Start", "Home", () => this.go(0));
      button("Back", "←", () => this.go(this.step - 1));
      this.toggle = button("Play", "Space", () => this.play());
      button("Next", "→", () => this.go(this.step + 1));
      button("End", "End", () => this.go(this.last));
      this.slider = element(bar, "input", { type: "range", min: 0, max: this.last, step: 1, value: 0, "aria-label": "Round" });
      this.slider.addEventListener("input", () => this.jump(Number(this.slider.value)));
      const label = element(bar, "label", {}, "Speed ");
      this.speed = element(label, "select");
      for (const [name, value] of [["slow", 3600], ["normal", 1800], ["fast", 700]]) {
        element(this.speed, "option", { value }, name);
      }
      this.speed.value = "1800";
      this.caption = element(home, "p", { class: "gr-caption", "aria-live": "polite" });
      if (film.note) element(home, "p", { class: "gr-first" }, film.note);
      this.stage = element(home, "div", { class: "gr-stage", tabindex: 0, role: "group", "aria-label": "Picture: arrow keys step, space plays, escape leaves" });
      this.pictures = this.films.map((of) => new Picture(this.stage, of));
      const legend = element(home, "p", { class: "gr-legend" });
      for (const [look, words] of [["gr-is-sent", "sent in this round"], ["gr-is-changed", "changed by this round"],
        ...(this.films.some((of) => of.difference) ? [["gr-is-different", "the first difference"]] : [])]) {
        const entry = element(legend, "span");
        element(entry, "span", { class: `gr-swatch ${look}`, "aria-hidden": "true" });
        entry.append(words);
      }
      const details = element(home, "details", { class: "gr-details" });
      element(details, "summary", {}, "The messages of this round");
      this.list = element(details, "ul");
      home.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      // a key that is meant for the player is not one of the page's shortcuts:
      // in JupyterLab, Enter would edit the cell and an arrow leave it
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      event.stopPropagation();
      if (event.key === "Escape") return this.leave(event);
      const tag = event.target.tagName, onControl = tag === "INPUT" || tag === "SELECT";
      const to = { ArrowRight: this.step + 1, ArrowLeft: this.step - 1, Home: 0, End: this.last }[event.key];
      if (event.key === " " && !onControl && tag !== "BUTTON" && tag !== "SUMMARY") this.play();
      else if (to !== undefined && !onControl) this.go(to);
      else return;
      event.preventDefault();
    }

    // Give the keyboard back to what the player stands in: in JupyterLab, its cell.
    leave(event) {
      const around = event.currentTarget.parentElement?.closest("[tabindex]");
      if (!around) return;
      around.focus();
      event.preventDefault();
    }

    play() {
      if (this.timer !== null) return this.stop();
      this.toggle.textContent = "Pause";
      this.toggle.title = "Pause (Space)";
      // the start is no round: what plays begins with the next round at once
      const next = () => {
        if (!this.stage.isConnected || (this.timer !== null && this.step === this.last)) return this.stop();
        const time = Number(this.speed.value);
        this.travel(this.step === this.last ? 1 : this.step + 1, time * TRAVEL);
        this.timer = setTimeout(next, time);
      };
      if (this.last) next();
      else this.stop();
    }

    stop() {
      clearTimeout(this.timer);
      this.timer = null;
      this.toggle.textContent = "Play";
      this.toggle.title = "Play (Space)";
    }

    // One round on is seen to happen; any other way is a jump.
    go(step) {
      const to = Math.max(0, Math.min(step, this.last));
      this.stop();
      if (to === this.step + 1) this.travel(to, 700);
      else this.show(to);
    }

    jump(step) {
      this.stop();
      this.show(step);
    }

    travel(step, time) {
      if (still.matches) return this.show(step);
      this.show(step, true);
      const began = performance.now(), motion = {};
      this.motion = motion;
      const frame = (now) => {
        if (this.motion !== motion || !this.stage.isConnected) return;
        const share = Math.max(0, now - began) / time;
        if (share >= 1) return this.show(step);
        // slow at both ends
        this.pictures.forEach((picture) => picture.move(share * share * (3 - 2 * share)));
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    }

    show(step, travels = false) {
      const { last } = this;
      this.motion = null;
      this.step = step;
      this.slider.value = step;
      const rounds = last === 1 ? "1 round" : `${last} rounds`;
      const end = this.films.length === 1 && this.films[0].halt ? ", where it hangs" : ", the end";
      const name = step ? `Round ${step} of ${last}${step === last ? end : ""}`
        : last ? `Start, before ${rounds}` : "No messages";
      this.slider.setAttribute("aria-valuetext", name);
      const shown = this.films.map((film) => step > 0 && step < film.frames.length ? film.frames[step - 1] : null);
      if (!travels || this.named !== step) {
        this.named = step;
        this.caption.replaceChildren();
        element(this.caption, "strong", {}, `${name}${shown[0]?.phase ? ` · ${shown[0].phase} phase` : ""}`);
        shown.forEach((frame, i) => {
          const whose = this.films.length > 1 ? `${this.films[i].name}: ` : "";
          const { halt, frames } = this.films[i], over = step >= frames.length - 1;
          const says = frame ? frame.says : step && whose && !halt ? "has ended." : "";
          if (says) element(this.caption, "span", {}, `${whose}${says}`);
          if (halt && over) element(this.caption, "span", { class: "gr-hangs" }, `${whose}${halt}`);
        });
        this.list.replaceChildren();
        shown.forEach((frame, i) => (frame ? frame.arrows : []).forEach(([from, to, what, size, site]) => {
          const whose = this.films.length > 1 ? `${this.films[i].name}: ` : "";
          const place = site ? `, ${site}` : "";
          element(this.list, "li", {}, `${whose}rank ${from} → rank ${to}: ${this.films[i].contents[what][0]}, ${size}${place}`);
        }));
        this.films.forEach(({ name, halts, frames }) => {
          if (!halts || step < frames.length - 1) return;
          for (const [rank, [, , says]] of Object.entries(halts)) {
            element(this.list, "li", {}, `${this.films.length > 1 ? `${name}: ` : ""}rank ${rank} ${says}`);
          }
        });
      }
      this.pictures.forEach((picture) => picture.show(step, name, travels));
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
