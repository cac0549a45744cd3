"use strict";
// Draws flame graphs from the profiles in #data: one profile at a time, by itself or against another.
(() => {
  const { make, keep, reveal, token, duration, count, percent, data: { profiles: data } } = plotting;
  const figure = document.querySelector(".flames");
  const control = Object.fromEntries([...figure.querySelectorAll("[data-flame]")].map(element => [element.dataset.flame, element]));
  const field = figure.querySelector(".field"), canvas = figure.querySelector("canvas"), context = canvas.getContext("2d");
  const readout = figure.querySelector(".readout"), legend = figure.querySelector(".legend");
  const ROW = 19, LEAST = 0.6, REST = "the rest of it", SLOW = "slow";
  const NO_THREADS = "", BY_THREAD = "*";
  const HASH = "#flame?";
  const MOST = 0.95; // a frame with so much of the program's samples lies above all that differs
  let root, trunk, zoomed, folded = 0, current, boxes = [], matches = new Set();

  const amount = (value, unit) => unit === "ns" ? duration(value) : `${count(Math.round(value))} ${unit}`;
  const signed = (value, text) => (value < 0 ? "\u2212" : "+") + text(Math.abs(value));
  const option = (value, text) => make("option", { value }, text);
  const chosen = () => data.profiles[Number(control.profile.value)];

  // What the graph is held against: its baseline, its lowest rate or another profile of the same kind, or the rest of the same profile.
  function reference() {
    const value = control.against.value;
    if (value === "") return null;
    return value === SLOW ? { profile: chosen(), name: REST, slow: true } : { profile: data.profiles[Number(value)], name: labelOf(Number(value)) };
  }
  const labelOf = place => {
    const profile = data.profiles[place];
    const alone = data.profiles.every(other => other.group === profile.group);
    return alone ? profile.name : `${profile.name} · ${profile.group}`;
  };

  // A tree of one profile, or of two: nodes have the weights of both. Threads are merged, apart, or all but one left out.
  function grow(threads, sources) {
    const top = { frame: -1, of: -1, weights: [0, 0], mine: 0, below: new Map(), depth: 0 };
    sources.forEach(({ profile, weigh }, slot) => {
      if (!profile) return;
      const path = [];
      let inside = true, owner = -1;
      for (let at = 0; at < profile.nodes.length; at += 4) {
        const [depth, frame, weight, slow] = profile.nodes.slice(at, at + 4), value = weigh(weight, slow);
        if (depth === 0) {
          owner = data.of[frame]; // all that a thread of a library does is the library's
          inside = threads === NO_THREADS || threads === BY_THREAD || data.frames[frame] === threads;
          if (inside && threads !== NO_THREADS && threads !== BY_THREAD) top.weights[slot] += value;
        }
        if (!inside) continue;
        if (depth === 0 && slot === 0 && owner < 0) top.mine += value;
        if (depth === 0 && threads !== BY_THREAD) { path[0] = top; continue; }
        const above = depth === 0 ? top : path[depth - 1];
        let node = above.below.get(frame);
        if (!node) above.below.set(frame, node = { frame, of: owner < 0 ? data.of[frame] : owner, weights: [0, 0],
          mine: 0, below: new Map(), above, depth: above.depth + 1 });
        node.weights[slot] += value;
        if (slot === 0 && owner < 0) node.mine += value;
        path[depth] = node;
      }
      if (threads === NO_THREADS || threads === BY_THREAD) top.weights[slot] = weigh(profile.total, profile.slow);
    });
    return top;
  }

  // What a unit of weight is worth: CPU time per request where both have it, else its share.
  function worth() {
    const profile = chosen(), against = reference();
    const slow = Boolean(against?.slow), total = slow ? profile.slow : profile.total;
    const other = against && (slow ? profile.total - profile.slow : against.profile.total);
    const perRequest = against && !slow && profile.cpu && against.profile.cpu;
    return { own: (perRequest ? profile.cpu : 1) / (total || 1),
      other: against ? (perRequest ? against.profile.cpu : 1) / (other || 1) : 0, total, perRequest, against };
  }

  // The deepest frame with calls of its own that holds nearly all samples of the program's own threads: compilers and
  // collectors are not among these. What stands above it is the way into the program, the same in every sample.
  function trunkOf(top) {
    let node = top;
    for (;;) {
      const next = [...node.below.values()].sort((a, b) => b.mine - a.mine)[0];
      if (!next || !next.below.size || !top.mine || next.mine < MOST * top.mine) return node;
      node = next;
    }
  }

  // While the trunk or what is below it is shown, the rows between the whole and the frame above the trunk are folded.
  function rowsToFold() {
    if (trunk.depth < 4) return 0;
    let node = zoomed;
    while (node && node !== trunk) node = node.above;
    return node ? trunk.depth - 2 : 0;
  }
  const isFolded = node => node !== root && node.depth <= folded;
  const rowOf = node => node === root ? 0 : node.depth - folded;

  const nameOf = node => node.frame < 0 ? "all" : data.frames[node.frame];
  const kids = node => [...node.below.values()].filter(each => each.weights[0] > 0)
    .sort((a, b) => b.weights[0] - a.weights[0] || nameOf(a).localeCompare(nameOf(b)));

  // The frames from the whole graph down to the zoomed one fill the width; below it frames have their shares of those above.
  function place() {
    boxes = [];
    folded = rowsToFold();
    const width = canvas.clientWidth, path = [];
    for (let node = zoomed; node; node = node.above) path.unshift(node);
    path.filter(node => !isFolded(node)).forEach(node => boxes.push({ node, x: 0, width, faded: node !== zoomed }));
    const waiting = [[zoomed, 0, width]];
    while (waiting.length) {
      const [node, start, room] = waiting.pop();
      let x = start;
      for (const below of kids(node)) {
        const share = room * below.weights[0] / node.weights[0];
        if (share >= LEAST) { boxes.push({ node: below, x, width: share }); waiting.push([below, x, share]); }
        x += share;
      }
    }
  }

  function fillOf(node, value) {
    if (value.against) {
      const ours = node.weights[0] * value.own, theirs = node.weights[1] * value.other;
      const change = (ours - theirs) / Math.max(ours, theirs, 1e-12);
      return [token(change > 0 ? "--slower" : "--s0"), Math.abs(change) < 0.02 ? 0 : 0.12 + 0.68 * Math.abs(change)];
    }
    const colour = node.of < 0 ? -1 : data.colours[node.of];
    // Neighbours of one library differ a little, so that their edges are seen.
    return [token(colour < 0 ? "--bar" : `--s${colour}`), 0.34 + 0.05 * ((node.frame + node.depth) % 4)];
  }

  // As much of the name's end as fits: the function says more than its package.
  function fitted(text, room) {
    if (context.measureText(text).width <= room) return text;
    const kernel = text.replace(/_\[k\]$/, ""), parts = kernel.split(/(?<=[.:/])(?=[^.:/])/);
    for (let from = 1; from < parts.length; from++) {
      const tail = parts.slice(from).join("");
      if (context.measureText(tail).width <= room) return tail;
    }
    const last = parts.at(-1), letters = Math.floor(last.length * room / context.measureText(last).width) - 1;
    return letters >= 3 ? `${last.slice(0, letters)}…` : "";
  }

  function draw() {
    if (!field.clientWidth) return;
    place();
    const scale = devicePixelRatio || 1, value = worth(), surface = token("--surface"), ink = token("--ink");
    const rows = 1 + Math.max(...boxes.map(box => rowOf(box.node)));
    canvas.style.height = `${rows * ROW}px`;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(rows * ROW * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const box of boxes) {
      const { node, x, width, faded } = box, y = rowOf(node) * ROW, [colour, strength] = fillOf(node, value);
      const room = Math.max(width - 1, 0.5), dim = matches.size && !matches.has(node);
      context.globalAlpha = 1;
      context.fillStyle = value.against || node.frame < 0 ? token("--equivalent-bg") : surface;
      context.fillRect(x, y, room, ROW - 1);
      context.globalAlpha = strength * (faded ? 0.5 : 1) * (dim ? 0.3 : 1);
      context.fillStyle = colour;
      if (node.frame >= 0) context.fillRect(x, y, room, ROW - 1);
      context.globalAlpha = faded || dim ? 0.6 : 1;
      context.fillStyle = strength > 0.5 && !faded && !dim ? surface : ink;
      const text = node === root && folded ? `all, and ${folded} frames below it` : nameOf(node);
      if (width > 28) context.fillText(fitted(text, width - 9), x + 4, y + ROW / 2);
      context.globalAlpha = 1;
      if (node === current || matches.has(node)) {
        context.strokeStyle = node === current ? token("--focus") : ink;
        context.lineWidth = node === current ? 2 : 1;
        context.strokeRect(x + 1, y + 1, Math.max(room - 2, 1), ROW - 3);
      }
    }
    control.reset.disabled = zoomed === root;
  }

  function say(...parts) {
    readout.replaceChildren(...parts.filter(Boolean).map(part => make(Array.isArray(part) ? "b" : "span", {}, String(part))));
  }

  function tell(node) {
    if (!node && matches.size) return found();
    if (!node) return folded && zoomed === trunk ? begun() : say();
    const profile = chosen(), value = worth(), [ours, theirs] = node.weights;
    const below = [...node.below.values()].reduce((sum, each) => sum + each.weights[0], 0);
    const own = Math.max(0, ours - below);
    const parts = [[nameOf(node)], node.of >= 0 && data.libraries[node.of], `${percent(ours / value.total)} of all`,
      amount(ours, profile.unit), node.frame >= 0 && `${percent(own / value.total)} itself`];
    if (value.against) {
      const change = ours * value.own - theirs * value.other;
      const text = value.perRequest ? duration : percent;
      parts.push(`${text(ours * value.own)}${value.perRequest ? " per request" : ""}, ${text(theirs * value.other)} in ${value.against.name}:`,
        [signed(change, text) + (value.perRequest ? " per request" : "")]);
    }
    say(...parts);
  }

  function begun() {
    const share = percent(trunk.mine / root.mine);
    say("opened at", [nameOf(trunk)], `which has ${share} of the samples of the program's own threads;`,
      `${folded} frames above it are folded: “whole graph” shows them`);
  }

  // A frame within one that matches is counted already.
  function found() {
    let share = 0;
    for (const node of matches) {
      let above = node.above;
      while (above && !matches.has(above)) above = above.above;
      if (!above) share += node.weights[0];
    }
    say([`${matches.size} frames`], `match “${control.search.value}”:`, [percent(share / worth().total)], "of all, with what they call");
  }

  function search() {
    const text = control.search.value.trim().toLowerCase();
    matches = new Set();
    const waiting = [root];
    while (text && waiting.length) {
      const node = waiting.pop();
      if (node.frame >= 0 && node.weights[0] > 0 && nameOf(node).toLowerCase().includes(text)) matches.add(node);
      waiting.push(...node.below.values());
    }
    draw();
    if (text) found(); else tell(current);
  }

  function explain() {
    const value = worth(), entries = value.against
      ? [["--slower", `more than ${value.against.name}`], ["--s0", "less"], ["--equivalent-bg", "the same"]]
      : [...new Set(chosen().nodes.filter((_, at) => at % 4 === 1).map(frame => data.of[frame]))]
        .filter(library => library >= 0 && data.colours[library] >= 0).sort((a, b) => a - b)
        .map(library => [`s${data.colours[library]}`, data.libraries[library]]);
    legend.replaceChildren(...entries.map(([look, text]) => {
      const box = make("i", { className: `swatch box ${look.startsWith("--") ? "" : look}` });
      if (look.startsWith("--")) box.style.background = `var(${look})`;
      return make("span", {}, box, ` ${text}`);
    }));
  }

  // Of the one that it is held against: what stands in frames that are not drawn, because the profile has none of them.
  function missed() {
    const value = worth(), gone = [], waiting = [root];
    while (value.against && waiting.length) {
      const node = waiting.pop();
      if (node.weights[0] > 0) waiting.push(...node.below.values());
      else gone.push(node);
    }
    const amountOf = node => node.weights[1] * value.other, total = gone.reduce((sum, node) => sum + amountOf(node), 0);
    const text = value.perRequest ? ns => `${duration(ns)} per request` : percent;
    const largest = gone.sort((a, b) => amountOf(b) - amountOf(a)).slice(0, 3).map(node => `${nameOf(node)} ${text(amountOf(node))}`);
    control.missed.textContent = total > 0.001 * (root.weights[1] * value.other)
      ? `Not drawn: ${text(total)} of ${value.against.name}, in frames that this graph does not have or leaves out as too small, most in ${largest.join(", ")}.` : "";
  }

  function build() {
    const profile = chosen(), against = reference(), slow = Boolean(against?.slow);
    root = grow(control.threads.value, [{ profile, weigh: (weight, part) => slow ? part : weight },
      { profile: against?.profile, weigh: (weight, part) => slow ? weight - part : weight }]);
    trunk = control.threads.value === BY_THREAD ? root : trunkOf(root); // who asks for threads wants to see them
    zoomed = trunk.depth < 4 ? root : trunk;
    current = null;
    field.setAttribute("aria-label", `${labelOf(Number(control.profile.value))}${against ? ` against ${against.name}` : ""}`);
    explain();
    missed();
    search();
  }

  // What can be chosen follows from the profile.
  function offer() {
    const place = Number(control.profile.value), profile = chosen();
    const others = data.profiles.map((other, at) => [other, at]).filter(([other, at]) => at !== place && other.kind === profile.kind);
    const what = other => other.group === profile.group ? "baseline" : "lowest rate";
    control.against.replaceChildren(option("", "nothing"), ...others.map(([other, at]) =>
      option(at, at === profile.against ? `${what(other)}: ${labelOf(at)}` : labelOf(at))));
    if (profile.slow > 0 && profile.slow < profile.total) control.against.append(option(SLOW, "slow moments, against the rest"));
    const threads = [];
    for (let at = 0; at < profile.nodes.length; at += 4)
      if (profile.nodes[at] === 0 && data.frames[profile.nodes[at + 1]]) threads.push([data.frames[profile.nodes[at + 1]], profile.nodes[at + 2]]);
    control.threads.replaceChildren(option(NO_THREADS, "all together"), option(BY_THREAD, "each by itself"),
      ...threads.map(([name, weight]) => option(name, `${name} ${percent(weight / profile.total)}`)));
    control.threads.parentElement.hidden = threads.length < 2;
    build();
  }

  function zoom(node) {
    zoomed = node;
    current = node;
    draw();
    tell(node);
    remember();
  }

  // What is shown stands in the address and in a link, so that others can open the same: frames by name, from the outermost.
  const keyOf = place => [data.profiles[place].name, data.profiles[place].group, data.profiles[place].kind].join(" · ");
  function address() {
    const kept = new URLSearchParams({ profile: keyOf(Number(control.profile.value)) }), against = control.against.value;
    if (against) kept.set("against", against === SLOW ? SLOW : keyOf(Number(against)));
    if (control.threads.value) kept.set("threads", control.threads.value);
    if (control.search.value) kept.set("search", control.search.value);
    const path = [];
    for (let node = zoomed; node !== root; node = node.above) path.unshift(nameOf(node));
    for (const name of path) kept.append("frame", name);
    return `${HASH}${kept}`;
  }
  function remember() {
    control.link.href = address();
    keep(control.link.href);
  }

  // What this report does not have is passed over; of a path of frames the part that exists is shown.
  function recall() {
    if (!location.hash.startsWith(HASH)) return;
    const kept = new URLSearchParams(location.hash.slice(HASH.length));
    const wanted = key => String(data.profiles.findIndex((_, place) => keyOf(place) === key));
    const choose = (field, value) => { if ([...field.options].some(choice => choice.value === value)) field.value = value; };
    choose(control.profile, wanted(kept.get("profile")));
    control.search.value = kept.get("search") ?? "";
    offer();
    const against = kept.get("against");
    choose(control.against, against && against !== SLOW ? wanted(against) : against ?? "");
    choose(control.threads, kept.get("threads") ?? NO_THREADS);
    build();
    let node = root;
    for (const name of kept.getAll("frame")) {
      const next = kids(node).find(below => nameOf(below) === name);
      if (!next) break;
      node = next;
    }
    zoomed = node;
    search();
    control.link.href = location.hash;
    reveal(figure);
  }

  function at(event) {
    const { left, top } = canvas.getBoundingClientRect(), x = event.clientX - left, row = Math.floor((event.clientY - top) / ROW);
    return boxes.findLast(box => rowOf(box.node) === row && x >= box.x && x < box.x + box.width)?.node ?? null;
  }

  function beside(node, step) {
    const row = boxes.filter(box => box.node.depth === node.depth && !box.faded).sort((a, b) => a.x - b.x);
    return row[row.findIndex(box => box.node === node) + step]?.node;
  }

  canvas.addEventListener("pointermove", event => {
    const node = at(event);
    if (node === current) return;
    current = node;
    draw();
    tell(node);
  });
  canvas.addEventListener("pointerleave", () => { current = null; draw(); tell(null); });
  canvas.addEventListener("click", event => { const node = at(event); if (node) zoom(node); });
  field.addEventListener("focus", () => { if (!current && field.matches(":focus-visible")) { current = zoomed; draw(); tell(current); } });
  field.addEventListener("keydown", event => {
    const node = current ?? zoomed;
    const shown = new Set(boxes.map(box => box.node));
    const next = { ArrowDown: () => kids(node).find(each => shown.has(each)),
      ArrowUp: () => (node.above && isFolded(node.above) ? root : node.above),
      ArrowRight: () => beside(node, 1), ArrowLeft: () => beside(node, -1), Home: () => root }[event.key];
    if (next) {
      current = next() ?? node;
      draw();
      tell(current);
      const y = rowOf(current) * ROW;
      if (y < field.scrollTop || y + ROW > field.scrollTop + field.clientHeight) field.scrollTop = y - field.clientHeight / 2;
    } else if (event.key === "Enter") zoom(node);
    else if (event.key === "Escape") zoom(zoomed.above ?? root);
    else return;
    event.preventDefault();
  });

  data.profiles.forEach((_, place) => control.profile.append(option(place, labelOf(place))));
  const first = data.profiles.findIndex(other => other.against !== null && data.profiles[other.against].group === other.group);
  control.profile.value = String(Math.max(0, first));
  control.profile.addEventListener("change", () => { offer(); remember(); });
  for (const field of [control.against, control.threads]) field.addEventListener("change", () => { build(); remember(); });
  control.search.addEventListener("input", () => { search(); remember(); });
  control.reset.addEventListener("click", () => zoom(root));
  figure.querySelector(".controls").hidden = false;
  offer();
  new ResizeObserver(draw).observe(field);
  control.link.href = address();
  recall();
  addEventListener("hashchange", recall);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", draw);
  addEventListener("afterprint", draw);
})();
