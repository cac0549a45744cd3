"use strict";
// The explorer: a table of all cells, whose axes a reader puts in rows, columns or colour. Only the rows and columns in
// view are in the document. The hash holds the view.
(() => {
  const { make, swatch, count: counted, data: { explorer: data } } = plotting;
  const root = document.querySelector(".pivot");
  const PLACES = ["rows", "columns", "colour"];
  const LINE = 18, ROOM = 6, EXTRA_ROWS = 6, EXTRA_COLUMNS = 2; // pixels, and what is drawn beyond the edges
  const { axes, cells, metrics, compared, own, verdicts } = data;
  const byPair = new Map(compared.map((pair, at) => [`${pair.cell} ${pair.against}`, at]));
  const bySlug = new Map(cells.map(({ slug }, at) => [slug, at]));
  const views = metrics.flatMap((metric, at) => [{ at, name: metric.name },
    ...(metric.changes ? [{ at, name: `${metric.name} against the baseline`, change: true }] : [])]);

  const described = (element, attributes) => {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const valueOf = (cell, axis) => axes[axis].values[cells[cell].at[axis]];

  // Servers and settings stand in rows, scenarios and loads in columns; a single one of these alone is in columns, too.
  function initial() {
    const across = axes.flatMap(({ name }, at) => ["scenario", "load"].includes(name) ? [at] : []);
    const columns = across.length ? across : [axes.length - 1];
    const rows = axes.flatMap((_, at) => columns.includes(at) ? [] : [at]);
    if (!rows.length) rows.push(columns.shift());
    return { view: views.findIndex(({ at }) => at === data.main), rows, columns, colour: [],
      hidden: axes.map(() => new Set()), picked: [] };
  }
  let state = initial();

  // ---- the hash ----
  const PREFIX = "#explorer?";
  function hash() {
    const usual = initial(), said = new URLSearchParams();
    if (state.view !== usual.view) said.set("show", views[state.view].name);
    for (const place of PLACES)
      if (state[place].join() !== usual[place].join()) said.set(place, state[place].map(at => axes[at].name).join(","));
    state.hidden.forEach((hidden, axis) => {
      const { name, values } = axes[axis], only = hidden.size > values.length / 2;
      values.forEach((value, at) => { if (hidden.size && hidden.has(at) !== only) said.append(`${only ? "only" : "without"}.${name}`, value); });
      if (hidden.size === values.length) said.append(`only.${name}`, "");
    });
    for (const cell of state.picked) said.append("pick", cells[cell].slug);
    return said.size ? `${PREFIX}${said}` : "";
  }
  function keep() {
    const made = hash();
    if (!made && !location.hash.startsWith(PREFIX)) return;
    plotting.keep(made || "#explorer");
  }
  // What the hash names and the report has not, is passed over: a link may come from another run, or be cut off.
  function restore() {
    state = initial();
    if (!location.hash.startsWith(PREFIX)) return;
    const said = new URLSearchParams(location.hash.slice(PREFIX.length));
    const view = views.findIndex(({ name }) => name === said.get("show"));
    if (view >= 0) state.view = view;
    const placed = new Map();
    for (const place of PLACES)
      for (const name of (said.get(place) ?? "").split(",")) {
        const axis = axes.findIndex(each => each.name === name);
        if (axis >= 0) placed.set(axis, place);
      }
    for (const [axis, place] of placed) for (const each of PLACES) state[each] = state[each].filter(at => at !== axis || each === place);
    for (const [axis, place] of placed) {
      if (place === "colour" && state.colour.some(at => at !== axis)) continue;
      state[place] = [...state[place].filter(at => at !== axis), axis];
    }
    axes.forEach((_, axis) => { if (!PLACES.some(place => state[place].includes(axis))) state.rows.push(axis); });
    axes.forEach(({ name, values }, axis) => {
      const only = said.getAll(`only.${name}`).filter(value => !value || values.includes(value)), without = said.getAll(`without.${name}`);
      values.forEach((value, at) => {
        if ((only.length && !only.includes(value)) || without.includes(value)) state.hidden[axis].add(at);
      });
    });
    state.picked = [...new Set(said.getAll("pick").flatMap(slug => bySlug.get(slug) ?? []))].slice(-2);
  }

  // ---- the layout: which cells stand where ----
  let layout = { rows: [], columns: [], entries: new Map(), most: 1, shown: 0 };
  function arrange() {
    const kept = cells.flatMap(({ at }, cell) => at.some((value, axis) => state.hidden[axis].has(value)) ? [] : [cell]);
    const keysOf = placed => {
      const keys = new Map();
      for (const cell of kept) keys.set(placed.map(axis => cells[cell].at[axis]).join(), placed.map(axis => cells[cell].at[axis]));
      const ordered = [...keys].sort(([, a], [, b]) => {
        const differs = a.findIndex((value, i) => value !== b[i]);
        return differs < 0 ? 0 : a[differs] - b[differs];
      });
      return { list: ordered.map(([, key]) => key), index: new Map(ordered.map(([text], at) => [text, at])) };
    };
    const rows = keysOf(state.rows), columns = keysOf(state.columns), entries = new Map();
    for (const cell of kept) {
      const { at } = cells[cell];
      const place = `${rows.index.get(state.rows.map(axis => at[axis]).join())} ${columns.index.get(state.columns.map(axis => at[axis]).join())}`;
      if (!entries.has(place)) entries.set(place, []);
      entries.get(place).push(cell);
    }
    const colour = state.colour[0];
    if (colour !== undefined) for (const there of entries.values()) there.sort((a, b) => cells[a].at[colour] - cells[b].at[colour]);
    layout = { rows: rows.list, columns: columns.list, entries, shown: kept.length,
      most: Math.max(1, ...[...entries.values()].map(there => there.length)) };
  }
  const entriesAt = (row, column) => layout.entries.get(`${row} ${column}`) ?? [];

  // ---- texts ----
  const pairOf = (cell, against) => compared[byPair.get(`${cell} ${against}`)];
  const named = cell => axes.map((_, axis) => valueOf(cell, axis)).join(" · ");
  function texts(cell, view) {
    const { levels, why, role } = cells[cell], pair = compared[own[cell]], metric = view.at;
    const change = pair?.changes[metric], refused = pair?.refused[metric];
    if (view.change) {
      if (change) return { value: change[0], bounds: change[1], verdict: change[2], remark: change[3] };
      return { none: role ?? (refused ? "refused" : why ? "no number" : "not compared"), why: refused ?? why };
    }
    if (why && !change) return { none: "✕ no number", why };
    const level = levels[metric];
    const shown = level ? { value: level[0], bounds: level[1] } : { none: why ? "✕ no number" : "not measured", why };
    return change ? { ...shown, change: change[0], verdict: change[2] } : shown;
  }
  function verdict(key) {
    const [mark, words] = verdicts[key];
    return [make("span", { ariaHidden: "true", textContent: mark }), ` ${words}`];
  }
  // ---- the table ----
  const lines = () => (metrics[views[state.view].at].changes ? 3 : 2) + (state.colour.length ? 1 : 0);
  const table = make("table", { className: "pivot-table" }), scroll = make("div", { className: "pivot-scroll", tabIndex: -1 }, table);
  described(scroll, { role: "region", "aria-label": root.dataset.title });
  const columnsOf = make("colgroup"), head = make("thead"), above = make("tbody"), body = make("tbody"), below = make("tbody");
  table.append(columnsOf, head, above, body, below);
  const drawn = new Map();
  let shown = null, at = { row: 0, column: 0, entry: 0 };

  const sizes = () => {
    const narrow = scroll.clientWidth < 640;
    const label = narrow ? 120 : 232, column = narrow ? 132 : 168;
    const entries = layout.most * (lines() * LINE + ROOM), labels = state.rows.length * LINE + ROOM;
    return { label, column, row: Math.max(entries, labels) + ROOM + 1 };
  };
  function extent({ label, column, row }) {
    const top = head.offsetHeight;
    const across = scroll.clientWidth - label, down = scroll.clientHeight - top;
    const columns = [Math.floor(scroll.scrollLeft / column) - EXTRA_COLUMNS, Math.ceil((scroll.scrollLeft + across) / column) + EXTRA_COLUMNS];
    const rows = [Math.floor(scroll.scrollTop / row) - EXTRA_ROWS, Math.ceil((scroll.scrollTop + down) / row) + EXTRA_ROWS];
    const within = ([from, until], most) => [Math.max(0, Math.min(from, most)), Math.min(Math.max(until, 0), most)];
    return { columns: within(columns, layout.columns.length), rows: within(rows, layout.rows.length) };
  }

  function entryButton(cell, row, column, entry) {
    const said = texts(cell, views[state.view]), button = make("button", { type: "button", tabIndex: -1 });
    Object.assign(button.dataset, { row, column, entry });
    described(button, { "aria-pressed": String(state.picked.includes(cell)) });
    if (said.why) button.title = said.why;
    button.append(make("span", { className: "unseen", textContent: `${named(cell)}: ` }));
    if (state.colour.length)
      button.append(make("span", { className: "of" }, swatch(cells[cell].at[state.colour[0]]), ` ${valueOf(cell, state.colour[0])}`));
    button.append(said.none ? make("span", { className: "none", textContent: said.none }) : make("b", { textContent: said.value }));
    button.append(make("small", { textContent: said.bounds ?? "" }));
    if (said.change || said.verdict)
      button.append(make("span", { className: `change ${said.verdict || "none"}` }, said.change ? `${said.change} ` : "",
        ...(said.verdict ? verdict(said.verdict) : [])));
    return button;
  }
  function drawRow(row, [from, until], height) {
    const names = state.rows.map((axis, i) => axes[axis].values[layout.rows[row][i]]);
    const label = make("div", {}, ...(names.length ? names : ["all"]).map((name, i) => make(i ? "small" : "b", { textContent: name })));
    const line = make("tr", {}, make("th", { scope: "row", title: names.join(" · ") }, label), make("td", { className: "room" }));
    line.style.height = `${height}px`;
    label.style.maxHeight = `${height - 2 * ROOM - 1}px`;
    described(line, { "aria-rowindex": row + 1 + head.rows.length });
    for (let column = from; column < until; column++) {
      const cell = make("td");
      described(cell, { "aria-colindex": column + 2 });
      entriesAt(row, column).forEach((each, entry) => cell.append(entryButton(each, row, column, entry)));
      line.append(cell);
    }
    line.append(make("td", { className: "room" }));
    return line;
  }
  function drawHead([from, until], { label, column }) {
    const width = count => `${count * column}px`;
    const cols = [make("col"), make("col"), ...Array.from({ length: until - from }, () => make("col")), make("col")];
    cols[0].style.width = `${label}px`;
    cols[1].style.width = width(from);
    for (const col of cols.slice(2, -1)) col.style.width = width(1);
    cols.at(-1).style.width = width(layout.columns.length - until);
    columnsOf.replaceChildren(...cols);
    table.style.width = `${label + layout.columns.length * column}px`;
    const placed = state.columns.length ? state.columns : [-1];
    head.replaceChildren(...placed.map((axis, level) => {
      const line = make("tr");
      if (level === 0) {
        const corner = make("td", { rowSpan: placed.length, textContent: state.rows.map(each => axes[each].name).join(" · ") });
        line.append(corner);
      }
      line.append(make("td", { className: "room" }));
      for (let at = from; at < until;) {
        // Neighbours that are alike on this axis, and on all above it, share a heading.
        const same = other => layout.columns[other].slice(0, level + 1).join() === layout.columns[at].slice(0, level + 1).join();
        let end = at + 1;
        while (axis >= 0 && level < placed.length - 1 && end < until && same(end)) end++;
        const text = axis < 0 ? views[state.view].name : axes[axis].values[layout.columns[at][level]];
        const heading = make("th", { scope: end - at > 1 ? "colgroup" : "col", colSpan: end - at, title: axis < 0 ? "" : axes[axis].name });
        line.append(described(heading, { "aria-colindex": at + 2 }));
        heading.append(make("span", { textContent: text }));
        at = end;
      }
      line.append(make("td", { className: "room" }));
      return line;
    }));
  }
  const room = height => {
    const cell = make("td", { colSpan: 3 }), line = make("tr", {}, cell);
    described(line, { "aria-hidden": "true" });
    line.style.height = `${height}px`;
    return height > 0 ? [line] : [];
  };
  // Draws what has come into view, and takes out what has left it. Nothing is measured in between: the table would be
  // laid out while rows are missing, and be scrolled to where it then ends.
  function draw() {
    const size = sizes(), next = extent(size), [first, last] = next.rows;
    if (shown && String(shown.columns) === String(next.columns) && String(shown.rows) === String(next.rows)) return;
    // Chromium also lays out when what has the focus is taken out, so that the region keeps it meanwhile.
    const focused = scroll.contains(document.activeElement);
    if (focused) scroll.focus({ preventScroll: true });
    if (!shown || String(shown.columns) !== String(next.columns)) {
      drawHead(next.columns, size);
      for (const line of drawn.values()) line.remove();
      drawn.clear();
    }
    for (const [row, line] of drawn) if (row < first || row >= last) { line.remove(); drawn.delete(row); }
    let before = body.firstChild;
    for (let row = first; row < last; row++) {
      const old = drawn.get(row);
      if (old) { before = old.nextSibling; continue; }
      const line = drawRow(row, next.columns, size.row);
      body.insertBefore(line, before);
      drawn.set(row, line);
    }
    above.replaceChildren(...room(first * size.row));
    below.replaceChildren(...room((layout.rows.length - last) * size.row));
    shown = next;
    entry(focused);
  }
  function redraw() {
    shown = null;
    described(table, { "aria-rowcount": layout.rows.length + Math.max(1, state.columns.length), "aria-colcount": layout.columns.length + 1,
      "aria-label": `${views[state.view].name}, ${root.dataset.title}` });
    draw();
  }
  // A single button can be reached with the tabulator, the arrows move on from it.
  function entry(focus) {
    const find = ({ row, column, entry }) => body.querySelector(`[data-row="${row}"][data-column="${column}"][data-entry="${entry}"]`);
    for (const button of body.querySelectorAll("[tabindex='0']")) button.tabIndex = -1;
    const button = find(at) ?? body.querySelector("button");
    if (button) button.tabIndex = 0;
    if (focus) find(at)?.focus({ preventScroll: true });
  }
  function go(row, column, entryAt) {
    row = Math.max(0, Math.min(row, layout.rows.length - 1));
    column = Math.max(0, Math.min(column, layout.columns.length - 1));
    at = { row, column, entry: Math.max(0, Math.min(entryAt, entriesAt(row, column).length - 1)) };
    const size = sizes(), top = row * size.row, left = column * size.column;
    const down = scroll.clientHeight - head.offsetHeight - size.row, across = scroll.clientWidth - size.label - size.column;
    scroll.scrollTop = Math.min(top, Math.max(scroll.scrollTop, top - Math.max(0, down)));
    scroll.scrollLeft = Math.min(left, Math.max(scroll.scrollLeft, left - Math.max(0, across)));
    draw();
    entry(true);
  }
  // The next place in this direction that has a cell: not every server has every option.
  function step(down, across) {
    let { row, column } = at;
    do { row += down; column += across; }
    while (row >= 0 && column >= 0 && row < layout.rows.length && column < layout.columns.length && !entriesAt(row, column).length);
    if (entriesAt(row, column).length) go(row, column, down < 0 ? Infinity : 0);
  }
  const KEYS = {
    ArrowDown: () => at.entry + 1 < entriesAt(at.row, at.column).length ? go(at.row, at.column, at.entry + 1) : step(1, 0),
    ArrowUp: () => at.entry > 0 ? go(at.row, at.column, at.entry - 1) : step(-1, 0),
    ArrowRight: () => step(0, 1), ArrowLeft: () => step(0, -1),
    Home: () => go(at.row, 0, at.entry), End: () => go(at.row, Infinity, at.entry),
    PageDown: () => go(at.row + 10, at.column, at.entry), PageUp: () => go(at.row - 10, at.column, at.entry),
  };
  const whereIs = button => ({ row: Number(button.dataset.row), column: Number(button.dataset.column), entry: Number(button.dataset.entry) });
  scroll.addEventListener("keydown", event => {
    const button = event.target.closest("button"), move = KEYS[event.key];
    if (!move || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (button) at = whereIs(button);
    move();
  });
  body.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    at = whereIs(button);
    pick(entriesAt(at.row, at.column)[at.entry]);
    entry(true);
  });
  scroll.addEventListener("scroll", draw, { passive: true });

  // ---- two cells side by side ----
  const status = make("p", { className: "pivot-status" }), sides = make("div", { className: "pivot-sides" });
  status.setAttribute("role", "status");
  function pick(cell) {
    state.picked = state.picked.includes(cell) ? state.picked.filter(other => other !== cell) : [...state.picked, cell].slice(-2);
    for (const button of body.querySelectorAll("button")) {
      const { row, column, entry } = whereIs(button);
      button.setAttribute("aria-pressed", String(state.picked.includes(entriesAt(row, column)[entry])));
    }
    compare();
    keep();
  }
  function compare() {
    sides.replaceChildren();
    const [first, second] = state.picked;
    if (second === undefined) {
      status.textContent = first === undefined ? "Pick two cells to see them side by side." : `Picked: ${named(first)}. Pick a second cell.`;
      return;
    }
    // As the report compared them, if it did.
    const [cell, against] = !pairOf(first, second) && pairOf(second, first) ? [second, first] : [first, second];
    const pair = pairOf(cell, against);
    status.textContent = pair ? `${named(cell)}, against ${named(against)}:`
      : `${named(cell)}, and ${named(against)}: this run did not compare these two. Their levels stand side by side, without a verdict.`;
    const heading = (...of) => make("tr", {}, ...of.map(text => make("th", { scope: "col", textContent: text })));
    const differing = axes.flatMap((_, axis) => valueOf(cell, axis) === valueOf(against, axis) ? [] : [axis]);
    const short = each => differing.map(axis => valueOf(each, axis)).join(" · ");
    const rows = metrics.map((metric, m) => {
      const level = each => {
        const said = cells[each].why ? null : cells[each].levels[m];
        return said ? make("td", {}, make("b", { textContent: said[0] }), " ", make("small", { textContent: said[1] }))
          : make("td", { className: "none", textContent: cells[each].why ? "no number" : "not measured" });
      };
      const change = pair?.changes[m], ratio = make("td", { className: change ? `change ${change[2] || "none"}` : "none" });
      if (change) ratio.append(make("b", { textContent: change[0] }), ` ${change[1]} `, ...(change[2] ? verdict(change[2]) : ["not judged"]),
        ...(change[3] ? [make("small", { textContent: ` ${change[3]}` })] : []));
      else ratio.textContent = pair?.refused[m] ? `not compared: ${pair.refused[m]}` : "not compared";
      return make("tr", {}, make("th", { scope: "row" }, metric.name, make("small", { textContent: ` ${metric.hint}` })),
        level(cell), level(against), ratio);
    });
    const caption = make("caption", { className: "unseen", textContent: "The two cells that are picked" });
    const made = make("table", { className: "plain" }, caption,
      make("thead", {}, heading("metric", short(cell), short(against), pair ? "change" : "comparison")), make("tbody", {}, ...rows));
    const reasons = [cell, against].filter(each => cells[each].why).map(each =>
      make("p", { className: "key", textContent: `${named(each)}: ${cells[each].why}` }));
    const holder = described(make("div", { className: "scroll", tabIndex: 0 }, made),
      { role: "region", "aria-label": "The two cells that are picked" });
    const clear = make("button", { type: "button", textContent: "clear" });
    clear.addEventListener("click", () => {
      for (const picked of [...state.picked]) pick(picked);
      entry(true);
    });
    sides.append(holder, ...reasons, clear);
  }

  // ---- the controls ----
  const controls = make("div", { className: "pivot-controls" }), count = make("p", { className: "key" });
  function changed() {
    arrange();
    at = { row: 0, column: 0, entry: 0 };
    count.textContent = layout.shown ? `${counted(layout.shown)} of ${counted(cells.length)} cells.`
      : "No cell is left: take a filter back.";
    scroll.hidden = !layout.shown;
    redraw();
    keep();
  }
  function place(axis, wanted) {
    for (const each of PLACES) state[each] = state[each].filter(other => other !== axis);
    // Colour has a single axis: the one that it had goes to the rows.
    if (wanted === "colour") state.rows.push(...state.colour.splice(0));
    state[wanted].push(axis);
    build();
    changed();
    controls.querySelector(`[data-axis="${axis}"] select`).focus();
  }
  function filter(axis) {
    const { name, values } = axes[axis], hidden = state.hidden[axis];
    const summary = make("summary"), list = make("div", { className: "list" });
    const fold = make("details", { className: "pivot-filter" }, summary, list);
    const say = () => {
      const left = values.length - hidden.size;
      summary.textContent = left === values.length ? `all ${left}` : `${left} of ${values.length}`;
      summary.setAttribute("aria-label", `${name}: ${summary.textContent} values are shown`);
    };
    const boxes = values.map((value, at) => {
      const box = make("input", { type: "checkbox", checked: !hidden.has(at) });
      box.addEventListener("change", () => { hidden[box.checked ? "delete" : "add"](at); say(); changed(); });
      return { box, at, row: make("label", {}, box, ` ${value}`), text: value.toLowerCase() };
    });
    const every = (text, shows) => {
      const button = make("button", { type: "button", textContent: text });
      button.addEventListener("click", () => {
        for (const { box, at, row } of boxes) if (!row.hidden) { box.checked = shows; hidden[shows ? "delete" : "add"](at); }
        say();
        changed();
      });
      return button;
    };
    const tools = make("div", {}, every("all", true), every("none", false));
    if (values.length > 12) {
      const search = make("input", { type: "search", placeholder: "find", autocomplete: "off", ariaLabel: `find values of ${name}` });
      search.addEventListener("input", () => { for (const { row, text } of boxes) row.hidden = !text.includes(search.value.toLowerCase()); });
      tools.prepend(search);
    }
    list.append(tools, ...boxes.map(({ row }) => row));
    fold.addEventListener("keydown", event => { if (event.key === "Escape") { fold.open = false; summary.focus(); } });
    say();
    return fold;
  }
  function build() {
    const show = make("select");
    views.forEach(({ name }, at) => show.append(make("option", { value: at, textContent: name, selected: at === state.view })));
    show.addEventListener("change", () => { state.view = Number(show.value); changed(); });
    const reset = make("button", { type: "button", textContent: "reset" });
    reset.addEventListener("click", () => { state = initial(); build(); changed(); compare(); controls.querySelector("select").focus(); });
    controls.replaceChildren(make("label", {}, "show ", show), ...axes.map(({ name }, axis) => {
      const where = make("select", { ariaLabel: `where ${name} stands` });
      for (const each of PLACES) where.append(make("option", { value: each, textContent: each, selected: state[each].includes(axis) }));
      where.addEventListener("change", () => place(axis, where.value));
      const held = make("fieldset", {}, make("legend", { textContent: name }), where, filter(axis));
      held.dataset.axis = axis;
      return held;
    }), reset);
  }
  document.addEventListener("click", event => {
    for (const fold of controls.querySelectorAll("details[open]")) if (!fold.contains(event.target)) fold.open = false;
  });

  root.append(controls, count, scroll, status, sides);
  const begin = () => { restore(); build(); changed(); compare(); };
  begin();
  addEventListener("hashchange", () => { if (location.hash.startsWith(PREFIX)) begin(); });
  new ResizeObserver(redraw).observe(scroll);
})();
