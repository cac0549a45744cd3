"use strict";
// Plots of percentiles on an axis of nines: curves with the bands of their intervals, and dashed tails.
const percentiles = (() => {
  const { BAND, duration, logAxis, logScale, spaced, axes } = plotting;
  const TITLES = { response: "Response time", service: "Service time", "to server": "Time to the server",
    "from server": "Time from the server", "first message": "Time to the first message",
    "between messages": "Time between messages" };
  // Times that share an axis, so that switching between them shows their difference and not a new axis.
  const KIN = [["response", "service"], ["to server", "from server"]];
  const kinOf = time => KIN.find(kin => kin.includes(time)) ?? [time];

  // The times of a curve by name; nothing where a cell has none. Service times may be the response times.
  const timesOf = (curve, time) => KIN[0].includes(time) ? curve[time] ?? curve.response : curve.more?.[time];

  const share = nines => {
    const q = 100 * (1 - 10 ** -nines);
    return `${Number(q.toFixed(Math.max(0, Math.ceil(nines) - 1)))}%`;
  };

  // `lines` have an owner, times and a look; `held` are the values that the axis holds, so that it may stay as it is.
  function plot(lines, held, { time, scale }) {
    const linear = scale === "linear";
    const tables = [], series = [{}], owner = [null], bands = [], ends = {};
    const add = (whose, look, x, y) => {
      tables.push([x, y]);
      series.push(look);
      owner.push(whose);
      return series.length - 1;
    };
    for (const { owner: whose, times, look } of lines) {
      const { x, y, certain, low, high } = times;
      const at = add(whose, look, x.slice(0, certain), y.slice(0, certain));
      if (low && high) {
        const known = x.map((_, i) => i).filter(i => i < certain && low[i] != null && high[i] != null);
        const edge = { ...look, stroke: "transparent", width: 0, dash: [], fill: undefined };
        ends[at] = [low, high].map(side => add(whose, { ...edge }, known.map(i => x[i]), known.map(i => side[i])));
        bands.push({ series: [ends[at][1], ends[at][0]], fill: look.stroke + BAND });
      }
      if (certain < x.length) {
        const from = Math.max(0, certain - 1);
        add(whose, { ...look, dash: [2, 4], width: 1.5 }, x.slice(from), y.slice(from));
      }
    }
    if (!tables.length) add(null, {}, [0], [null]);
    const values = held.length ? held : [1, 10];
    const median = Math.log10(2);
    const farthest = Math.max(1, ...lines.flatMap(({ times }) => times.x));
    const nines = [median, ...Array.from({ length: Math.floor(farthest) }, (_, i) => i + 1)];
    return { title: `${TITLES[time]} by percentile`, table: uPlot.join(tables), series, owner, bands, ends,
      format: duration, instant: share,
      scales: { x: { time: false, range: () => [median, Math.max(farthest * 1.02, 1)] },
        y: linear ? { range: () => [0, 1.06 * Math.max(...values)] } : logScale(values) },
      axes: axes({ splits: () => nines, values: (plot, ticks) => spaced(plot, ticks, share, 46) },
        { ...(linear ? {} : logAxis), values: (_, ticks) => ticks.map(duration) }) };
  }

  return { kinOf, timesOf, plot };
})();
