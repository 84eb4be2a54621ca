// node compile.mjs FOLDER PROGRAM TARGET: answer the examples in the folder's Pyodide, and write the bytecode of what they import.
import {readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const [folder, program, target] = process.argv.slice(2);
const {loadPyodide} = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const {unpack} = await import(pathToFileURL(join(folder, "unpack.mjs")));

const python = await loadPyodide({indexURL: `${folder}/`});
await unpack(python, readFileSync(join(folder, "packages.tar.gz")));
python.runPython(readFileSync(program, "utf8"));
const archive = python.globals.get("compiled_modules")(readFileSync(join(folder, "examples.json"), "utf8"));
writeFileSync(target, archive.toJs());
