
"use strict";
{
  const choice = document.getElementById("theme");
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    choice.value = theme;
  };
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("opschema-theme") || "";
      localStorage.setItem("opschema-theme", value);
    } catch { /* the browser stores nothing for this page */ }
    return "";
  };
  apply(stored());
  choice.closest("label").hidden = false;
  choice.addEventListener("change", () => { apply(choice.value); stored(choice.value); });
}
