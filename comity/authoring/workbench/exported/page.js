// Sends each input to Python in the worker, and shows the parts of the page that come back.
// in_browser.py describes the messages and the answers.

const part = (id) => document.getElementById(id);
const editor = part("editor");
const worker = new Worker("worker.js", { type: "module" });
const queue = [];
const shown = {}; // the HTML of each part
let isBusy = true; // until Python has started
let isEditable = false;
let url = ""; // of the file in the editor

function ask(message) {
  const last = queue.at(-1);
  // Newer input replaces older input that nobody has answered yet.
  if (["type", "choose"].includes(message.act)) {
    if (last && last.act === message.act && last.url === message.url && last.name === message.name) queue.pop();
  } else {
    editor.readOnly = true; // the answer may replace its text
  }
  queue.push(message);
  send();
}

function send() {
  if (isBusy || !queue.length) return;
  isBusy = true;
  worker.postMessage(JSON.stringify(queue.shift()));
}

function say(sentence) {
  const line = document.createElement("p");
  line.textContent = sentence;
  part("status").replaceChildren(line);
}

// Show HTML in a part of the page. A button in it keeps the focus.
function put(id, html) {
  if (shown[id] === html) return;
  shown[id] = html;
  const focused = part(id).contains(document.activeElement) ? { ...document.activeElement.dataset } : null;
  part(id).innerHTML = html; // markup.py has escaped it
  if (!focused) return;
  for (const button of part(id).querySelectorAll("button[data-act]")) {
    if (Object.entries({ ...button.dataset }).every(([name, value]) => focused[name] === value)) button.focus();
  }
}

function edit(file) {
  url = file.url;
  isEditable = file.editable;
  part("name").textContent = file.name;
  part("note").textContent = file.note;
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
  isBusy = false;
  if (data.error) say(data.error);
  else if (data.answer) show(JSON.parse(data.answer));
  else say(`Python has started in ${data.seconds} s.`);
  editor.readOnly = !isEditable || queue.some((message) => message.act !== "type" && message.act !== "choose");
  send();
};
worker.onerror = (event) => say(`Python has not started: ${event.message || "the browser lacks module workers"}.`);

function show(answer) {
  if (answer.editor) edit(answer.editor);
  for (const [id, html] of Object.entries(answer.parts)) put(id, html);
  const frame = part("frame");
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
  if (isBusy && ["fix", "text"].includes(button.dataset.act)) say("Your last change is being read. Press again.");
  else ask({ ...button.dataset });
});
part("form").addEventListener("input", ({ target }) => ask({ act: "choose", name: target.name, value: target.value }));
addEventListener("submit", (event) => {
  event.preventDefault();
  ask({ act: "wish", wish: event.target.elements.wish.value });
});
addEventListener("hashchange", () => ask({ act: "start", fragment: location.hash }));
ask({ act: "start", fragment: location.hash });
