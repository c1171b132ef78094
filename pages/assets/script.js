// Comfort only: every page can be read, searched and linked to without it.
"use strict";

// Buttons that copy: one for each block of code, and one for values marked so.
(() => {
  const status = document.createElement("p");
  status.className = "unseen";
  status.setAttribute("role", "status");
  document.body.append(status);

  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    // Without HTTPS there is no clipboard object.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("the browser does not allow it");
  }

  function button(label, text) {
    const b = document.createElement("button");
    b.type = "button";
    b.className = "copy";
    b.textContent = "Copy";
    b.setAttribute("aria-label", label);
    let reset;
    b.addEventListener("click", async () => {
      let said = "Copied";
      try {
        await copy(text());
        b.classList.add("done");
      } catch {
        said = "Not copied";
      }
      b.textContent = status.textContent = said;
      clearTimeout(reset);
      reset = setTimeout(() => {
        b.textContent = "Copy";
        status.textContent = "";
        b.classList.remove("done");
      }, 2000);
    });
    return b;
  }

  for (const pre of document.querySelectorAll(".snippet > pre, .prose pre")) {
    let box = pre.parentElement;
    if (!box.matches(".snippet")) {
      if (pre.closest("table")) continue;
      box = document.createElement("div");
      box.className = "block";
      pre.replaceWith(box);
      box.append(pre);
    }
    box.append(button("Copy this code", () => pre.textContent.replace(/\n$/, "")));
  }
  for (const value of document.querySelectorAll("[data-copy]")) {
    value.after(button("Copy " + value.dataset.copy, () => value.title || value.textContent));
  }
})();

// The key / goes to the search, Escape closes what is open.
document.addEventListener("keydown", (e) => {
  const typing = e.target.closest("input, textarea, select, [contenteditable]");
  if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
    const input = document.querySelector('input[type="search"][name="q"]');
    if (!input) return;
    e.preventDefault();
    input.focus();
    input.select();
  }
  if (e.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      if (menu.contains(document.activeElement)) menu.firstElementChild.focus();
    }
  }
});
document.addEventListener("click", (e) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(e.target)) menu.open = false;
  }
});

// A filter shows those entries of an element whose names contain what is typed, and
// hides groups of which nothing is left. A name is in data-name, or that of the term.
for (const filter of document.querySelectorAll("[data-filter]")) {
  const scope = document.getElementById(filter.dataset.filter);
  const input = filter.querySelector("input");
  const status = filter.querySelector("[role=status]");
  if (!scope || !input) continue;
  const items = [...scope.querySelectorAll("[data-name], .entry")];
  const names = items.map((item) => (item.dataset.name ?? item.querySelector("dt").textContent).toLowerCase());
  const groups = [...scope.querySelectorAll("[data-group]")];
  filter.hidden = false;
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    items.forEach((item, i) => {
      item.hidden = !words.every((w) => names[i].includes(w));
      if (!item.hidden) shown++;
    });
    for (const group of groups) {
      group.hidden = words.length > 0 && !items.some((item) => !item.hidden && group.contains(item));
      if (group.tagName === "DETAILS" && words.length > 0) group.open = true;
    }
    if (status) status.textContent = words.length ? `${shown} of ${items.length}` : "";
  };
  input.addEventListener("input", apply);
  apply();
}
