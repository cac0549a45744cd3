"use strict";
// Draws the curves of a limit, and of its overload test, from the JSON in #data. All tables stand without this script.
(() => {
  const { data, token, duration, rate, count, seconds, logAxis, logScale, spaced, axes, shade, drawn } = plotting;
  const NAMES = ["p50", "p90", "p99", "p99.9"];
  const COLOURS = ["--s2", "--s0", "--s1", "--s3"];
  const BANDS = "44";

  const dots = colour => ({ show: true, size: 6, fill: colour, stroke: colour });
  // Rates that the server did not keep up with: their percentiles are of no stationary state, so no line leads there.
  function crosses(plot, series, colour) {
    const { ctx } = plot, arm = 4 * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.75 * devicePixelRatio;
    ctx.beginPath();
    plot.data[series].forEach((value, i) => {
      if (value == null) return;
      const x = plot.valToPos(plot.data[0][i], "x", true), y = plot.valToPos(value, "y", true);
      ctx.moveTo(x - arm, y - arm); ctx.lineTo(x + arm, y + arm);
      ctx.moveTo(x - arm, y + arm); ctx.lineTo(x + arm, y - arm);
    });
    ctx.stroke();
    ctx.restore();
  }

  function dashed(plot, points, colour, text) {
    const { ctx, bbox } = plot, [[x0, y0], [x1, y1]] = points;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.25 * devicePixelRatio;
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke();
    ctx.fillStyle = token("--muted");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    const room = ctx.measureText(text).width + 5 * devicePixelRatio, upright = x0 === x1;
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    const left = upright ? (x0 + room > bbox.left + bbox.width ? x0 - room : x0 + 5 * devicePixelRatio) : bbox.left + 5 * devicePixelRatio;
    ctx.fillText(text, left, (upright ? bbox.top + bbox.height : y0) - 2 * devicePixelRatio);
    ctx.restore();
  }

  function curve(cell) {
    const against = cell.by_users ? count : rate;
    const { kept, lost } = cell, tables = [], series = [{}], names = [null], lostAt = [];
    NAMES.forEach((name, i) => {
      const colour = token(COLOURS[i]);
      if (kept.x.length) {
        tables.push([kept.x, kept.y[i]]);
        series.push({ stroke: colour, width: 2, spanGaps: true, points: dots(colour) });
        names.push(name);
      }
      if (lost.x.length) {
        tables.push([lost.x, lost.y[i]]);
        lostAt.push([series.length, colour]);
        series.push({ stroke: colour, paths: () => null, points: { show: false } });
        names.push(name);
      }
    });
    const bands = cell.bands.flatMap(({ low, high }) => [low, high]);
    const farthest = 1.06 * Math.max(...kept.x, ...lost.x, ...bands);
    const times = [...kept.y.flat(), ...lost.y.flat(), ...cell.limits].filter(value => value !== null);
    return { table: uPlot.join(tables), series, names, format: duration, instant: against,
      scales: { x: { time: false, range: () => [0, farthest] }, y: logScale(times) },
      axes: axes({ values: (plot, ticks) => spaced(plot, ticks, against, 56) },
        { ...logAxis, values: (_, ticks) => ticks.map(duration) }),
      below: plot => {
        for (const { s, low, high } of cell.bands) shade(plot, low, high, token(`--s${s}`) + BANDS, "");
      },
      above: plot => {
        for (const [place, colour] of lostAt) crosses(plot, place, colour);
        const { bbox } = plot, right = bbox.left + bbox.width;
        for (const limit of cell.limits) {
          const y = plot.valToPos(limit, "y", true);
          dashed(plot, [[bbox.left, y], [right, y]], token("--muted"), `limit ${duration(limit)}`);
        }
        if (cell.knee === null) return;
        const x = plot.valToPos(cell.knee, "x", true);
        dashed(plot, [[x, bbox.top], [x, bbox.top + bbox.height]], token("--ink"), `knee ${rate(cell.knee)}`);
      } };
  }

  // Over time; the overload is shaded.
  function course(cell, lines, format, log) {
    const { t, over } = cell.course;
    const values = lines.flatMap(line => line.values).filter(value => value !== null);
    if (log && !values.some(value => value > 0)) values.push(1e6);
    return { table: [t, ...lines.map(line => line.values)], names: [null, ...lines.map(line => line.name)],
      series: [{}, ...lines.map(({ colour, dash }) =>
        ({ stroke: token(colour), width: 2, dash: dash ?? [], spanGaps: false, points: { show: false } }))],
      format, instant: seconds, sync: true,
      scales: { x: { time: false, range: (_, __, high) => [0, high] },
        y: log ? logScale(values) : { range: () => [0, 1.06 * Math.max(1, ...values)] } },
      axes: axes({ values: (_, marks) => marks.map(seconds) },
        { ...(log ? logAxis : {}), values: (_, marks) => marks.map(format) }),
      below: plot => shade(plot, over[0], over[1], token("--shade"), "overload") };
  }

  const KINDS = {
    curve,
    rate: cell => course(cell, [
      { name: "offered", values: cell.course.asked, colour: "--ceiling", dash: [6, 4] },
      { name: "answered", values: cell.course.answered, colour: "--s0" },
      { name: "errors", values: cell.course.errors, colour: "--slower" }], rate, false),
    latency: cell => course(cell, [
      { name: "p50", values: cell.course.p50, colour: COLOURS[0] },
      { name: "p99", values: cell.course.p99, colour: COLOURS[2] }], duration, true),
  };

  const { plots } = drawn((kind, place) => KINDS[kind](data.cells[place]));
  // The pointer over the search's course is at its rate on the curve.
  document.addEventListener("rate", ({ detail: { place, rate: perSecond } }) => {
    const plot = plots.find(entry => entry.kind === "curve" && entry.place === place)?.plot;
    plot?.setCursor(perSecond === null ? { left: -10, top: -10 } : { left: plot.valToPos(perSecond, "x"), top: 1 });
  });
})();
