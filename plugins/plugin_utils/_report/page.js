// SPDX-License-Identifier: GPL-3.0-or-later
// Fills the page from its own data. Elements get text, never markup: what resources say stays text.
"use strict";
(() => {
  const { nodes, files } = JSON.parse(document.getElementById("data").textContent);
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const rows = [...document.querySelectorAll("#nodes tbody tr")];
  const search = document.getElementById("search");
  const place = document.getElementById("node");
  const lower = (text) => text.toLocaleLowerCase();
  const fileTexts = files.map((file) => lower([file.path, file.origin, ...file.lines].join("\n")));

  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const asked = () => new URLSearchParams(location.hash.slice(1));

  const link = (values) => {
    const kept = new URLSearchParams();
    for (const [key, value] of Object.entries(values)) if (value) kept.set(key, value);
    return "#" + kept.toString();
  };

  const sentences = (told, kind) => {
    const list = element("ul");
    for (const sentence of told) list.append(element("li", sentence, kind ? { class: kind } : {}));
    return told.length ? [list] : [];
  };

  const facts = (known) => {
    const list = element("dl");
    for (const [name, value] of Object.entries(known)) {
      if (value) list.append(element("dt", name), element("dd", value));
    }
    return list;
  };

  const words = { "-": "overridden by ", "+": "wins over " };

  const lineRow = (number, text, mark, wanted) => {
    const row = element("tr");
    if (mark) row.classList.add(mark[0] === "-" ? "lost" : "won");
    if (wanted && lower(text).includes(wanted)) row.classList.add("hit");
    row.append(element("th", number, { scope: "row" }), element("td", text, { class: "text" }));
    row.append(element("td", mark ? words[mark[0]] + mark[1] : "", { class: "said" }));
    return row;
  };

  const fileBlock = ([index, marks], wanted) => {
    const file = files[index];
    const frame = element("div", undefined, { class: "file", tabindex: "0", role: "region", "aria-label": file.path });
    const table = element("table");
    const head = element("thead", undefined, { class: "unseen" });
    const titles = element("tr");
    for (const title of ["Line", "Text", "Effect"]) titles.append(element("th", title, { scope: "col" }));
    head.append(titles);
    const body = element("tbody");
    file.lines.forEach((text, at) => body.append(lineRow(at + 1, text, marks[at + 1], wanted)));
    table.append(element("caption", "Every line comes from " + file.origin, { class: "unseen" }), head, body);
    frame.append(table);
    return [element("h4", file.path), element("p", "from " + file.origin, { class: "origin" }), frame];
  };

  const serviceBlock = (service, wanted) => {
    const title = element("h3", service.name + " ");
    title.append(element("span", service.state, { class: "state " + service.state }));
    const known = { Image: service.image, Digest: service.digest, Held: service.hold };
    const shown = service.files.flatMap((file) => fileBlock(file, wanted));
    return [title, facts(known), ...sentences(service.blocked, "bad"), ...sentences(service.notes), ...shown];
  };

  const showNode = (name, wanted) => {
    const node = byName.get(name);
    place.hidden = !node;
    place.replaceChildren();
    if (!node) return;
    place.append(element("h2", node.name, { id: "node-heading", tabindex: "-1" }), facts(node.facts));
    place.append(...sentences(node.blocked, "bad"), ...sentences(node.notes));
    for (const service of node.services) place.append(...serviceBlock(service, wanted));
  };

  const matches = (row, wanted) => {
    if (!wanted || lower(row.textContent).includes(wanted)) return true;
    const services = byName.get(row.dataset.node)?.services ?? [];
    return services.some((service) => service.files.some(([index]) => fileTexts[index].includes(wanted)));
  };

  const show = () => {
    const values = asked();
    const sought = (values.get("search") ?? "").trim();
    const wanted = lower(sought);
    const chosen = values.get("node") ?? "";
    if (search.value.trim() !== sought) search.value = sought;
    for (const row of rows) {
      row.hidden = !matches(row, wanted);
      row.querySelector("a").href = link({ search: sought, node: row.dataset.node });
      if (row.dataset.node === chosen) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    const found = rows.filter((row) => !row.hidden).length;
    document.getElementById("found").textContent = wanted ? found + " of " + rows.length + " nodes" : "";
    showNode(chosen, wanted);
  };

  search.addEventListener("input", () => {
    history.replaceState(null, "", link({ search: search.value.trim(), node: asked().get("node") }));
    show();
  });
  document.getElementById("search-form").addEventListener("submit", (event) => event.preventDefault());
  // Only a link changes the address with an event; the search does it without one and keeps the focus.
  window.addEventListener("hashchange", () => {
    show();
    document.getElementById("node-heading")?.focus();
  });
  show();
})();
