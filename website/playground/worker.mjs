// Runs opschema in Pyodide, in a worker: the page stays usable, and can end a run that takes too long.
import {loadPyodide} from "./pyodide.mjs";
import {unpack} from "./unpack.mjs";

async function start() {
  const packages = fetch(new URL("packages.tar.gz", import.meta.url)).then(async (response) => {
    if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  });
  const python = await loadPyodide({indexURL: new URL(".", import.meta.url).href});
  await unpack(python, await packages);
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
