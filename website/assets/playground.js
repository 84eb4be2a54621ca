// The page that lints in the browser: texts, findings and the terminal's report. A worker runs opschema (playground/worker.mjs).
(function () {
  "use strict";
  const place = document.getElementById("playground");
  if (!place) return;

  const FOLDER = new URL("playground/", location.href);
  const START_SECONDS = 180, ANSWER_SECONDS = 30, PAUSE = 500;
  let worker = null, ready = false, asked = 0, timer = 0, limit = 0, began = 0;
  let examples = [], files = [];

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  const choice = element("select", {id: "playground-example"});
  const editors = element("div", {className: "playground-files"});
  const add = element("button", {type: "button", className: "md-button", textContent: "Add a file"});
  const check = element("button", {type: "button", className: "md-button md-button--primary", textContent: "Check"});
  const status = element("output", {className: "playground-status"});
  const findings = element("ol", {className: "playground-findings"});
  const terminal = element("pre", {className: "playground-terminal", tabIndex: 0});
  status.setAttribute("aria-live", "polite");
  terminal.setAttribute("role", "region");
  terminal.setAttribute("aria-label", "The report as a terminal shows it");
  terminal.hidden = true;

  function say(text) { status.textContent = text; }

  function fileOf(path, text) {
    const name = element("input", {type: "text", value: path, spellcheck: false, autocomplete: "off"});
    const area = element("textarea", {value: text, spellcheck: false, wrap: "off", rows: Math.min(24, Math.max(4, text.split("\n").length))});
    const remove = element("button", {type: "button", textContent: "Remove"});
    name.setAttribute("aria-label", "Path of the file");
    const file = {name, area};
    const label = () => {
      area.setAttribute("aria-label", `Text of ${name.value}`);
      remove.setAttribute("aria-label", `Remove ${name.value}`);
    };
    name.addEventListener("input", label);
    label();
    file.shown = element("div", {className: "playground-file"}, element("div", {className: "playground-path"}, name, remove), area);
    remove.addEventListener("click", () => {
      files = files.filter((other) => other !== file);
      file.shown.remove();
      changed();
      add.focus();
    });
    files.push(file);
    editors.append(file.shown);
    return file;
  }

  function show(example) {
    files = [];
    editors.replaceChildren();
    for (const [path, text] of Object.entries(example.files)) fileOf(path, text);
    findings.replaceChildren();
    terminal.hidden = true;
    changed();
  }

  // Once the engine is loaded, every change is checked after a pause.
  function changed() {
    clearTimeout(timer);
    if (worker) timer = setTimeout(ask, PAUSE);
  }

  function launch() {
    ready = false;
    worker = new Worker(new URL("worker.mjs", FOLDER), {type: "module"});
    worker.onmessage = ({data}) => receive(data);
    worker.onerror = (event) => receive({failed: event.message || "its files are not there: this copy of the site was built without them"});
  }

  function end() {
    worker?.terminate();
    worker = null;
    clearTimeout(limit);
  }

  function ask() {
    clearTimeout(timer);
    if (!worker) launch();
    asked += 1;
    began = performance.now();
    say(ready ? "Checking…" : "Loading opschema: some 13 MB, once…");
    clearTimeout(limit);
    limit = setTimeout(() => {
      end();
      say(`Ended after ${ready ? ANSWER_SECONDS : START_SECONDS} seconds without an answer. Shorten the texts, and press Check.`);
    }, (ready ? ANSWER_SECONDS : START_SECONDS) * 1000);
    worker.postMessage({id: asked, files: Object.fromEntries(files.map(({name, area}) => [name.value, area.value]))});
  }

  function receive(data) {
    if (data.ready) { ready = true; return; }
    if (data.failed && data.id === undefined) {
      end();
      say(`opschema cannot be loaded: ${data.failed}`);
    } else if (data.id === asked) {
      clearTimeout(limit);
      if (data.failed) {
        // Python may be in any state after a failure, a stack that ran over among them.
        end();
        const reason = data.failed.trim().split("\n").pop();
        const deep = /RangeError|recursion/.test(reason);
        findings.replaceChildren();
        terminal.hidden = true;
        say(deep ? "The text nests too deeply for the browser. Change it, and press Check."
          : `opschema failed; press Check to load it again. ${reason}`);
      } else {
        report(data.answer);
      }
    }
  }

  function report(answer) {
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const count = answer.diagnostics.length;
    const failed = answer.code > 1 || !answer.text;
    say(failed ? answer.errors.trim() || `opschema ended with ${answer.code}.` : `${count} finding${count === 1 ? "" : "s"}, ${seconds} s`);
    findings.replaceChildren(...answer.diagnostics.map(finding));
    terminal.replaceChildren(...styled(answer.text));
    terminal.hidden = !answer.text;
  }

  function finding(item) {
    const jump = element("button", {type: "button", textContent: `${item.path}:${item.line}:${item.column}`});
    jump.addEventListener("click", () => select(item));
    const rule = element("a", {href: `rules/${item.code}.html`, textContent: `${item.code} ${item.name}`});
    const message = element("span", {}, ...item.message.split("`").map((part, index) => (index % 2 ? element("code", {textContent: part}) : part)));
    const shown = element("li", {}, jump, " ", element("strong", {textContent: item.severity}), " ", rule, element("br", {}), message);
    shown.className = `playground-${item.severity}`;
    return shown;
  }

  // Lines and columns count characters, as Python does; a text area counts UTF-16 units.
  function offset(text, line, column) {
    const lines = text.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  }

  function select(item) {
    const file = files.find(({name}) => name.value === item.path);
    if (!file) return;
    const {area} = file;
    const start = offset(area.value, item.line, item.column);
    area.focus();
    area.setSelectionRange(start, Math.max(start, offset(area.value, item.end_line, item.end_column)));
    area.scrollTop = (item.line - 3) * (area.scrollHeight / Math.max(1, area.value.split("\n").length));
    area.scrollIntoView({block: "nearest"});
  }

  // The escape sequences of a report: bold, eight colours, and grey.
  function styled(text) {
    const parts = [];
    let classes = [];
    for (const part of text.split(/(\x1b\[[0-9;]*m)/)) {
      const codes = /^\x1b\[([0-9;]*)m$/.exec(part)?.[1];
      if (codes === undefined) {
        if (part) parts.push(classes.length ? element("span", {className: classes.join(" "), textContent: part}) : part);
      } else if (codes.startsWith("38;5;")) {
        classes = [...classes, "sgr-grey"];
      } else {
        for (const code of codes.split(";")) classes = Number(code) ? [...classes, `sgr-${code}`] : [];
      }
    }
    return parts;
  }

  choice.addEventListener("change", () => show(examples[choice.selectedIndex]));
  editors.addEventListener("input", changed);
  add.addEventListener("click", () => { fileOf("new.py", "").name.focus(); });
  check.addEventListener("click", ask);
  place.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(); });

  // The engine loads while the first example is read, unless the browser is told to save data.
  const atOnce = !navigator.connection?.saveData;
  if (atOnce) launch();

  fetch(new URL("examples.json", FOLDER)).then((response) => {
    if (!response.ok) throw new Error("this copy of the site was built without it");
    return response.json();
  }).then((found) => {
    examples = found;
    for (const {title} of examples) choice.add(new Option(title));
    place.replaceChildren(
      element("div", {className: "playground-bar"}, element("label", {}, "Example", choice), add, check),
      editors, status, findings, terminal,
    );
    show(examples[0]);
    if (atOnce) ask();
  }).catch((error) => {
    end();
    place.textContent = `The page cannot be used: ${error.message}.`;
  });
})();
