"use strict";
// Draws the page's plots from the JSON in #data. All tables and the forest stand without this script.
(() => {
  const { data, BAND, dash, token, duration, rate, seconds, logAxis, logScale, axes, shade, drawn } = plotting;
  const hidden = new Set(); // "group/series"
  const choice = { time: "response", scale: "log", over: "p99" };

  const colour = s => token(data.ceilings.includes(s) ? "--ceiling" : `--s${s % 8}`);
  const line = s => ({ label: data.servers[s], stroke: colour(s), width: data.ceilings.includes(s) ? 1.5 : 2,
    dash: dash(s), points: { show: false }, spanGaps: true });

  // The curves of a group. Its scale holds all times that are kin.
  function distribution(group) {
    const lines = group.curves.map(curve => ({ owner: curve.s, times: percentiles.timesOf(curve, choice.time), look: line(curve.s) }));
    const kin = percentiles.kinOf(choice.time);
    const both = group.curves.flatMap(curve => kin.flatMap(time => percentiles.timesOf(curve, time)?.y ?? []));
    return percentiles.plot(lines.filter(({ times }) => times), both, choice);
  }

  // A middle line for each server, with a band from its lowest to its highest trial.
  function course(group, field, format, log) {
    const table = [group.t], series = [{}], owner = [null], bands = [];
    for (const course of group.courses) {
      const [middle, low, high] = course[field], at = table.length;
      table.push(middle, low, high);
      const edge = { ...line(course.s), stroke: "transparent", width: 0, dash: [] };
      series.push(line(course.s), edge, { ...edge });
      owner.push(course.s, course.s, course.s);
      bands.push({ series: [at + 2, at + 1], fill: colour(course.s) + BAND });
    }
    const values = table.slice(1).flat().filter(value => value !== null);
    if (log) values.push(...(group.pauses ?? []).flatMap(({ ns }) => ns.length ? [Math.max(...ns)] : []));
    const y = log ? logScale(values) : { range: () => [0, 1.06 * Math.max(1, ...values)] };
    return { table, series, bands, owner, format, instant: seconds, shade: group.warm,
      scales: { x: { time: false, range: (_, low, high) => [0, high] }, y },
      axes: axes({ values: (_, marks) => marks.map(seconds) },
        { ...(log ? logAxis : {}), values: (_, marks) => marks.map(format) }), sync: true };
  }

  // The longest pauses of servers that are shown, each at its length on the axis of response times.
  function pauses(plot, group, place) {
    const { ctx, bbox } = plot, radius = 3 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.25 * devicePixelRatio;
    for (const { s, t, ns } of group.pauses ?? []) {
      if (hidden.has(`${place}/${s}`)) continue;
      ctx.strokeStyle = colour(s);
      t.forEach((at, i) => {
        ctx.beginPath();
        const y = Math.max(ns[i], plot.scales.y.min);
        ctx.arc(plot.valToPos(at, "x", true), plot.valToPos(y, "y", true), radius, 0, 2 * Math.PI);
        ctx.stroke();
      });
    }
    ctx.restore();
  }

  const KINDS = {
    percentiles: distribution,
    rate: group => course(group, "rate", rate, false),
    latency: group => {
      const over = group.courses.some(course => course[choice.over][0].some(Boolean)) ? choice.over : "p50"; // too few requests
      return { ...course(group, over, duration, true), title: `${over} of response time over time` };
    },
  };

  function specOf(kind, place) {
    const group = data.groups[place], spec = KINDS[kind](group);
    if (kind === "latency") spec.above = plot => pauses(plot, group, place);
    spec.series.forEach((series, i) => { if (i > 0) series.show = !hidden.has(`${place}/${spec.owner[i]}`); });
    return { ...spec, names: spec.owner.map(s => data.servers[s]),
      below: plot => { if (spec.shade) shade(plot, -Infinity, spec.shade, token("--shade"), "warm-up"); } };
  }

  const { plots, drawAll } = drawn(specOf,
    (kind, place) => data.groups[place][kind === "percentiles" ? "curves" : "courses"].length > 0);

  for (const button of document.querySelectorAll(".legend button"))
    button.addEventListener("click", () => {
      const place = Number(button.parentElement.dataset.place), s = Number(button.dataset.series);
      const show = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(show));
      hidden[show ? "delete" : "add"](`${place}/${s}`);
      for (const { plot, spec } of plots.filter(each => each.place === place && each.plot))
        spec.owner.forEach((owner, i) => { if (i > 0 && owner === s) plot.setSeries(i, { show }); });
    });
  for (const field of document.querySelectorAll(".choice"))
    field.addEventListener("change", event => {
      choice[field.dataset.choice] = event.target.value;
      drawAll();
    });
})();
