/** Starts `opschema server` and connects it to the editor. */
import { commands, ExtensionContext, window, workspace } from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

const LANGUAGES = ["python", "yaml", "cpp", "cuda-cpp", "c", "toml"];
const FILES = "**/{.gitignore,.opschema-baseline.json,*.{py,pyi,yaml,yml,toml,c,cc,cpp,cxx,cu,cuh,h,hh,hpp,hip}}";

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(commands.registerCommand("opschema.restart", restart));
  context.subscriptions.push(
    workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("opschema.path")) {
        void restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

async function start(): Promise<void> {
  const command = workspace.getConfiguration("opschema").get<string>("path", "opschema");
  const server: ServerOptions = { command, args: ["server"] };
  const options: LanguageClientOptions = {
    documentSelector: LANGUAGES.map((language) => ({ scheme: "file", language })),
    synchronize: { fileEvents: workspace.createFileSystemWatcher(FILES) },
  };
  client = new LanguageClient("opschema", "opschema", server, options);
  try {
    await client.start();
  } catch (error) {
    const hint = "install it with: pip install 'opschema-cli[lsp]', or set `opschema.path`";
    void window.showErrorMessage(`opschema: \`${command} server\` does not start (${error}); ${hint}`);
  }
}

async function restart(): Promise<void> {
  await client?.stop();
  await start();
}
