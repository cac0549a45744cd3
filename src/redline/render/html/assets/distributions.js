"use strict";
// Distributions of the cells that the reader chooses, one over the other, and the difference of two servers' shares.
// What is chosen stands in the address, so that a link shows the same.
(() => {
  const { make, keep, reveal, BAND, dash, swatch, token, duration, count, percent, logAxis, spaced, axes, drawn } = plotting;
  const { groups, distributions: data } = plotting.data;
  const fold = document.getElementById("distributions"), block = fold.querySelector(".distributions");
  const said = block.querySelector(".said");
  const control = Object.fromEntries([...block.querySelectorAll("[data-of]")].map(field => [field.dataset.of, field]));
  const bins = block.querySelector(".bins tbody"), heads = block.querySelector(".bins thead tr");
  const differences = block.querySelector(".differences tbody");
  const HASH = "#distributions?";
  const choice = { time: "response", scale: "log" };
  let recalling = false;
  for (const cell of data.cells) cell.curve ??= groups[cell.drawn[0]].curves[cell.drawn[1]];

  const list = block.querySelector(".cells"), MANY = 3;
  const boxes = data.cells.map(({ name }, at) => {
    const box = make("input", { type: "checkbox", checked: data.chosen.includes(at) });
    list.append(make("label", {}, box, swatch(at), name));
    return box;
  });
  if (boxes.length > MANY) for (const [text, checked] of [["all", true], ["none", false]])
    list.append(make("button", { type: "button", textContent: text, onclick: () => {
      boxes.forEach(box => { box.checked = checked; });
      remember();
    } }));
  data.differences.forEach(({ cell, baseline }, at) =>
    control.pair.append(make("option", { value: String(at), textContent: `${data.cells[cell].name} minus ${data.cells[baseline].name}` })));

  const points = value => {
    const text = Math.abs(100 * value).toFixed(1);
    return text === "0.0" ? text : `${value < 0 ? "\u2212" : "+"}${text}`;
  };
  const chosen = () => boxes.map((box, at) => box.checked ? at : -1).filter(at => at >= 0);
  // By its place among all cells: it does not change with what is chosen.
  const look = at => ({ label: data.cells[at].name, stroke: token(`--s${at % 8}`), width: 2, dash: dash(at),
    points: { show: false }, spanGaps: true });
  const timesOf = at => percentiles.timesOf(data.cells[at].curve, choice.time);

  function overlaid() {
    const lines = chosen().map(at => ({ owner: at, times: timesOf(at), look: look(at) })).filter(({ times }) => times);
    const spec = percentiles.plot(lines, lines.flatMap(({ times }) => times.y), choice);
    return { ...spec, names: spec.owner.map(at => data.cells[at]?.name) };
  }

  // The value of a bin is drawn from its beginning to its end, and the last bin to the end of all.
  function histogram() {
    const those = chosen(), counted = control.amount.value === "count";
    const first = Math.min(...those.map(at => data.cells[at].first)), last = Math.max(...those.map(at => data.cells[at].first + data.cells[at].bins.length));
    const edges = those.length ? data.edges.slice(Math.max(0, first - 1), last) : [1, 10];
    const from = Math.max(0, first - 1) + 1; // the bin that ends at the second edge
    const table = [edges], series = [{}];
    for (const at of those) {
      const { bins: own, first: begin, count: total } = data.cells[at];
      const values = edges.map((_, i) => own[from + i - begin] ?? 0).slice(0, -1).map(value => counted ? value : value / total);
      table.push([...values, values.at(-1) ?? 0]);
      series.push({ ...look(at), width: 1.5, fill: token(`--s${at % 8}`) + "22", paths: uPlot.paths.stepped({ align: 1 }) });
    }
    if (!those.length) { table.push([null, null]); series.push({}); }
    const format = counted ? count : percent, most = table.slice(1).flat().reduce((high, value) => Math.max(high, value), 1e-9);
    return { table, series, names: [null, ...those.map(at => data.cells[at].name)], format, title: "Histogram of response times",
      instant: ns => { const at = edges.indexOf(ns); return at + 1 < edges.length ? `${duration(ns)} to ${duration(edges[at + 1])}` : duration(ns); },
      scales: { x: { time: false, distr: 3, range: () => [edges[0], edges.at(-1)] }, y: { range: () => [0, 1.06 * most] } },
      axes: axes({ ...logAxis, values: (plot, ticks) => spaced(plot, ticks, duration, 52) },
        { values: (_, ticks) => ticks.map(format) }) };
  }

  function difference() {
    const pair = data.differences[Number(control.pair?.value ?? 0)], ours = data.cells[pair.cell], theirs = data.cells[pair.baseline];
    const { t, low, high } = pair, values = pair.ours.map((share, i) => share - pair.theirs[i]);
    const colour = token("--s0"), edge = { stroke: "transparent", width: 0, points: { show: false } };
    const series = [{}, { stroke: colour, width: 2, points: { show: false } }], table = [t, values];
    if (low) { table.push(low, high); series.push({ ...edge }, { ...edge }); }
    const reach = 1.1 * Math.max(0.005, ...[...values, ...(low ?? []), ...(high ?? [])].map(Math.abs));
    return { table, series, names: [null, "difference", null, null], ends: low ? { 1: [2, 3] } : undefined,
      bands: low ? [{ series: [3, 2], fill: colour + BAND }] : [], format: points,
      title: `Share of requests answered within a time: ${ours.name} minus ${theirs.name}, in points`,
      instant: ns => { const i = t.indexOf(ns); return `${duration(ns)}: ${percent(pair.ours[i])} against ${percent(pair.theirs[i])}`; },
      scales: { x: { time: false, distr: 3, range: () => [t[0], t.at(-1)] }, y: { range: () => [-reach, reach] } },
      axes: axes({ ...logAxis, values: (plot, ticks) => spaced(plot, ticks, duration, 52) }, { values: (_, ticks) => ticks.map(points) }),
      above: plot => {
        const { ctx, bbox } = plot, y = plot.valToPos(0, "y", true);
        ctx.save();
        ctx.strokeStyle = token("--muted");
        ctx.lineWidth = devicePixelRatio;
        ctx.beginPath();
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.stroke();
        ctx.restore();
      } };
  }

  const KINDS = { overlaid, histogram, difference };
  const { drawAll } = drawn(kind => KINDS[kind](), () => true, ".chart");

  const fill = (body, rows) => body.replaceChildren(...rows.map(texts => make("tr", {},
    ...texts.map((text, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, text)))));

  function tell() {
    const those = chosen(), at = (times, q) => times.y[times.x.findIndex(x => Math.abs(x + Math.log10(1 - q)) < 1e-3)];
    said.textContent = those.length ? those.map(place => {
      const times = timesOf(place), { name, count: total } = data.cells[place];
      if (!times) return `${name}: its answers carry no clock.`;
      const known = [["median", 0.5], ["p99", 0.99]].map(([word, q]) => [word, at(times, q)]).filter(([, ns]) => ns !== undefined);
      return `${name}: ${known.map(([word, ns]) => `${word} ${duration(ns)}`).join(", ")}, of ${count(total)} requests.`;
    }).join(" ") : "Choose a cell to draw.";
    const names = those.map(place => data.cells[place].name);
    heads.replaceChildren(...["response time", ...names].map(name => make("th", { scope: "col" }, name)));
    const shown = data.edges.map((edge, bin) => [bin, those.map(place => data.cells[place].bins[bin - data.cells[place].first] ?? 0)]);
    fill(bins, shown.filter(([, counts]) => counts.some(Boolean)).map(([bin, counts]) => [`up to ${duration(data.edges[bin])}`,
      ...counts.map((value, i) => `${count(value)} (${percent(value / data.cells[those[i]].count)})`)]));
    const pair = data.differences[Number(control.pair?.value ?? 0)];
    if (pair && differences) fill(differences, pair.t.map((ns, i) => [duration(ns), percent(pair.ours[i]), percent(pair.theirs[i]),
      points(pair.ours[i] - pair.theirs[i]), pair.low ? `[${points(pair.low[i])}, ${points(pair.high[i])}]` : `none from ${pair.about}`]));
  }

  function show() {
    drawAll();
    tell();
  }

  function remember() {
    const chosenNow = new URLSearchParams();
    for (const at of chosen()) chosenNow.append("cell", data.cells[at].name);
    for (const [name, value] of [["time", choice.time], ["scale", choice.scale], ["amount", control.amount.value], ["pair", control.pair?.value]])
      if (value !== undefined) chosenNow.set(name, value);
    keep(`${HASH}${chosenNow}`);
    show();
  }

  // What does not exist in this report is passed over.
  function recall() {
    if (!location.hash.startsWith(HASH)) return;
    recalling = true;
    const kept = new URLSearchParams(location.hash.slice(HASH.length)), keys = new Set(kept.getAll("cell"));
    boxes.forEach((box, at) => { box.checked = keys.has(data.cells[at].name); });
    for (const [name, field] of Object.entries(control)) {
      const wanted = kept.get(name);
      if ([...field.options].some(({ value }) => value === wanted)) field.value = wanted;
    }
    for (const name of ["time", "scale"]) {
      const button = [...document.querySelectorAll(`.choice[data-choice=${name}] input`)].find(({ value }) => value === kept.get(name));
      if (button && !button.checked) { button.checked = true; button.dispatchEvent(new Event("change", { bubbles: true })); }
    }
    recalling = false;
    fold.open = true;
    reveal(fold);
    show();
  }

  for (const field of document.querySelectorAll(".choice"))
    field.addEventListener("change", event => {
      if (!(field.dataset.choice in choice)) return;
      choice[field.dataset.choice] = event.target.value;
      if (fold.open && !recalling) remember(); else show();
    });
  for (const field of [...boxes, ...Object.values(control)]) field.addEventListener("change", remember);
  addEventListener("hashchange", recall);
  tell();
  recall();
})();
