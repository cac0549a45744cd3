"use strict";
// Asks whether what the page shows has changed, and shows that, as often as the server says; not while nobody sees it.
(() => {
  const { watch, stamp } = document.body.dataset, FIRST_MS = 2000;
  let shown = stamp, asking = false, timer = 0;

  const replaceRows = async () => {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    shown = fresh.body.dataset.stamp;
    const rows = document.querySelector(".listed tbody"), others = fresh.querySelector(".listed tbody");
    if (!rows || !others) return location.reload();
    for (const part of [".brand", ".facts"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
    const ticked = new Set([...rows.querySelectorAll("input:checked")].map(box => box.value));
    for (const box of others.querySelectorAll("input")) box.checked = ticked.has(box.value);
    const focused = document.activeElement?.closest("tr")?.id, field = document.activeElement?.tagName;
    rows.replaceWith(others);
    if (focused && field) document.getElementById(focused)?.querySelector(field)?.focus();
    others.dispatchEvent(new Event("listed", { bubbles: true }));
  };

  const ask = async () => {
    if (asking || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch(watch, { cache: "no-store" });
      const { stamp: now, again_ms } = await answer.json();
      if (now !== shown) {
        if (document.querySelector(".listed")) await replaceRows();
        else return location.reload();
      }
      if (again_ms) timer = setTimeout(ask, again_ms);
    } catch {
      const said = document.createElement("p");
      said.className = "notice over";
      said.setAttribute("role", "status");
      said.textContent = "redline view has ended: this page shows what it knew last.";
      document.querySelector(".top").append(said);
      document.removeEventListener("visibilitychange", seen);
    } finally {
      asking = false;
    }
  };
  const seen = () => { clearTimeout(timer); if (!document.hidden) ask(); };
  document.addEventListener("visibilitychange", seen);
  timer = setTimeout(ask, FIRST_MS);
})();
