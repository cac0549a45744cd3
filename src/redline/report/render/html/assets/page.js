"use strict";
// Draws the page's plots from the JSON in #data. All tables and the forest stand without this script.
(() => {
  const { token, duration, rate, seconds, logAxis, logScale, spaced, axes, shade, tell, redrawn, resized } = plotting;
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const group of data.groups) for (const curve of group.curves) curve.service ??= curve.response;
  const hidden = new Set(); // "group/series"
  const choice = { time: "response", over: "p99" };
  const DASHES = [[], [8, 5], [2, 4]];

  const colour = s => token(data.ceilings.includes(s) ? "--ceiling" : `--s${s % 8}`);
  const share = nines => {
    const q = 100 * (1 - 10 ** -nines);
    return `${Number(q.toFixed(Math.max(0, Math.ceil(nines) - 1)))}%`;
  };

  const line = s => ({ label: data.servers[s], stroke: colour(s), width: data.ceilings.includes(s) ? 1.5 : 2,
    dash: DASHES[Math.floor(s / 8) % 3], points: { show: false }, spanGaps: true });

  // One solid line for the points that rest on enough requests, a dashed one for the tail beyond.
  function percentiles(group) {
    const tables = [], series = [{}], owner = [null];
    for (const curve of group.curves) {
      const { x, y, certain } = curve[choice.time];
      tables.push([x.slice(0, certain), y.slice(0, certain)]);
      series.push(line(curve.s));
      owner.push(curve.s);
      if (certain < x.length) {
        const from = Math.max(0, certain - 1);
        tables.push([x.slice(from), y.slice(from)]);
        series.push({ ...line(curve.s), dash: [2, 4], width: 1.5 });
        owner.push(curve.s);
      }
    }
    // The scale holds both kinds of time, so that switching shows the difference and not a new axis.
    const both = group.curves.flatMap(curve => [...curve.response.y, ...curve.service.y]);
    const farthest = Math.max(1, ...group.curves.flatMap(curve => curve.response.x));
    const nines = [Math.log10(2), ...Array.from({ length: Math.floor(farthest) }, (_, i) => i + 1)];
    return { table: uPlot.join(tables), series, owner, format: duration, instant: share,
      scales: { x: { time: false, range: () => [0, farthest * 1.02] }, y: logScale(both) },
      axes: axes({ splits: () => nines, values: (plot, ticks) => spaced(plot, ticks, share, 46) },
        { ...logAxis, values: (_, ticks) => ticks.map(duration) }) };
  }

  // A middle line for each server, with a band from its lowest to its highest trial.
  function course(group, field, format, log) {
    const table = [group.t], series = [{}], owner = [null], bands = [];
    for (const each of group.courses) {
      const [middle, low, high] = each[field], at = table.length;
      table.push(middle, low, high);
      const edge = { ...line(each.s), stroke: "transparent", width: 0, dash: [] };
      series.push(line(each.s), edge, { ...edge });
      owner.push(each.s, each.s, each.s);
      bands.push({ series: [at + 2, at + 1], fill: colour(each.s) + "2b" });
    }
    const values = table.slice(1).flat().filter(value => value !== null);
    const y = log ? logScale(values) : { range: () => [0, 1.06 * Math.max(1, ...values)] };
    return { table, series, bands, owner, format, instant: seconds, shade: group.warm,
      scales: { x: { time: false, range: (_, low, high) => [0, high] }, y },
      axes: axes({ values: (_, marks) => marks.map(seconds) },
        { ...(log ? logAxis : {}), values: (_, marks) => marks.map(format) }), sync: true };
  }

  const KINDS = {
    percentiles,
    rate: group => course(group, "rate", rate, false),
    latency: group => course(group, choice.over, duration, true),
  };
  const TITLES = {
    percentiles: () => choice.time === "response" ? "Response time by percentile" : "Service time by percentile",
    latency: () => `${choice.over} of response time over time`,
  };

  // What the lines say under the pointer.
  function read(plot, spec, where) {
    const index = plot.cursor.idx;
    if (index == null) return where.replaceChildren();
    const seen = new Set(), entries = [["", spec.instant(plot.data[0][index])]];
    spec.owner.forEach((s, i) => {
      const value = i > 0 ? plot.data[i][index] : null;
      if (value == null || seen.has(s) || !plot.series[i].show) return;
      seen.add(s);
      entries.push([`${data.servers[s]} `, spec.format(value)]);
    });
    tell(where, entries);
  }

  const plots = [];
  function draw(entry) {
    entry.plot?.destroy();
    const { element, kind, groupIndex } = entry;
    const spec = KINDS[kind](data.groups[groupIndex]);
    spec.series.forEach((each, i) => { if (i > 0) each.show = !hidden.has(`${groupIndex}/${spec.owner[i]}`); });
    const title = TITLES[kind]?.();
    if (title) element.parentElement.querySelector("figcaption").textContent = title;
    const readout = element.parentElement.querySelector(".readout");
    const options = { width: element.clientWidth, height: element.clientHeight, legend: { show: false },
      scales: spec.scales, axes: spec.axes, series: spec.series, bands: spec.bands ?? [], padding: [10, 20, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: spec.sync ? { key: `g${groupIndex}` } : {} },
      hooks: { setCursor: [plot => read(plot, spec, readout)],
        drawClear: spec.shade ? [plot => shade(plot, -Infinity, spec.shade, token("--shade"), "warm-up")] : [] } };
    entry.owner = spec.owner;
    entry.plot = new uPlot(options, spec.table, element);
  }
  // What is folded away is drawn when it is opened.
  const shown = entry => !entry.element.closest("details:not([open])");
  const drawAll = () => plots.forEach(entry => {
    if (shown(entry)) draw(entry);
    else { entry.plot?.destroy(); entry.plot = undefined; }
  });

  const sizes = resized(plots);
  for (const element of document.querySelectorAll(".plot")) {
    const groupIndex = Number(element.dataset.place), kind = element.dataset.plot;
    const group = data.groups[groupIndex];
    if (kind === "percentiles" ? !group.curves.length : !group.courses.length) {
      element.closest("figure").hidden = true;
      continue;
    }
    plots.push({ element, kind, groupIndex });
    if (shown(plots.at(-1))) draw(plots.at(-1));
    sizes.observe(element);
  }

  document.getElementById("plots").addEventListener("toggle", () => {
    for (const entry of plots) if (!entry.plot && shown(entry)) draw(entry);
  }, true);

  for (const button of document.querySelectorAll(".legend button"))
    button.addEventListener("click", () => {
      const groupIndex = Number(button.parentElement.dataset.place), s = Number(button.dataset.series);
      const show = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(show));
      hidden[show ? "delete" : "add"](`${groupIndex}/${s}`);
      for (const entry of plots.filter(each => each.groupIndex === groupIndex && each.plot))
        entry.owner.forEach((owner, i) => { if (i > 0 && owner === s) entry.plot.setSeries(i, { show }); });
    });
  for (const field of document.querySelectorAll(".choice"))
    field.addEventListener("change", event => {
      choice[field.dataset.choice] = event.target.value;
      drawAll();
    });

  redrawn(drawAll);
})();
