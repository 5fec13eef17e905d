// Sends each input to Python in the worker, and shows the parts of the page that come back.
// in_browser.py describes the messages and the answers.

const element = (id) => document.getElementById(id);
const part = (name) => element(`part-${name}`); // fields have other ids
const editor = element("editor");
const worker = new Worker("worker.js", { type: "module" });
const queue = [];
const shown = {}; // the HTML of each part
let isBusy = true; // until Python has started
let isReading = true; // Python is busy with an action that may change the files
let isEditable = false;
let url = ""; // of the file in the editor
let pause = 0; // the timer of the next check of the sentences

const isInput = ({ act }) => ["type", "choose", "show-wish"].includes(act);

function ask(message) {
  const last = queue.at(-1);
  // Newer input replaces older input that nobody has answered yet.
  if (isInput(message)) {
    if (last && last.act === message.act && last.url === message.url && last.name === message.name) queue.pop();
  } else if (message.act !== "check") {
    editor.readOnly = true; // the answer may replace its text
  }
  queue.push(message);
  send();
}

function send() {
  if (isBusy || !queue.length) return;
  isBusy = true;
  isReading = queue[0].act !== "check";
  worker.postMessage(JSON.stringify(queue.shift()));
}

function say(sentence) {
  const line = document.createElement("p");
  line.textContent = sentence;
  element("status").replaceChildren(line);
}

// Show HTML in a part of the page. A button in it keeps the focus.
function put(name, html) {
  if (shown[name] === html && !part(name).querySelector("input, select, textarea")) return;
  shown[name] = html;
  const focused = part(name).contains(document.activeElement) ? { ...document.activeElement.dataset } : null;
  part(name).innerHTML = html; // markup.py has escaped it
  if (!focused) return;
  for (const button of part(name).querySelectorAll("button[data-act]")) {
    if (Object.entries({ ...button.dataset }).every(([key, value]) => focused[key] === value)) button.focus();
  }
}

function edit(file) {
  url = file.url;
  isEditable = file.editable;
  element("name").textContent = file.name;
  element("note").textContent = file.note;
  if (editor.value !== file.text) editor.value = file.text;
}

function goTo(line) {
  const lines = editor.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  editor.focus();
  editor.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  editor.scrollTop = (line - 4) * parseFloat(getComputedStyle(editor).lineHeight);
}

function save({ name, body }) {
  const octets = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([octets]));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

worker.onmessage = ({ data }) => {
  isBusy = isReading = false;
  if (data.error) say(data.error);
  else if (data.answer) show(JSON.parse(data.answer));
  else say(`Python has started in ${data.seconds} s.`);
  editor.readOnly = !isEditable || queue.some((message) => !isInput(message) && message.act !== "check");
  send();
};
worker.onerror = (event) => say(`Python has not started: ${event.message || "the browser lacks module workers"}.`);

function show(answer) {
  if (answer.editor) edit(answer.editor);
  for (const [name, html] of Object.entries(answer.parts)) put(name, html);
  if (!("frame" in answer)) return; // the sentences have been checked
  clearTimeout(pause);
  pause = setTimeout(() => ask({ act: "check" }), 400); // it takes longer than the other parts
  const frame = element("frame");
  frame.hidden = !answer.frame;
  if (frame.srcdoc !== answer.frame) frame.srcdoc = answer.frame;
  if (answer.line) goTo(answer.line);
  if (answer.fragment) history.replaceState(null, "", `#${answer.fragment}`);
  if (answer.download) save(answer.download);
  if (answer.say) say(answer.say);
  document.body.dataset.answered = Number(document.body.dataset.answered ?? 0) + 1;
}

editor.addEventListener("input", () => ask({ act: "type", url, text: editor.value }));
addEventListener("click", (event) => {
  const button = event.target.closest("button[data-act]");
  if (!button) return;
  // The list of findings may belong to an older text.
  if (isReading && ["fix", "fix-all", "text"].includes(button.dataset.act)) say("Your last change is being read. Press again.");
  else ask({ ...button.dataset });
});
for (const form of document.querySelectorAll(".meaning > .form")) {
  form.addEventListener("input", ({ target }) => ask({ act: "choose", name: target.name, value: target.value }));
}
element("wish-form").addEventListener("input", ({ target }) => {
  if (target.name === "wish") ask({ act: "show-wish", wish: target.value });
});
element("wish-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new FormData(event.target);
  ask({ act: "wish", fields: Object.fromEntries(fields), formats: fields.getAll("format") });
});
addEventListener("hashchange", () => ask({ act: "start", fragment: location.hash }));
ask({ act: "start", fragment: location.hash });
