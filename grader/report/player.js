// Steps through the rounds of one run, or of two side by side.  Everything it shows is in the
// element's data-replay attribute, so it needs no kernel and no network.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  // pixels: a cell's height, an arrowhead, a lane for messages that pass over ranks where there are
  // few and where there are many, a heading, the words where a run hangs, and a lane of the wires below
  const CELL = 28, HEAD = 9, LANE = 18, LOW_LANE = 14, FEW_LANES = 3, HEADING = 16, HALT = 36, WIRE = 12;
  // share of a round for which its messages travel
  const TRAVEL = 0.55;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  // the buttons' marks
  const MARKS = {
    First: "M3 3h2v10H3zM13 3v10L6 8z", Back: "M10 3l1.5 1.3L7.2 8l4.3 3.7L10 13 4.5 8z", Play: "M4 2.5v11L13.5 8z",
    Pause: "M4 3h3v10H4zM9 3h3v10H9z", Next: "M6 3 4.5 4.3 8.8 8l-4.3 3.7L6 13l5.5-5z", Last: "M11 3h2v10h-2zM3 3v10l7-5z",
  };
  const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

  const element = (parent, name, attributes = {}, text = "") => {
    const made = parent.namespaceURI === SVG || name === "svg"
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    parent.appendChild(made);
    return made;
  };
  // a run in short
  const whole = ({ frames }) => `${count(frames.reduce((sum, of) => sum + of.arrows.length, 0), "message")} in ${count(frames.length - 1, "round")}`;
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
      this.last = film.frames.length - 1;
      const place = element(home, "div", { class: "gr-film", style: `--ranks: ${film.ranks}` });
      if (film.name) {
        const head = element(place, "p", { class: "gr-name" });
        element(head, "strong", {}, film.name);
        this.says = element(head, "span");
      }
      this.place = element(place, "div", { class: "gr-scroll" });
      this.svg = element(this.place, "svg", { role: "img" });
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

    layout(begun) {
      const { film } = this, width = this.place.clientWidth || 760;
      // around a ring, messages pass outside of the first and the last rank
      this.margin = film.ring && film.ranks > 2 ? 22 : 10;
      const pitch = Math.max(film.ranks > 8 ? 48 : 60, Math.min(220, (width - 2 * this.margin + 14) / film.ranks));
      this.gap = Math.round(18 + Math.max(0, pitch - 60) * 0.57);
      // in a narrow gap there is still room for a wire that leaves beside one that arrives
      this.head = Math.min(HEAD, 0.4 * this.gap);
      this.cell = Math.round(pitch - this.gap);
      // before the first round, no room is kept for messages that pass over ranks
      const most = begun ? Math.max(0, ...this.lanes.map((of) => 1 + Math.max(-1, ...of.values()))) : 0;
      this.lane = most > FEW_LANES ? LOW_LANE : LANE;
      this.sky = most * this.lane + (most ? 8 : 0) + (film.halts ? 5 : 0);
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
        if (this.last || !film.halts) y += CELL + 8;
      }
      // where a run hangs, words stand below the ranks, and wires lead to those that are waited for
      this.floor = y;
      if (film.halts) y += HALT + 8 + WIRE * Math.max(0, ...film.wires.map(([, , , lane]) => lane === null ? 0 : lane + 2));
      this.width = 2 * this.margin + film.ranks * this.cell + (film.ranks - 1) * this.gap;
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${y}`);
      this.svg.setAttribute("width", this.width);
      this.svg.setAttribute("height", y);
    }

    x(rank) { return this.margin + rank * (this.cell + this.gap); }

    // Draw a step: 0 is the start.  While messages travel, the cells are still as before.
    show(step, name, travels) {
      const { film, svg } = this, at = Math.min(step, film.frames.length - 1);
      const rests = step > this.last, round = step > 0 && this.last ? film.frames[Math.min(step, this.last) - 1] : null;
      const cells = film.frames[travels && round && !rests ? step - 1 : at].cells;
      const arrows = round ? round.arrows : [];
      const told = (rests ? [] : arrows).map(([from, to, what]) => `${from} → ${to}: ${film.contents[what][0]}`);
      svg.replaceChildren();
      const over = rests || (step === this.last && !travels), halts = film.halts && over;
      if (this.says) {
        const done = `${film.halt ? "∞ hangs" : "✓ done"} after ${count(this.last, "round")}`;
        this.says.textContent = over ? done : round?.says ?? whole(film);
        this.says.className = over && film.halt ? "gr-hangs" : "";
      }
      svg.setAttribute("aria-label", [film.name, name, rests ? "" : round?.says.replace(/\.$/, ""), told.join(", "),
        halts ? film.halt : ""].filter(Boolean).join(". "));
      const sent = new Set((rests ? [] : arrows).filter((a) => a[5] !== null).flatMap((a) => spread(a).map((i) => `${a[0]}/${a[5] + i}`)));
      const changed = travels || !round || rests ? [] : round.changed;
      svg.classList.toggle("gr-rests", rests);
      if (halts) this.halts(film.halts);
      cells.forEach((column, rank) => this.column(column, rank, sent, new Set(changed[rank])));
      if (film.difference?.step === step && !travels) this.differs(film.difference.cells);
      this.odd = new Set(film.difference?.step === step ? film.difference.arrows.map((ends) => `${ends}`) : []);
      if (halts) this.wires(film.wires);
      const lanes = this.lanes[Math.min(step, this.last) - 1];
      const drawn = arrows.map((arrow) => this.arrow(arrow, arrows, lanes.get(arrow), travels && !rests));
      this.chunks = drawn.filter(Boolean);
    }

    column(column, rank, sent, changed) {
      const { svg, film, cell } = this, x = this.x(rank), middle = x + cell / 2;
      const small = cell + this.gap < 64 ? "gr-rank gr-small" : "gr-rank";
      // where a name would not fit between two wires, its number does
      const named = rank === 0 || cell >= 40, tight = cell < 40 && named ? "font-size: 10px" : "";
      element(svg, "text", { x: middle, y: this.sky + 13, class: small, style: tight }, named ? `rank ${rank}` : `${rank}`);
      if (film.roots[rank]) element(svg, "text", { x: middle, y: this.sky + 28, class: "gr-faint" }, `(${film.roots[rank]})`);
      let row = 0;
      for (const [heading, count] of film.headings) {
        if (column[row] >= 0) element(svg, "text", { x: middle, y: this.rows[row] - 4, class: "gr-faint" }, heading);
        row += count;
      }
      if (!column.length && (this.last || !film.halts)) element(svg, "rect", { x, y: this.rows[0], width: cell, height: CELL, class: "gr-empty" });
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
        write(svg, text, middle, y + CELL / 2, cell - 6, fresh ? "gr-label gr-fresh" : "gr-label", cell > 70 ? 13 : 12);
      });
    }

    box(parent, x, y, width, height, owners, look) {
      const part = width / Math.max(owners.length, 1);
      owners.forEach((owner, i) => element(parent, "rect", {
        x: x + i * part, y, width: part, height, class: `gr-data gr-data${owner % 8}`,
      }));
      element(parent, "rect", { x, y, width, height, class: look });
    }

    // Frame each rank where the run hangs, and say what it does there.
    halts(labels) {
      const { svg, floor } = this, wider = this.wider = Math.min(6, this.gap / 5);
      for (const [rank, [first, second, , standing]] of Object.entries(labels)) {
        const group = element(svg, "g", { class: `gr-halt gr-${standing}` }), width = this.cell + 2 * wider;
        const x = this.x(Number(rank)), middle = x + this.cell / 2;
        element(group, "rect", { x: x - wider, y: this.sky - 3, width, height: floor + HALT + 4 - this.sky, rx: 6 });
        [first, second].forEach((line, i) => write(group, line, middle, floor + 12 + 14 * i, width, "gr-word", 12));
      }
    }

    // Lead from each rank that waits to those that it waits for.
    wires(all) {
      for (const [from, to, standing, lane, leaves, joins] of all) {
        const ahead = to > from ? 1 : -1, low = this.floor + HALT + 1;
        const group = element(this.svg, "g", { class: `gr-wire gr-${standing} gr-to-${to > from ? "right" : "left"}` });
        let way, head;
        if (lane === null) {
          const back = all.some(([a, b]) => a === to && b === from), y = low - HALT / 2 - (back ? 8 * ahead : 0);
          const x1 = this.x(from) + (ahead > 0 ? this.cell : 0) + ahead * this.wider;
          const x2 = this.x(to) + (ahead > 0 ? 0 : this.cell) - ahead * (this.wider + 1);
          way = `M${x1},${y} H${x2 - ahead * HEAD}`;
          head = `M${x2},${y} l${-ahead * HEAD},-5 v10 Z`;
        } else {
          const x1 = this.x(from) + leaves * this.cell, x2 = this.x(to) + this.cell / 2;
          way = `M${x1},${low} V${low + WIRE * (lane + 1)}${joins ? "" : ` H${x2} V${low + HEAD}`}`;
          head = joins ? "" : `M${x2},${low + 1} l-5,${HEAD} h10 Z`;
        }
        element(group, "path", { d: way, class: "gr-line" });
        element(group, "path", { d: head, class: "gr-head" });
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

    // Draw a message; returns what travels, and along which line, or null if it has arrived.
    arrow(arrow, all, lane, travels) {
      const [from, to, what, , , leaves, enters] = arrow, { svg, film, cell, gap, head } = this;
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
      const x2 = this.x(to) + (ahead > 0 ? 0 : cell), base = x2 - ahead * head;
      let way, note;
      if (lane === undefined) {
        const middle = (x1 + base) / 2;
        way = `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${base},${y2}`;
        // where one is steep, words in its middle would hide it; where two cross, they would be mixed up
        const steep = Math.abs(y1 - y2) >= CELL && (back || text.length * 14 <= gap);
        note = steep ? [x1 + ahead * gap / 3, y1 - 10, gap / 2] : [(x1 + x2) / 2, (y1 + y2) / 2 - 10, gap - 6];
      } else {
        const high = this.sky - 10 - lane * this.lane, turn = Math.min(6, gap / 5);
        const up = x1 + ahead * (wraps ? 14 : Math.min(8, gap / 5)), down = base - ahead * (wraps ? 4 : Math.min(6, gap / 8));
        const over = Math.sign(down - up);
        way = `M${x1},${y1} H${up - ahead * 2} Q${up},${y1} ${up},${y1 - 4} V${high + turn} Q${up},${high} ${up + over * turn},${high}`
          + ` H${down - over * turn} Q${down},${high} ${down},${high + turn} V${y2 - 3} Q${down},${y2} ${down + ahead * 2},${y2} H${base}`;
        note = [(up + down) / 2, high - (this.lane === LANE ? 8 : 7), Math.abs(down - up) - 16];
      }
      const group = element(svg, "g", { class: this.odd.has(`${from},${to}`) ? "gr-arrow gr-odd" : "gr-arrow" });
      element(group, "path", { d: way, class: "gr-line" });
      element(group, "path", { d: `M${x2},${y2} l${-ahead * head},-5 v10 Z`, class: "gr-head" });
      if (!travels) {
        const size = Math.min(this.lane === LANE ? 11 : 10, 1.6 * note[2] / Math.max(text.length, 1));
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
      return { chunk, line, length: line.getTotalLength(), half: wide / 2 + 1 };
    }

    // Put what travels where it is after this share of its way.
    move(share) {
      for (const { chunk, line, length, half } of this.chunks) {
        const { x, y } = line.getPointAtLength(share * length);
        // at the edge it keeps all of its label in sight
        chunk.setAttribute("transform", `translate(${Math.max(half, Math.min(this.width - half, x))},${y})`);
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
      this.step = 0;
      this.layout();
      this.show(0);
      new ResizeObserver(() => {
        if (!this.stage.clientWidth || this.stage.clientWidth === this.width) return;
        this.layout();
        this.show(this.step);
      }).observe(this.stage);
      if (this.last && !still.matches) this.playOnce();
    }

    layout() {
      this.width = this.stage.clientWidth;
      this.pictures.forEach((picture) => picture.layout(this.begun));
    }

    build(home) {
      const [film] = this.films;
      home.setAttribute("role", "group");
      home.setAttribute("aria-label", `Replay of ${[...new Set(this.films.map(({ title }) => title))].join(" beside ")} on ${count(film.ranks, "rank")}`);
      home.classList.toggle("gr-alone", this.films.length === 1);
      if (this.last) this.controls(element(home, "div", { class: "gr-bar" }));
      this.caption = element(home, "p", { class: "gr-caption", "aria-live": "polite" });
      if (film.note) element(home, "p", { class: "gr-first" }, film.note);
      this.stage = element(home, "div", { class: "gr-stage", tabindex: 0, role: "group",
        "aria-label": this.last ? "Picture: arrow keys step, space plays, escape leaves" : "Picture" });
      this.pictures = this.films.map((of) => new Picture(this.stage, of));
      this.legend(element(home, "p", { class: "gr-legend" }));
      if (!this.last && !film.halts) return;
      const details = element(home, "details", { class: "gr-details" });
      element(details, "summary", {}, this.last ? "The messages of this round" : "What each rank waits for");
      this.list = element(details, "ul");
      home.addEventListener("keydown", (event) => this.key(event));
    }

    controls(bar) {
      const button = (label, key, action) => {
        const made = element(bar, "button", { type: "button" });
        this.mark(made, label, key);
        made.addEventListener("click", action);
        return made;
      };
      button("First", "Home", () => this.go(0));
      button("Back", "←", () => this.go(this.step - 1));
      this.toggle = button("Play", "Space", () => this.play());
      button("Next", "→", () => this.go(this.step + 1));
      button("Last", "End", () => this.go(this.last));
      this.slider = element(bar, "input", { type: "range", min: 0, max: this.last, step: 1, value: 0, "aria-label": "Round" });
      this.slider.addEventListener("input", () => this.jump(Number(this.slider.value)));
      this.speed = element(bar, "select", { "aria-label": "Speed", title: "Speed" });
      for (const [name, value] of [["slow", 3600], ["normal", 1800], ["fast", 700]]) {
        element(this.speed, "option", { value }, name);
      }
      this.speed.value = this.last > 8 ? "700" : "1800";
    }

    mark(button, label, key) {
      button.replaceChildren();
      button.title = `${label} (${key})`;
      button.setAttribute("aria-label", label);
      element(element(button, "svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }), "path", { d: MARKS[label] });
    }

    // Explain the marks that this run has.
    legend(home) {
      const rounds = this.films.flatMap(({ frames }) => frames), wires = this.films.flatMap((of) => of.wires ?? []);
      for (const [look, words, shown] of [
        ["sent", "sent in this round", rounds.some(({ arrows }) => arrows.some((arrow) => arrow[5] !== null))],
        ["changed", "changed by this round", rounds.some(({ changed }) => changed.flat().length)],
        ["different", "the first difference", this.films.some(({ difference: of }) => of && of.cells.length + of.arrows.length)],
        ["cycle", "the cycle: each waits for the next", wires.some((of) => of[2] === "cycle")],
        ["waits", "waits for", wires.some((of) => of[2] === "waits")],
      ]) {
        if (!shown) continue;
        const entry = element(home, "span");
        element(entry, "span", { class: `gr-swatch gr-is-${look}`, "aria-hidden": "true" });
        entry.append(words);
      }
    }

    // Play by itself when it is first seen, unless a reader has begun to step it.
    playOnce() {
      const eye = new IntersectionObserver((seen) => {
        const begins = seen.some(({ isIntersecting }) => isIntersecting);
        if (begins || this.begun) eye.disconnect();
        if (begins && !this.begun && !this.touched) this.play();
      }, { threshold: 0.4 });
      eye.observe(this.stage);
    }

    key(event) {
      // a key that is meant for the player is not one of the page's shortcuts:
      // in JupyterLab, Enter would edit the cell and an arrow leave it
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      event.stopPropagation();
      this.touched = true;
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
      this.mark(this.toggle, "Pause", "Space");
      // the start is no round: what plays begins with the next round at once
      const next = () => {
        if (!this.stage.isConnected || (this.timer !== null && this.step === this.last)) return this.stop();
        const time = Number(this.speed.value);
        this.travel(this.step === this.last ? 1 : this.step + 1, time * TRAVEL);
        this.timer = setTimeout(next, time);
      };
      next();
    }

    stop() {
      clearTimeout(this.timer);
      this.timer = null;
      this.mark(this.toggle, "Play", "Space");
    }

    // One round on is seen to happen; any other way is a jump.
    go(step) {
      const to = Math.max(0, Math.min(step, this.last));
      this.touched = true;
      this.stop();
      if (to === this.step + 1) this.travel(to, 700);
      else this.show(to);
    }

    jump(step) {
      this.touched = true;
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
      if (step && !this.begun) {
        this.begun = true;
        this.layout();
      }
      const alone = this.films.length === 1 ? this.films[0] : null;
      const end = alone?.halt ? ", where it hangs" : ", the end";
      const name = step ? `Round ${step} of ${last}${step === last ? end : ""}`
        : last ? `Before round 1 of ${last}` : alone?.halt ? "Before the first message" : "No messages";
      const shown = this.films.map((film) => step > 0 && step < film.frames.length ? film.frames[step - 1] : null);
      if (last) {
        this.slider.value = step;
        this.slider.setAttribute("aria-valuetext", name);
      }
      if (!travels || this.named !== step) {
        this.named = step;
        this.caption.replaceChildren();
        element(this.caption, "strong", {}, `${name}${shown[0]?.phase ? ` · ${shown[0].phase} phase` : ""}`);
        const say = (text, look = "") => text && element(this.caption, "span", look ? { class: look } : {}, text);
        if (alone && last) say(step ? shown[0].says : `${alone.title} on ${count(alone.ranks, "rank")}: ${whole(alone)}`);
        if (step === last) {
          this.films.forEach(({ halt, same }) => { say(halt, "gr-hangs"); say(same); });
        }
        this.messages(shown, step);
      }
      this.pictures.forEach((picture) => picture.show(step, name, travels));
    }

    messages(shown, step) {
      if (!this.list) return;
      this.list.replaceChildren();
      this.films.forEach(({ name, contents, halts, frames }, i) => {
        const whose = name ? `${name}: ` : "";
        for (const [from, to, what, size, site] of shown[i]?.arrows ?? []) {
          element(this.list, "li", {}, `${whose}rank ${from} → rank ${to}: ${contents[what][0]}, ${size}${site ? `, ${site}` : ""}`);
        }
        if (!halts || step < frames.length - 1) return;
        for (const [rank, [, , says]] of Object.entries(halts)) {
          element(this.list, "li", {}, `${whose}rank ${rank} ${says}`);
        }
      });
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
