"use strict";
// Draws the page's plots from the JSON in #data. All tables and the forest stand without this script.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const group of data.groups) for (const curve of group.curves) curve.service ??= curve.response;
  const hidden = new Set(); // "group/series"
  const choice = { time: "response", over: "p99" };
  const DASHES = [[], [8, 5], [2, 4]];
  const NS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const RATE = [[1e9, "G/s"], [1e6, "M/s"], [1e3, "k/s"], [1, "/s"]];

  const token = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = s => token(data.ceilings.includes(s) ? "--ceiling" : `--s${s % 8}`);
  const scaled = (value, units) => {
    if (value === 0) return "0";
    const [scale, unit] = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? units.at(-1);
    return `${Number((value / scale).toPrecision(3))} ${unit}`;
  };
  const duration = ns => scaled(ns, NS);
  const rate = perSecond => scaled(perSecond, RATE);
  const share = nines => {
    const q = 100 * (1 - 10 ** -nines);
    return `${Number(q.toFixed(Math.max(0, Math.ceil(nines) - 1)))}%`;
  };

  // Round values on a log axis: decades when there are many, their parts when there are few, even steps within one part.
  function logTicks(low, high) {
    for (const parts of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
      const ticks = [];
      for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade++)
        for (const part of parts) {
          const tick = Number(`${part}e${decade}`);
          if (tick >= low && tick <= high) ticks.push(tick);
        }
      if (ticks.length >= 4) return ticks;
    }
    const rough = (high - low) / 4, decade = 10 ** Math.floor(Math.log10(rough));
    const step = decade * [1, 2, 5, 10].find(part => part * decade >= rough);
    const first = Math.ceil(low / step), last = Math.floor(high / step);
    return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  }
  const logAxis = { splits: (_, __, low, high) => logTicks(low, high), filter: (_, ticks) => ticks };

  // Labels that would run into the one before them are left out.
  function spaced(plot, ticks, text, room) {
    let last = -Infinity;
    return ticks.map(tick => {
      const at = plot.valToPos(tick, "x");
      if (at - last < room) return "";
      last = at;
      return text(tick);
    });
  }

  function logScale(values) {
    const all = values.filter(value => value > 0);
    const low = Math.min(...all), high = Math.max(...all), room = Math.max((high / low) ** 0.06, 1.04);
    return { distr: 3, log: 10, range: () => [low / room, high * room] };
  }

  function axes(x, y) {
    const shared = { stroke: token("--muted"), font: "12px system-ui, sans-serif", ticks: { show: false },
      grid: { stroke: token("--grid"), width: 1 } };
    return [{ ...shared, size: 30, gap: 6, ...x }, { ...shared, size: 64, gap: 6, ...y }];
  }

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
    return { table, series, bands, owner, format, instant: s => `${Number(s.toFixed(2))} s`, shade: group.warm,
      scales: { x: { time: false, range: (_, low, high) => [0, high] }, y },
      axes: axes({ values: (_, marks) => marks.map(s => `${Number(s.toFixed(2))} s`) },
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

  function shadeWarmup(plot, until) {
    const start = plot.valToPos(plot.scales.x.min, "x", true), end = plot.valToPos(until, "x", true);
    if (!(end > start)) return;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = token("--shade");
    ctx.fillRect(start, bbox.top, end - start, bbox.height);
    ctx.fillStyle = token("--muted");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    if (ctx.measureText("warm-up").width < end - start)
      ctx.fillText("warm-up", start + 5 * devicePixelRatio, bbox.top + 5 * devicePixelRatio);
    ctx.restore();
  }

  // What the lines say under the pointer; text nodes alone, so that no name can be markup.
  function read(plot, spec, where) {
    where.replaceChildren();
    const index = plot.cursor.idx;
    if (index == null) return;
    const entry = (name, value) => {
      const part = document.createElement("span"), strong = document.createElement("b");
      strong.textContent = value;
      part.append(name, strong);
      where.append(part);
    };
    entry("", spec.instant(plot.data[0][index]));
    const told = new Set();
    spec.owner.forEach((s, i) => {
      const value = i > 0 ? plot.data[i][index] : null;
      if (value == null || told.has(s) || !plot.series[i].show) return;
      told.add(s);
      entry(`${data.servers[s]} `, spec.format(value));
    });
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
        drawClear: spec.shade ? [plot => shadeWarmup(plot, spec.shade)] : [] } };
    entry.owner = spec.owner;
    entry.plot = new uPlot(options, spec.table, element);
  }
  // What is folded away is drawn when it is opened.
  const shown = entry => !entry.element.closest("details:not([open])");
  const drawAll = () => plots.forEach(entry => {
    if (shown(entry)) draw(entry);
    else { entry.plot?.destroy(); entry.plot = undefined; }
  });

  const sizes = new ResizeObserver(changes => {
    for (const { target } of changes) {
      const { plot } = plots.find(entry => entry.element === target);
      if (plot && target.clientWidth > 0 && (plot.width !== target.clientWidth || plot.height !== target.clientHeight))
        plot.setSize({ width: target.clientWidth, height: target.clientHeight });
    }
  });
  for (const element of document.querySelectorAll(".plot")) {
    const groupIndex = Number(element.dataset.group), kind = element.dataset.plot;
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
      const groupIndex = Number(button.parentElement.dataset.group), s = Number(button.dataset.series);
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

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // Paper is white, and nobody can open a fold on it.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach(fold => { fold.open = true; });
    document.documentElement.classList.add("paper");
    drawAll();
  });
  addEventListener("afterprint", () => {
    folded.forEach(fold => { fold.open = false; });
    document.documentElement.classList.remove("paper");
    drawAll();
  });
})();
