"use strict";
// Draws what happened over time: panels above each other on one axis, an item of the JSON in #data at a time. uPlot gives
// the axes, the pointer and the zoom; values are drawn here, because a step has no value between two, and a gap is a gap.
(() => {
  const { make, token, duration, rate, count: counted, seconds, logAxis, shade, spaced, axes, redrawn, data } = plotting;
  const number = value => String(Number(value.toPrecision(3)));
  const bytes = value => {
    const [size, unit] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]].find(([least]) => value >= least) ?? [1, "B"];
    return `${number(value / size)} ${unit}`;
  };
  // Sizes are counted in powers of two, so that is where their axis is marked.
  function byteTicks(_, __, low, high) {
    const step = 2 ** Math.ceil(Math.log2(Math.max(high - low, 1) / 4));
    return Array.from({ length: Math.floor(high / step) + 1 }, (_, place) => place * step);
  }
  const FORMATS = { rate, count: counted, ns: duration, cores: number, bytes, ratio: number };

  // The place of the step that holds an instant; -1 outside all steps.
  function stepAt(edges, instant) {
    if (!edges.length || instant < edges[0] || instant > edges.at(-1)) return -1;
    let low = 0, high = edges.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= instant) low = middle; else high = middle;
    }
    return low;
  }

  function valuesOf(panel) {
    const all = panel.lines.flatMap(({ y, high }) => [...y, ...(high ?? [])]).filter(value => value !== null);
    for (const { columns, per } of panel.heat ? [panel.heat] : [])
      for (const [first, ...counts] of columns)
        if (counts.length) all.push(10 ** (first / per), 10 ** ((first + counts.length) / per));
    return [...all, ...(panel.rules ?? []).map(({ y }) => y), ...(panel.zones ?? []).flatMap(({ low, high }) => [low, high])];
  }

  // The names of stretches stand at the top of the first panel, which is `roomy`.
  function scaleOf(panel, roomy) {
    const values = valuesOf(panel), known = panel.log ? values.filter(value => value > 0) : values;
    const low = Math.min(...known), high = Math.max(...known);
    if (!known.length) return { range: () => [0, 1] };
    if (panel.log) {
      const room = panel.heat ? 1 : Math.max((high / low) ** 0.06, 1.1);
      return { distr: 3, log: 10, range: () => [low / room, high * room] };
    }
    if (panel.unit === "ratio") { // an interval of few starts may be very wide: the last one has to fit
      const ends = panel.lines.flatMap(({ kind, y, high }) => kind === "band" ? [y.at(-1), high.at(-1)] : kind === "rings" ? [] : y)
        .filter(value => value !== null);
      const low = Math.min(1, ...ends), high = Math.max(1, ...ends);
      const room = Math.max((high - low) * 0.08, 0.005);
      return { range: () => [low - room, high + room] };
    }
    return { range: () => [0, (roomy ? 1.3 : 1.08) * (high || 1)] };
  }

  function within(plot, draw) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx, x => plot.valToPos(x, "x", true), y => plot.valToPos(y, "y", true));
    ctx.restore();
  }

  function heat(plot, { x, columns, per }) {
    const most = Math.log(1 + Math.max(1, ...columns.flatMap(column => column.slice(1))));
    within(plot, (ctx, across, down) => {
      ctx.fillStyle = token("--s0");
      columns.forEach(([first, ...counts], place) => {
        const left = Math.round(across(x[place])), width = Math.max(Math.round(across(x[place + 1])) - left, 1);
        counts.forEach((count, row) => {
          if (!count) return;
          const [top, bottom] = [row + 1, row].map(edge => Math.round(down(10 ** ((first + edge) / per))));
          ctx.globalAlpha = 0.1 + 0.9 * Math.log(1 + count) / most;
          ctx.fillRect(left, top, width, Math.max(bottom - top, 1));
        });
      });
    });
  }

  const DRAW = {
    steps(ctx, line, across, down) {
      ctx.beginPath();
      let joined = false;
      line.y.forEach((value, place) => {
        if (value === null) { joined = false; return; }
        const y = down(value);
        if (joined) ctx.lineTo(across(line.x[place]), y); else ctx.moveTo(across(line.x[place]), y);
        ctx.lineTo(across(line.x[place + 1]), y);
        joined = true;
      });
      ctx.stroke();
    },
    band(ctx, line, across, down) {
      ctx.globalAlpha = 0.2;
      line.y.forEach((low, place) => {
        const high = line.high[place];
        if (low === null || high === null) return;
        const left = across(line.x[place]), top = down(high);
        ctx.fillRect(left, top, across(line.x[place + 1]) - left, Math.max(down(low) - top, 1));
      });
    },
    dots(ctx, line, across, down) {
      line.y.forEach((value, place) => {
        if (value === null) return;
        ctx.beginPath();
        ctx.arc(across(line.x[place]), down(value), 2 * devicePixelRatio, 0, 2 * Math.PI);
        ctx.fill();
      });
    },
    rings(ctx, line, across, down) {
      line.y.forEach((value, place) => {
        if (value === null) return;
        ctx.beginPath();
        ctx.arc(across(line.x[place]), down(value), 3 * devicePixelRatio, 0, 2 * Math.PI);
        ctx.stroke();
      });
    },
    spans(ctx, line, across, down) {
      ctx.lineWidth = 4 * devicePixelRatio;
      line.y.forEach((value, place) => {
        if (value === null) return;
        const left = across(line.x[place]);
        ctx.beginPath();
        ctx.moveTo(left, down(value));
        ctx.lineTo(Math.max(across(line.until[place]), left + 3 * devicePixelRatio), down(value));
        ctx.stroke();
      });
    },
  };

  function values(plot, panel) {
    within(plot, (ctx, across, down) => {
      for (const line of panel.lines) {
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = token(line.colour);
        ctx.lineWidth = (line.kind === "rings" ? 1.25 : 1.75) * devicePixelRatio;
        ctx.setLineDash(line.dash ? [6 * devicePixelRatio, 4 * devicePixelRatio] : []);
        DRAW[line.kind](ctx, line, across, down);
        ctx.restore();
      }
    });
  }

  function rules(plot, panel) {
    const { ctx, bbox } = plot;
    for (const { y, text } of panel.rules ?? []) within(plot, (_, __, down) => {
      ctx.strokeStyle = ctx.fillStyle = token("--muted");
      ctx.lineWidth = 1.25 * devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, down(y));
      ctx.lineTo(bbox.left + bbox.width, down(y));
      ctx.stroke();
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "right";
      const low = down(y) - bbox.top < 16 * devicePixelRatio; // no room above the line
      ctx.fillText(text, bbox.left + bbox.width - 5 * devicePixelRatio, down(y) + (low ? 13 : -4) * devicePixelRatio);
    });
  }

  function zones(plot, panel) {
    for (const { low, high, colour } of panel.zones ?? []) within(plot, (ctx, _, down) => {
      ctx.globalAlpha = 0.25;
      ctx.fillStyle = token(colour);
      ctx.fillRect(plot.bbox.left, down(high), plot.bbox.width, Math.max(down(low) - down(high), 1));
    });
  }

  // What a line says at an instant: its step, or its nearest point within a few pixels.
  function sayOf(line, instant, reach, format) {
    if (line.kind === "steps" || line.kind === "band") {
      const place = stepAt(line.x, instant), value = place < 0 ? null : line.y[place];
      if (value === null) return null;
      return line.kind === "band" ? `${format(value)} to ${format(line.high[place])}` : format(value);
    }
    let nearest = -1, least = reach;
    line.x.forEach((x, place) => {
      const away = line.until ? Math.max(0, x - instant, instant - line.until[place]) : Math.abs(x - instant);
      if (line.y[place] !== null && away <= least) { nearest = place; least = away; }
    });
    if (nearest < 0) return null;
    return [format(line.y[nearest]), line.says?.[nearest]].filter(Boolean).join(", ");
  }

  function heatSays({ x, columns, per }, instant, height) {
    const place = stepAt(x, instant);
    if (place < 0) return null;
    const [first, ...counts] = columns[place], total = counts.reduce((sum, count) => sum + count, 0);
    const row = height === null ? -1 : Math.floor(Math.log10(height) * per) - first, count = counts[row];
    if (!count) return `${counted(total)} requests`;
    const low = duration(10 ** ((first + row) / per)), high = duration(10 ** ((first + row + 1) / per));
    return `${counted(count)} of ${counted(total)} requests took ${low} to ${high}`;
  }

  // A view: the selects, the summary, and the panels of the item that is chosen.
  function view(root) {
    const every = data.times[root.dataset.view], items = "place" in root.dataset ? [every[root.dataset.place]] : every;
    const part = name => root.querySelector(`[data-time="${name}"]`);
    const subjects = [...new Set(items.map(({ subject }) => subject))], host = root.querySelector(".axes");
    let item = items[0], panels = [], zoom = null;

    function showAt(instant, panel = null, top = null) {
      const shown = instant !== null;
      if ("links" in item)
        document.dispatchEvent(new CustomEvent("rate", { detail: { place: item.links, rate: rateAt(instant) } }));
      instantLine.replaceChildren(...(shown ? ["at ", make("b", { textContent: seconds(instant) }), ...during(instant)] : []));
      for (const drawn of panels) {
        const format = FORMATS[drawn.panel.unit], { plot } = drawn;
        const reach = shown ? 5 * (plot.scales.x.max - plot.scales.x.min) / Math.max(plot.over.clientWidth, 1) : 0;
        for (const [line, where] of drawn.names)
          where.textContent = (shown && sayOf(line, instant, reach, format)) || "";
        if (drawn.heat) {
          const height = shown && drawn === panel && top !== null ? plot.posToVal(top, "y") : null;
          drawn.heat.textContent = (shown && heatSays(drawn.panel.heat, instant, height)) || "";
        }
      }
    }
    // The rate that was asked for at an instant, for the curve that shows response times by rate.
    function rateAt(instant) {
      for (const { kind, x, until, y } of instant === null ? [] : item.panels[0].lines)
        if (kind === "spans")
          for (const [place, start] of x.entries()) if (start <= instant && instant <= until[place]) return y[place];
      return null;
    }
    const during = instant => item.stretches.filter(({ start, end }) => start <= instant && instant <= end)
      .flatMap(({ name }) => [" · ", name]);
    const instantLine = make("p", { className: "instant", ariaHidden: "true" });

    function zoomTo(range) {
      zoom = range;
      part("reset").disabled = range === null;
      for (const { plot } of panels) plot.setScale("x", { min: zoom?.[0] ?? 0, max: zoom?.[1] ?? item.end });
    }

    function draw() {
      for (const { plot } of panels) plot.destroy();
      panels = item.panels.map((panel, place) => {
        const names = panel.lines.map(line => [line, make("b")]);
        const heatText = panel.heat ? make("span") : null;
        const caption = make("figcaption", {}, panel.title, make("span", { className: "names" },
          ...names.map(([line, where]) => {
            const sign = { dots: "●", rings: "○" }[line.kind];
            const swatch = make("i", { className: sign ? "sign" : `swatch${line.kind === "band" ? " box" : ""}`, textContent: sign ?? "" });
            swatch.style.setProperty(sign ? "color" : "--line", `var(${line.colour})`);
            return make("span", {}, swatch, ` ${line.name} `, where);
          }), ...(heatText ? [heatText] : [])));
        const field = make("div", { className: `lane${panel.heat || panel.log || "links" in item ? " tall" : ""}`, ariaLabel: panel.label });
        field.setAttribute("role", "img");
        return { panel, names, heat: heatText, field, figure: make("figure", {}, caption, field), place };
      });
      host.replaceChildren(instantLine, ...panels.map(({ figure }) => figure));
      for (const drawn of panels) drawn.plot = plotted(drawn);
      showAt(null);
    }

    function plotted(drawn) {
      const { panel, field, place } = drawn, format = FORMATS[panel.unit];
      return new uPlot({ width: field.clientWidth, height: field.clientHeight, legend: { show: false },
        padding: [8, 16, 0, 0],
        scales: { x: { time: false, range: (_, low, high) => [zoom?.[0] ?? 0, zoom?.[1] ?? item.end] }, y: scaleOf(panel, !place) },
        axes: axes({ values: (plot, ticks) => spaced(plot, ticks, seconds, 46) },
          { ...(panel.log ? logAxis : panel.unit === "bytes" ? { splits: byteTicks } : {}), values: (_, ticks) => ticks.map(format) }),
        series: [{}, { show: true, paths: () => null, points: { show: false } }],
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false },
          bind: { dblclick: () => () => zoomTo(null) },
          sync: { key: `times-${root.dataset.view}`, scales: ["x", null], setSeries: false } },
        hooks: {
          drawClear: [plot => {
            zones(plot, panel);
            item.stretches.forEach(({ start, end, name, colour }) =>
              shade(plot, start, Math.max(end, start + (plot.scales.x.max - plot.scales.x.min) / 400), token(colour), place ? "" : name));
          }],
          draw: [plot => { if (panel.heat) heat(plot, panel.heat); values(plot, panel); rules(plot, panel); }],
          setCursor: [plot => {
            const { left, top, event } = plot.cursor;
            if (left < 0 || left === null || left === undefined) { if (event || !place) showAt(null); return; }
            if (event || !place) showAt(plot.posToVal(left, "x"), drawn, event ? top : null);
          }],
          setSelect: [plot => {
            const { left, width } = plot.select;
            if (width < 4) return;
            const range = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
            for (const other of panels) other.plot?.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            zoomTo(range);
          }],
        } }, [[0, item.end], [null, null]], field);
    }

    function choose(chosen) {
      item = chosen;
      zoom = null;
      part("reset").disabled = true;
      root.querySelector(".said").textContent = item.says;
      root.querySelector(".notes").replaceChildren(...item.notes.map(text => make("li", { textContent: text })));
      root.querySelector(".notes").hidden = !item.notes.length;
      draw();
    }

    function fillItems() {
      const mine = items.filter(({ subject }) => subject === part("subject").value);
      part("item").replaceChildren(...mine.map(entry => make("option", { textContent: entry.name, value: items.indexOf(entry) })));
      part("item").parentElement.hidden = !mine[0].name || items.length === 1;
      choose(mine[0]);
    }
    part("subject").parentElement.hidden = "place" in root.dataset || items.length === 1;
    part("subject").replaceChildren(...subjects.map(subject => make("option", { textContent: subject, value: subject })));
    root.querySelector(".controls").hidden = false;
    part("subject").addEventListener("change", fillItems);
    part("item").addEventListener("change", event => choose(items[Number(event.target.value)]));
    part("reset").addEventListener("click", () => zoomTo(null));
    host.addEventListener("keydown", event => {
      const first = panels[0]?.plot, step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") zoomTo(null);
      if (!first || !step) return;
      const width = first.over.clientWidth, from = first.cursor.left >= 0 ? first.cursor.left : step > 0 ? 0 : width;
      first.setCursor({ left: Math.min(width - 1, Math.max(0, from + step * width / 60)), top: 1 });
      event.preventDefault();
    });
    fillItems();
    // What is folded away has no size: it is drawn again when it is opened.
    let isStale = false;
    new ResizeObserver(() => {
      if (isStale && host.clientWidth) { isStale = false; draw(); }
      for (const { plot, field } of panels)
        if (plot && field.clientWidth > 0 && plot.width !== field.clientWidth)
          plot.setSize({ width: field.clientWidth, height: field.clientHeight });
    }).observe(host);
    redrawn(() => { if (host.clientWidth) draw(); else isStale = true; });
  }

  // What is far down the page is drawn when it comes near.
  for (const root of document.querySelectorAll(".times"))
    new IntersectionObserver((entries, observer) => {
      if (!entries.some(entry => entry.isIntersecting)) return;
      observer.disconnect();
      view(root);
    }, { rootMargin: "600px" }).observe(root);
})();
