// Runs opschema in Pyodide, in a worker: the page stays usable, and can end a run that takes too long.
import {loadPyodide} from "./pyodide.mjs";

const UNPACK = `
import io, sys, sysconfig, zipfile
zipfile.ZipFile(io.BytesIO(archive)).extractall(sysconfig.get_paths()["purelib"])
`;

async function start() {
  const packages = fetch(new URL("packages.zip", import.meta.url)).then((response) => {
    if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
    return response.arrayBuffer();
  });
  const python = await loadPyodide({indexURL: new URL(".", import.meta.url).href});
  const scope = python.toPy({archive: new Uint8Array(await packages)});
  python.runPython(UNPACK, {globals: scope});
  return python.pyimport("playground_browser");
}

const started = start();
started.then(() => postMessage({ready: true}), (error) => postMessage({failed: String(error)}));

onmessage = async ({data}) => {
  try {
    const browser = await started;
    postMessage({id: data.id, answer: JSON.parse(browser.answer(JSON.stringify(data.files)))});
  } catch (error) {
    postMessage({id: data.id, failed: String(error)});
  }
};
