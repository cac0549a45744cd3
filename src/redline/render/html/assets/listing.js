"use strict";
// Filters the rows of a listing, and lets exactly two of them be compared.
(() => {
  const form = document.querySelector(".listing"), field = form.querySelector("#filter");
  const button = form.querySelector("button"), count = form.querySelector(".ticked"), none = form.querySelector(".none");
  const words = () => field.value.toLowerCase().split(/\s+/).filter(Boolean);

  const filter = () => {
    const wanted = words(), rows = [...form.querySelectorAll("tbody tr")];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every(word => text.includes(word)) && !row.querySelector("input:checked");
    }
    none.hidden = rows.some(row => !row.hidden);
  };
  const tick = () => {
    const ticked = form.querySelectorAll("tbody input:checked").length;
    button.disabled = ticked !== 2;
    count.textContent = ticked === 0 || ticked === 2 ? "" : ticked === 1 ? "one more" : `${ticked} are ticked: two are compared`;
  };
  form.querySelector("label").hidden = false;
  field.addEventListener("input", filter);
  field.addEventListener("keydown", event => { if (event.key === "Enter") event.preventDefault(); });
  form.addEventListener("change", tick);
  form.addEventListener("listed", () => { filter(); tick(); });
  addEventListener("pageshow", () => { filter(); tick(); }); // the browser restores fields and ticks
})();
