// Runs Python, and in_browser.py in it. All files are beside this one.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const load = async (name) => {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name} has status ${response.status}`);
  return response;
};

let hasStarted = false;

// The last line of a traceback says what is wrong.
function report(error) {
  const reason = error.message.trim().split("\n").at(-1);
  postMessage({ error: `${hasStarted ? "This action has failed" : "Python has not started"}: ${reason}` });
}

const bench = (async () => {
  const begin = performance.now();
  const [python, archive, site] = await Promise.all([
    loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href }),
    load("python.zip").then((response) => response.arrayBuffer()),
    load("site.json").then((response) => response.text()),
  ]);
  python.unpackArchive(archive, "zip", { extractDir: "/comity" });
  python.runPython("import sys; sys.path.append('/comity')");
  const started = python.pyimport("comity.authoring.workbench.in_browser").Bench(site);
  hasStarted = true;
  postMessage({ seconds: ((performance.now() - begin) / 1000).toFixed(1) });
  return started;
})();
bench.catch(report);

onmessage = async ({ data }) => {
  try {
    postMessage({ answer: (await bench).handle(data) });
  } catch (error) {
    report(error);
  }
};
