// Writes the files of packages.tar.gz below Python's site-packages. The browser inflates, several times faster than Python here.
const BLOCK = 512;

/** Unpack an archive, which a server's Content-Encoding may have led the browser to inflate already. */
export async function unpack(python, content) {
  const bytes = new Uint8Array(content[0] === 0x1f && content[1] === 0x8b ? await inflated(content) : content);
  const root = python.runPython("import sysconfig; sysconfig.get_paths()['purelib']");
  const made = new Set();
  for (const [name, file] of files(bytes)) {
    const path = `${root}/${name}`, folder = path.slice(0, path.lastIndexOf("/"));
    if (!made.has(folder)) {
      python.FS.mkdirTree(folder);
      made.add(folder);
    }
    python.FS.writeFile(path, file, {canOwn: true});
  }
  python.runPython("import importlib; importlib.invalidate_caches()");
}

function inflated(content) {
  return new Response(new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** The files of a tar archive in the format of POSIX 1988: names and contents. */
function* files(bytes) {
  const decoder = new TextDecoder();
  const text = (start, length) => decoder.decode(bytes.subarray(start, start + length)).replace(/\0.*$/s, "");
  for (let at = 0; bytes[at];) {
    const prefix = text(at + 345, 155), size = parseInt(text(at + 124, 12), 8);
    yield [prefix ? `${prefix}/${text(at, 100)}` : text(at, 100), bytes.slice(at + BLOCK, at + BLOCK + size)];
    at += BLOCK * (1 + Math.ceil(size / BLOCK));
  }
}
