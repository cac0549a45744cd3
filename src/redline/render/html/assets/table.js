"use strict";
// Sorts the rows of tables of results by a column, each with what is folded below it: up, down, and as they were;
// makes what stands in folds and tabs when they are opened; and opens the folds in which a link points at something.
(() => {
  const { tables, make, swatch } = plotting;

  function sortable(table) {
    const original = [...table.tBodies];
    const heads = [...table.tHead.rows[0].cells].slice(1);
    const place = (body, at) => Number(body.rows[0].cells[at + 1]?.dataset.place ?? NaN);
    const sort = (at, way) => {
      const known = original.filter(body => body.matches(".entry") && !Number.isNaN(place(body, at)));
      const others = original.filter(body => !known.includes(body));
      known.sort((a, b) => way * (place(a, at) - place(b, at)));
      table.append(...(way ? [...known, ...others] : original));
      table.classList.toggle("sorted", way !== 0);
      heads.forEach((head, i) => {
        if (i === at && way) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
    };
    heads.forEach((head, at) => {
      const title = head.querySelector(".sort"), button = document.createElement("button");
      button.type = "button";
      button.append(...title.childNodes);
      title.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(at, now === "ascending" ? -1 : now === "descending" ? 0 : 1);
      });
    });
  }

  document.querySelectorAll("table.scores").forEach(sortable);

  // A table of texts from the page's data.
  function made({ title, heads, left, rows, unused }) {
    const look = at => left.includes(at) ? "left" : "";
    const cell = (value, at) => {
      if (value === null) return [];
      if (typeof value === "string") return [make(at ? "td" : "th", at ? { className: look(at) } : { scope: "row" }, value)];
      if (!Array.isArray(value)) return [make("td", { className: "void", colSpan: heads.length - at },
        make("p", {}, make("span", { className: "grade invalid" }, "✕ No number"), `: ${value.why}`))];
      if (typeof value[0] === "string")
        return [make("td", { className: look(at) }, ...value.map((text, i) => i % 2 ? make("small", {}, ` ${text}`) : text))];
      const [series, name, rowSpan] = value;
      return [make("th", { scope: "row", rowSpan }, series < 0 ? make("i", { className: "swatch ceiling" }) : swatch(series), ` ${name}`)];
    };
    const padded = row => row.some(value => value?.why) ? row : [...row, ...Array(heads.length - row.length).fill("")];
    const head = make("thead", {}, make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", className: look(at) }, text))));
    const body = make("tbody", {}, ...rows.map((row, at) =>
      make("tr", { className: unused.includes(at) ? "unused" : "" }, ...padded(row).flatMap(cell))));
    const caption = title ? [make("caption", {}, make("b", {}, title))] : [];
    return make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: title || heads.join(", ") },
      make("table", { className: "plain" }, ...caption, head, body));
  }

  // A browser that runs scripts reads what is in a noscript as text: nothing of it is in the document yet. Others hold
  // what only a browser without scripts shows.
  function fill(part) {
    const waiting = part.querySelector(":scope > noscript.later");
    if (waiting) {
      waiting.outerHTML = waiting.textContent;
      part.querySelectorAll("table.scores").forEach(sortable);
    }
    for (const place of part.querySelectorAll(":scope > [data-table]")) place.replaceWith(made(tables[place.dataset.table]));
  }
  document.addEventListener("toggle", ({ target }) => { if (target.open) fill(target); }, true);
  document.querySelectorAll(".tab").forEach(tab => {
    const panel = tab.parentElement.querySelector(`:scope > .panel.${tab.classList[1]}`);
    tab.addEventListener("change", () => fill(panel));
    if (tab.checked) fill(panel); // a browser that goes back restores the choice
  });

  // What follows a question mark is a view of the section, and for its own script. A hash may be anything.
  const named = () => {
    try { return decodeURIComponent(location.hash.slice(1).split("?")[0]); } catch { return ""; }
  };
  const open = () => {
    const target = document.getElementById(named());
    for (let at = target?.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    if (target) plotting.reveal(target);
  };
  addEventListener("hashchange", open);
  if (location.hash) open();
})();
