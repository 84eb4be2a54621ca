// Filters the table of rules by its columns. The page is complete without it. Filters are kept in the address, to be shared.
(function () {
  "use strict";
  const table = document.querySelector("#catalogue table");
  if (!table) return;

  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim().toLowerCase());
  const rows = [...table.tBodies[0].rows].map((row) => {
    const cells = [...row.cells].map((cell) => cell.textContent.trim());
    return {row, cells, text: cells.join(" ").toLowerCase()};
  });
  const asked = new URLSearchParams(location.search);
  const fields = {};

  function field(name, label, control) {
    const wrapper = document.createElement("label");
    wrapper.append(label, control);
    control.name = name;
    fields[name] = control;
    return wrapper;
  }

  function choice(name, label) {
    const column = heads.indexOf(name);
    const select = document.createElement("select");
    select.add(new Option("all", ""));
    for (const value of [...new Set(rows.map(({cells}) => cells[column]))].sort()) select.add(new Option(value, value));
    select.value = asked.get(name) || "";
    if (select.selectedIndex < 0) select.value = "";
    return field(name, label, select);
  }

  function search() {
    const input = document.createElement("input");
    input.type = "search";
    input.value = asked.get("text") || "";
    return field("text", "Text", input);
  }

  function matches({cells, text}) {
    const words = fields.text.value.toLowerCase().split(/\s+/);
    return words.every((word) => text.includes(word)) &&
      ["pack", "severity", "fix"].every((name) => !fields[name].value || cells[heads.indexOf(name)] === fields[name].value);
  }

  function remember() {
    const query = new URLSearchParams(Object.entries(fields).map(([name, {value}]) => [name, value]).filter(([, value]) => value));
    history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`);
  }

  function show() {
    let count = 0;
    for (const each of rows) {
      each.row.hidden = !matches(each);
      count += each.row.hidden ? 0 : 1;
    }
    output.textContent = `${count} of ${rows.length} rules`;
  }

  const form = document.createElement("form");
  const output = document.createElement("output");
  form.className = "catalogue-filter";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the rules");
  form.append(search(), choice("pack", "Pack"), choice("severity", "Severity"), choice("fix", "Fix"), output);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { show(); remember(); });
  document.getElementById("catalogue").prepend(form);
  show();
})();
