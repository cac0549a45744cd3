"use strict";
// Asks whether what the page shows has changed, and shows that, as often as the server says; not while nobody sees it.
(() => {
  const { watch, stamp } = document.body.dataset, FIRST_MS = 2000;
  let shown = stamp, asking = false, timer = 0;

  // What a reader has opened stays open on the page that comes next.
  const opened = `open ${location.pathname}`;
  const summaries = () => [...document.querySelectorAll("details > summary")];
  const reload = () => {
    const open = summaries().filter(summary => summary.parentElement.open).map(summary => summary.textContent);
    sessionStorage.setItem(opened, JSON.stringify(open));
    location.reload();
  };
  const before = new Set(JSON.parse(sessionStorage.getItem(opened) ?? "[]"));
  sessionStorage.removeItem(opened);
  for (const summary of summaries()) if (before.has(summary.textContent)) summary.parentElement.open = true;

  const replaceRows = async () => {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    shown = fresh.body.dataset.stamp;
    const rows = document.querySelector(".listed tbody"), others = fresh.querySelector(".listed tbody");
    if (!rows || !others) return reload();
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
      if (!answer.ok) throw new Error("This is no longer there");
      const { stamp: now, again_ms } = await answer.json();
      if (now !== shown) {
        if (document.querySelector(".listed")) await replaceRows();
        else return reload();
      }
      if (again_ms) timer = setTimeout(ask, again_ms);
    } catch (error) {
      const said = document.createElement("p");
      said.className = "notice over";
      said.setAttribute("role", "status");
      const why = error instanceof TypeError ? "redline view has ended" : error.message; // fetch's, without a server
      said.textContent = `${why}: the page shows what it knew last.`;
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
