"use strict";
// What the scripts of all pages have in common: the page's data, elements, texts of numbers, colours, scales, and what
// stands below the pointer.
const plotting = (() => {
  // What occurs more than once is written once: the text `#3` stands for the fourth of them. See packing.py.
  // Parts are read when they are used.
  function unpacked({ shared, data }) {
    const known = [];
    const lent = place => known[place] ??= whole(shared[place]);
    const whole = value => {
      if (typeof value === "string" && value[0] === "#") return value[1] === "#" ? value.slice(1) : lent(value.slice(1));
      if (value === null || typeof value !== "object") return value;
      if (Array.isArray(value)) { for (let at = 0; at < value.length; at++) value[at] = whole(value[at]); return value; }
      if ("e" in value) return value.v.map(number => number === null ? null : Number(`${number}e${value.e}`));
      for (const key in value) value[key] = whole(value[key]);
      return value;
    };
    const parts = {};
    for (const [name, part] of Object.entries(data))
      Object.defineProperty(parts, name, { enumerable: true, get: () => parts[`${name} read`] ??= whole(part) });
    return parts;
  }
  const [data, tables] = ["data", "tables"].map(id => unpacked(JSON.parse(document.getElementById(id).textContent)));
  const NS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const RATE = [[1e9, "G/s"], [1e6, "M/s"], [1e3, "k/s"], [1, "/s"]];

  const BAND = "2b"; // the opacity of a band

  // Texts become text nodes, so that no name can be markup.
  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }
  // Keeps a view in the address, in place of the one that stands there.
  function keep(hash) {
    try { history.replaceState(null, "", hash); } catch { /* a frame without an address of its own */ }
  }
  // Scrolls to what the address names, unless the page was loaded again: the browser then keeps the reader's place.
  let isReloaded = performance.getEntriesByType("navigation")[0]?.type === "reload";
  addEventListener("hashchange", () => { isReloaded = false; });
  const reveal = element => { if (!isReloaded) element.scrollIntoView(); };

  // Subjects have eight colours, and then the same ones with other dashes.
  const dashOf = place => Math.floor(place / 8) % 3;
  const dash = place => [[], [8, 5], [2, 4]][dashOf(place)];
  const swatch = place => make("i", { className: `swatch s${place % 8}${dashOf(place) ? ` d${dashOf(place)}` : ""}` });

  const token = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const scaled = (value, units) => {
    if (value === 0) return "0";
    const [scale, unit] = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? units.at(-1);
    return `${Number((value / scale).toPrecision(3))} ${unit}`;
  };
  const duration = ns => scaled(ns, NS);
  const rate = perSecond => scaled(perSecond, RATE);
  const count = value => value.toLocaleString("en-US");
  // Two digits of what is missing from 0 or from 1, at least one decimal: only all of it reads 100%.
  const percent = share => {
    const rest = Math.min(Math.abs(share), Math.abs(1 - share));
    const places = rest > 0 ? Math.min(12, Math.max(1, 1 - Math.floor(Math.log10(100 * rest)))) : 0;
    return `${Number((100 * share).toFixed(places))}%`;
  };
  const seconds = s => `${Number(s.toFixed(2))} s`;

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

  function logScale(values) {
    const all = values.filter(value => value > 0);
    const low = Math.min(...all), high = Math.max(...all), room = Math.max((high / low) ** 0.06, 1.04);
    return { distr: 3, log: 10, range: () => [low / room, high * room] };
  }

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

  function axes(x, y) {
    const shared = { stroke: token("--muted"), font: "12px system-ui, sans-serif", ticks: { show: false },
      grid: { stroke: token("--grid"), width: 1 } };
    return [{ ...shared, size: 30, gap: 6, ...x }, { ...shared, size: 64, gap: 6, ...y }];
  }

  // A stretch of the x axis, with its name where that fits.
  function shade(plot, from, until, fill, name) {
    const low = Math.max(from, plot.scales.x.min), high = Math.min(until, plot.scales.x.max);
    const start = plot.valToPos(low, "x", true), end = plot.valToPos(high, "x", true);
    if (!(end > start)) return;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = fill;
    ctx.fillRect(start, bbox.top, end - start, bbox.height);
    ctx.fillStyle = token("--muted");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    if (name && ctx.measureText(name).width < end - start)
      ctx.fillText(name, start + 5 * devicePixelRatio, bbox.top + 5 * devicePixelRatio);
    ctx.restore();
  }

  // What the lines say under the pointer.
  function read(plot, spec, where) {
    const index = plot.cursor.idx;
    if (index == null) return where.replaceChildren();
    const entries = new Map([["", spec.instant(plot.data[0][index])]]);
    spec.names.forEach((name, i) => {
      const value = i > 0 && plot.series[i].show ? plot.data[i][index] : null;
      if (value == null || entries.has(name)) return;
      const ends = spec.ends?.[i]?.map(end => plot.data[end][index]) ?? [];
      const interval = ends.length && ends.every(end => end != null) ? ` [${ends.map(spec.format).join(", ")}]` : "";
      entries.set(name, spec.format(value) + interval);
    });
    where.replaceChildren(...[...entries].map(([name, value]) => make("span", {}, name && `${name} `, make("b", {}, value))));
  }

  // Drawn again when the colours change. Paper is white.
  function redrawn(drawAll) {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    addEventListener("beforeprint", () => {
      document.documentElement.classList.add("paper");
      drawAll();
    });
    addEventListener("afterprint", () => {
      document.documentElement.classList.remove("paper");
      drawAll();
    });
  }

  // Plots keep the size of what they stand in; what is folded away has none.
  function resized(plots) {
    return new ResizeObserver(changes => {
      for (const { target } of changes) {
        const { plot } = plots.find(entry => entry.element === target);
        if (plot && target.clientWidth > 0 && (plot.width !== target.clientWidth || plot.height !== target.clientHeight))
          plot.setSize({ width: target.clientWidth, height: target.clientHeight });
      }
    });
  }

  // Draws every such plot of the page as `specOf` says by its kind and place, but for those that are empty. What is
  // folded away is drawn when it is opened.
  function drawn(specOf, isDrawable = () => true, which = ".plot") {
    const plots = [];
    function draw(entry) {
      entry.plot?.destroy();
      const { element, kind, place } = entry, spec = specOf(kind, place), figure = element.parentElement;
      if (spec.title) figure.querySelector("figcaption").textContent = spec.title;
      const readout = figure.querySelector(".readout");
      entry.spec = spec;
      entry.plot = new uPlot({ width: element.clientWidth, height: element.clientHeight, legend: { show: false },
        scales: spec.scales, axes: spec.axes, series: spec.series, bands: spec.bands ?? [], padding: [10, 20, 0, 0],
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: spec.sync ? { key: `${place}` } : {} },
        hooks: { setCursor: [plot => read(plot, spec, readout)], drawClear: [plot => spec.below?.(plot)],
          draw: [plot => spec.above?.(plot)] } }, spec.table, element);
    }
    const visible = entry => !entry.element.closest("details:not([open])");
    const drawAll = () => plots.forEach(entry => {
      if (visible(entry)) draw(entry);
      else { entry.plot?.destroy(); entry.plot = undefined; }
    });
    const sizes = resized(plots);
    for (const element of document.querySelectorAll(which)) {
      const entry = { element, kind: element.dataset.plot, place: Number(element.dataset.place) };
      element.closest("figure").hidden = !isDrawable(entry.kind, entry.place);
      if (element.closest("figure").hidden) continue;
      plots.push(entry);
      if (visible(entry)) draw(entry);
      sizes.observe(element);
    }
    document.addEventListener("toggle", () => {
      for (const entry of plots) if (!entry.plot && visible(entry)) draw(entry);
    }, true);
    redrawn(drawAll);
    return { plots, drawAll };
  }

  return { data, tables, make, keep, reveal, BAND, dash, swatch, token, duration, rate, count, percent, seconds, logAxis, logScale, spaced,
    axes, shade, redrawn, drawn };
})();
