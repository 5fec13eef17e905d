// Starts `comity languageserver`, and connects the editor to it.
"use strict";

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const FILES = ["robots.txt", "ai.txt", "ai.xml", "automation-preferences.txt", "tdmrep.json", "trust.txt"];
const PAGES = ["html", "htm", "xhtml"];

let client;

function selector(settings) {
  const documents = [
    { scheme: "file", language: "robots-txt" },
    { scheme: "file", language: "ai-txt" },
    { scheme: "file", language: "automation-preferences" },
    ...FILES.map((name) => ({ scheme: "file", pattern: `**/${name}` })),
    { scheme: "file", language: "xml" },
  ];
  return settings.get("html") ? [...documents, ...PAGES.map((end) => ({ scheme: "file", pattern: `**/*.${end}` }))] : documents;
}

async function start() {
  const settings = workspace.getConfiguration("comity");
  const [command, ...args] = settings.get("command");
  client = new LanguageClient("comity", "comity", { command, args }, { documentSelector: selector(settings) });
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `comity: \`${[command, ...args].join(" ")}\` does not start: pip install "comity[languageserver]", or name another one in the setting comity.command. (${error.message})`,
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running && running.needsStop()) {
    await running.stop();
  }
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("comity.restart", async () => {
      await stop();
      await start();
    }),
    workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("comity.command") || change.affectsConfiguration("comity.html")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
