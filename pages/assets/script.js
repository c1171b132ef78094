// Comfort only: every page can be read, searched and linked to without it.
"use strict";

// The choice of light or dark counts before anything is painted, so this file is not
// deferred. All else waits for the page.
const showScheme = () => {
  try {
    const scheme = localStorage.getItem("scheme");
    if (scheme) document.documentElement.dataset.scheme = scheme;
    else delete document.documentElement.dataset.scheme;
  } catch {} // the browser keeps nothing
};
showScheme();

document.addEventListener("DOMContentLoaded", () => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Light, dark, or what the system prefers.
  for (const choice of all(".scheme")) {
    const select = choice.querySelector("select");
    select.value = document.documentElement.dataset.scheme ?? "";
    choice.hidden = false;
    select.addEventListener("change", () => {
      if (select.value) document.documentElement.dataset.scheme = select.value;
      else delete document.documentElement.dataset.scheme;
      try {
        if (select.value) localStorage.setItem("scheme", select.value);
        else localStorage.removeItem("scheme");
      } catch {}
    });
  }

  // A browser that goes back shows a page as it was left: in the scheme before another was chosen,
  // or with another version in a select than in its text.
  addEventListener("pageshow", () => {
    showScheme();
    for (const select of all(".scheme select")) select.value = document.documentElement.dataset.scheme ?? "";
    for (const form of all("form.picker")) form.reset();
  });

  // What only narrow windows fold is open in wide ones, as the styles show it already.
  for (const [width, folds] of [[61.3125, ".columns:not(.docs) .unfold, .nav .unfold"], [73.8125, ".docs > :not(.nav) .unfold"]]) {
    const wide = matchMedia(`(min-width: ${width}em)`);
    const fit = () => { for (const fold of all(folds)) fold.open = wide.matches; };
    wide.addEventListener("change", fit);
    fit();
  }

  // Buttons that copy: one for each block of code, and one for values marked so.
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

  function button(label, text, shown = "Copy") {
    const b = document.createElement("button");
    b.type = "button";
    b.className = "copy";
    b.textContent = shown;
    if (label) b.setAttribute("aria-label", label);
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
        b.textContent = shown;
        status.textContent = "";
        b.classList.remove("done");
      }, 2000);
    });
    return b;
  }

  for (const pre of all(".snippet > pre, .prose pre")) {
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
  for (const value of all("[data-copy]")) {
    value.after(button("Copy " + value.dataset.copy, () => value.title || value.textContent));
  }
  for (const place of all("[data-copies]")) {
    const from = document.getElementById(place.dataset.copies);
    const b = button("", () => from.querySelector("pre").textContent, place.textContent);
    b.className = "button";
    place.replaceChildren(b);
    place.hidden = false;
  }

  // The key / goes to the search, and Escape back to where the reader was. Escape also
  // closes what is open.
  let before = 0;
  document.addEventListener("keydown", (e) => {
    const typing = e.target.closest("input, textarea, select, [contenteditable]");
    const input = document.querySelector('input[type="search"][name="q"]');
    if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey && input) {
      e.preventDefault();
      before = scrollY;
      input.focus();
      input.select();
    }
    if (e.key === "Escape") {
      if (e.target === input && before > 0) {
        input.blur();
        scrollTo({ top: before, behavior: "instant" });
        before = 0;
      }
      for (const menu of all("details.menu[open]")) {
        menu.open = false;
        if (menu.contains(document.activeElement)) menu.firstElementChild.focus();
      }
    }
  });
  document.addEventListener("click", (e) => {
    for (const menu of all("details.menu[open]")) {
      if (!menu.contains(e.target)) menu.open = false;
    }
  });
  for (const menu of all("details.menu")) {
    menu.addEventListener("focusout", (e) => {
      if (e.relatedTarget && !menu.contains(e.relatedTarget)) menu.open = false;
    });
    menu.addEventListener("toggle", () => {
      menu.classList.remove("end");
      menu.classList.toggle("end", menu.querySelector("ul").getBoundingClientRect().right > document.documentElement.clientWidth);
    });
  }

  // Suggestions below a search field, from the same search. Without a choice, Enter searches.
  for (const form of all("form.search")) {
    const input = form.querySelector("input");
    const list = document.createElement("ul");
    let at = -1, asked = 0;
    const set = (name, value) => input.setAttribute("aria-" + name, value);
    const choose = (i) => {
      at = i;
      [...list.children].forEach((o, n) => o.setAttribute("aria-selected", n === i));
      set("activedescendant", list.children[i]?.id ?? "");
      list.children[i]?.scrollIntoView({ block: "nearest" });
    };
    const show = (open) => {
      list.hidden = !open;
      set("expanded", open);
      choose(-1);
    };
    list.id = "suggestions";
    list.role = "listbox";
    list.setAttribute("aria-label", "Suggestions");
    form.append(list);
    input.role = "combobox";
    set("controls", list.id);
    set("autocomplete", "list");
    show(false);
    input.addEventListener("input", async () => {
      const turn = ++asked;
      await new Promise((done) => setTimeout(done, 120));
      if (turn !== asked) return;
      if (input.value.trim().length < 2) return show(false);
      const found = await fetch(`${form.action}/suggestions?q=${encodeURIComponent(input.value)}`).then((r) => r.json()).catch(() => []);
      if (turn !== asked) return;
      list.replaceChildren(...found.map(({ text, of, url }, i) => {
        const option = document.createElement("li"), more = document.createElement("span");
        option.id = "suggestion-" + i;
        option.role = "option";
        more.textContent = of;
        option.append(text, " ", more);
        option.addEventListener("mousedown", (e) => e.preventDefault()); // the field keeps the focus
        option.addEventListener("click", () => location.assign(url));
        option.url = url;
        return option;
      }));
      show(found.length > 0 && document.activeElement === input);
    });
    input.addEventListener("keydown", (e) => {
      const n = list.children.length, step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (list.hidden || !n) return;
      if (step) choose((at + step + n + 2) % (n + 1) - 1); // -1 is the field itself
      else if (e.key === "Enter" && at >= 0) location.assign(list.children[at].url);
      else if (e.key === "Escape") show(false);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    input.addEventListener("blur", () => show(false));
    addEventListener("pagehide", () => {
      asked++;
      show(false); // if the browser goes back to this page
    });
  }

  // A filter shows those entries of an element that contain what is typed: in the name, or
  // of an input also in its type, default and description. It hides groups of which nothing
  // is left, and counts what is shown.
  for (const filter of all("[data-filter]")) {
    const scope = document.getElementById(filter.dataset.filter);
    const input = filter.querySelector("input");
    const said = filter.querySelector("[role=status]");
    const none = document.querySelector(`[data-none="${filter.dataset.filter}"]`);
    if (!scope || !input) continue;
    const items = all("[data-name], .entry", scope);
    const texts = items.map((item) =>
      (item.dataset.name ?? all(":scope > dt, .prose, .props dd", item).map((e) => e.textContent).join(" ")).toLowerCase());
    const groups = all("[data-group]", scope).map((group) => ({
      group, open: group.open, tally: group.querySelector(".tally"), items: items.filter((item) => group.contains(item)),
    }));
    filter.hidden = false;
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      items.forEach((item, i) => {
        item.hidden = !words.every((w) => texts[i].includes(w));
        if (!item.hidden) shown++;
      });
      for (const g of groups) {
        const left = g.items.filter((item) => !item.hidden).length;
        g.group.hidden = words.length > 0 && left === 0;
        if (g.tally) g.tally.textContent = left === g.items.length ? left : `${left} of ${g.items.length}`;
        if (g.group.tagName === "DETAILS") g.group.open = words.length > 0 || g.open;
      }
      said.textContent = words.length ? `${shown} of ${items.length}` : "";
      if (none) none.hidden = shown > 0 || items.length === 0;
    };
    input.addEventListener("input", apply);
    none?.querySelector("button").addEventListener("click", () => {
      input.value = "";
      apply();
      input.focus();
    });
    filter.querySelector("select")?.addEventListener("change", (e) => {
      for (const list of all(".entries", scope)) {
        const own = items.filter((item) => item.parentElement === list);
        if (e.target.value) own.sort((a, b) => a.id.localeCompare(b.id));
        list.append(...own);
      }
    });
    if (input.value) apply(); // the browser has kept it
  }

  // What is current is in view, without moving the page.
  function reveal(box, item) {
    if (!box || !item) return;
    const b = box.getBoundingClientRect(), i = item.getBoundingClientRect();
    if (i.left < b.left || i.right > b.right) box.scrollLeft += i.left - b.left - (b.width - i.width) / 2;
    if (i.top < b.top || i.bottom > b.bottom) box.scrollTop += i.top - b.top - (b.height - i.height) / 2;
  }
  reveal(document.querySelector(".tabs ul"), document.querySelector(".tabs [aria-current]"));
  reveal(document.querySelector(".columns > .nav"), document.querySelector(".columns > .nav [aria-current]"));

  // The table of contents marks the section that is being read.
  const outline = document.querySelector(".outline");
  const sections = all("a", outline ?? document.createElement("p"))
    .map((a) => ({ a, heading: document.getElementById(decodeURIComponent(a.hash.slice(1))) }))
    .filter((s) => s.heading);
  if (sections.length > 0) {
    const mark = () => {
      let now = sections[0];
      for (const s of sections) {
        if (s.heading.getBoundingClientRect().top > innerHeight / 4) break;
        now = s;
      }
      if (now.a.hasAttribute("aria-current")) return;
      for (const s of sections) s.a.removeAttribute("aria-current");
      now.a.setAttribute("aria-current", "true");
      reveal(outline, now.a);
    };
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        mark();
      });
    }, { passive: true });
    mark();
  }

  // A link to an input or output leads to its tab, also if it does not name the tab.
  const part = /^#(input|output)_/.exec(location.hash);
  const tab = part && !document.getElementById(location.hash.slice(1)) && document.querySelector(`.tabs a[href*="tab=${part[1]}s"]`);
  if (tab) location.replace(tab.href + location.hash);

  // A stylesheet marks one line that a link leads to. Several, as #L3-L9, are marked here,
  // and made by a click on a second number with the shift key.
  const lines = document.querySelector(".lines");
  const line = (n) => document.getElementById("L" + n);
  const markLines = () => {
    for (const marked of all(".marked", lines)) marked.classList.remove("marked");
    const range = /^#L(\d+)-L(\d+)$/.exec(location.hash)?.slice(1).map(Number).sort((a, b) => a - b);
    if (!range || !line(range[0])) return;
    for (let n = range[0]; n <= range[1] && line(n); n++) line(n).classList.add("marked");
    line(range[0]).scrollIntoView();
  };
  if (lines) {
    addEventListener("hashchange", markLines);
    markLines();
    lines.addEventListener("click", (e) => {
      const to = e.target.closest("a[href^='#L']"), from = /^#L(\d+)/.exec(location.hash);
      if (!to || !from || !e.shiftKey) return;
      e.preventDefault();
      const ends = [+from[1], +to.hash.slice(2)].sort((a, b) => a - b);
      location.hash = `#L${ends[0]}-L${ends[1]}`;
    });
  }

  // A keyboard scrolls what it can focus.
  for (const box of all(".chips")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});
