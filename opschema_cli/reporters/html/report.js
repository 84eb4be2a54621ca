{
  const form = document.getElementById("filters");
  const section = document.getElementById("findings");
  if (form && section) {
    const articles = [...section.querySelectorAll("article")];
    const texts = articles.map((article) => article.textContent.toLowerCase());
    const ranks = { error: 0, warning: 1, info: 2 };
    const names = ["text", "severity", "pack", "rule", "path", "sort"];
    const field = (name) => form.elements.namedItem(name);
    const key = (index, by) => by === "severity" ? ranks[articles[index].dataset.severity] : articles[index].dataset[by];
    let order = "";

    const sort = (by) => {
      if (by === order) return;
      order = by;
      const indexes = [...articles.keys()];
      if (by) indexes.sort((a, b) => (key(a, by) < key(b, by) ? -1 : key(a, by) > key(b, by) ? 1 : a - b));
      section.append(...indexes.map((index) => articles[index]));
    };
    const filter = () => {
      const wanted = Object.fromEntries(names.map((name) => [name, field(name).value]));
      const text = wanted.text.toLowerCase(), path = wanted.path.toLowerCase();
      let shown = 0;
      articles.forEach((article, index) => {
        const data = article.dataset;
        const fits = ["severity", "pack", "rule"].every((name) => !wanted[name] || data[name] === wanted[name])
          && data.path.toLowerCase().includes(path) && texts[index].includes(text);
        article.hidden = !fits;
        shown += fits;
      });
      sort(wanted.sort);
      field("shown").value = `${shown} of ${articles.length} shown`;
      return wanted;
    };
    const remember = (wanted) => {
      const set = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
      history.replaceState(null, "", set.size ? `#${set}` : location.pathname + location.search);
    };
    const recall = () => {
      if (document.getElementById(location.hash.slice(1))) return;
      const given = new URLSearchParams(location.hash.slice(1));
      names.forEach((name) => { if (given.has(name)) field(name).value = given.get(name); });
    };
    form.hidden = false;
    recall();
    filter();
    form.addEventListener("input", () => remember(filter()));
    form.addEventListener("reset", () => setTimeout(() => remember(filter())));
    form.addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", () => { recall(); filter(); });
  }
}
