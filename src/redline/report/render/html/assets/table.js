"use strict";
// Sorts the rows of tables of results by a column, each with what is folded below it: up, down, and as they were;
// makes the tables of folds that are made later; and opens the folds in which a link points at something.
(() => {
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

  // A browser that runs scripts reads what is in a noscript as text: nothing of it is in the document yet. Others hold
  // what only a browser without scripts shows.
  document.addEventListener("toggle", ({ target: fold }) => {
    const waiting = fold.open && fold.querySelector(":scope > noscript.later");
    if (!waiting) return;
    waiting.outerHTML = waiting.textContent;
    fold.querySelectorAll("table.scores").forEach(sortable);
  }, true);

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
