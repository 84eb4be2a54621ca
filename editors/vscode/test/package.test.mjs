/** The built package: what it holds, and that its bundle loads and starts the configured command. Run `npm run package` first. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const ROOT = new URL("..", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "opschema-"));
execFileSync("unzip", ["-q", join(ROOT, "opschema.vsix"), "-d", folder]);
const manifest = JSON.parse(readFileSync(join(folder, "extension/package.json"), "utf8"));

test("the package holds the bundle and nothing of the build", () => {
  const names = execFileSync("unzip", ["-Z1", join(ROOT, "opschema.vsix")], { encoding: "utf8" }).trim().split("\n");
  assert.deepEqual(
    names.map((name) => name.toLowerCase()).sort(),
    ["[content_types].xml", "extension.vsixmanifest", "extension/dist/extension.js", "extension/license.txt", "extension/package.json", "extension/readme.md"],
  );
});

test("the bundle starts the configured server", async () => {
  const started = [];
  const disposable = { dispose() {} };
  const event = () => disposable;
  const any = new Proxy(function () {}, {
    get: (_, name) => (name === Symbol.toPrimitive ? () => "any" : name === "then" ? undefined : any),
    apply: () => any,
    construct: () => any,
  });
  const known = {
    commands: { registerCommand: (name) => (started.push(name), disposable) },
    workspace: new Proxy({}, {
      get: (_, name) =>
        name === "getConfiguration"
          ? () => ({ get: (key, otherwise) => (key === "path" ? "no-such-opschema" : otherwise) })
          : name === "onDidChangeConfiguration" ? event : any[name],
    }),
    window: new Proxy({}, { get: (_, name) => (name === "showErrorMessage" ? (text) => (started.push(text), Promise.resolve()) : any[name]) }),
  };
  known.version = "1.91.0";
  known.EventEmitter = class {
    event = event;
    fire() {}
    dispose() {}
  };
  known.CancellationTokenSource = class {
    token = { onCancellationRequested: event };
    dispose() {}
  };
  const vscode = new Proxy(known, { get: (target, name) => target[name] ?? class { static [Symbol.hasInstance]() { return false; } } });
  const load = Module._load;
  Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
  try {
    const extension = createRequire(import.meta.url)(join(folder, "extension", manifest.main));
    assert.equal(typeof extension.deactivate, "function");
    await extension.activate({ subscriptions: [] });
  } finally {
    Module._load = load;
  }
  assert.equal(started[0], "opschema.restart");
  assert.match(started.at(-1), /`no-such-opschema server` does not start/);
});
