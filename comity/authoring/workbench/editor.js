// Completion and hover in the editor. The server answers each question (help.py).
//
// comityEditor(editor)             add both to a CodeMirror editor
// comityAnswer(number, answer)     the server's answer to a question
(() => {
  const waiting = new Map();
  let last = 0;

  const ask = (kind, view, pos) => new Promise((resolve) => {
    const line = view.state.doc.lineAt(pos);
    waiting.set(++last, resolve);
    emitEvent('comity-help', {number: last, kind, line: line.number - 1, character: pos - line.from});
  });

  window.comityAnswer = (number, answer) => {
    waiting.get(number)?.(answer);
    waiting.delete(number);
  };

  const element = (html) => {
    const dom = document.createElement('div');
    dom.className = 'help';
    dom.innerHTML = html;  // the server has escaped all texts
    return dom;
  };

  const complete = async (context) => {
    const answer = await ask('completions', context.view, context.pos);
    if (!answer) return null;
    const line = context.state.doc.lineAt(context.pos);
    const from = line.from + answer.start;
    const typed = context.state.sliceDoc(from, context.pos);
    // Enter accepts a word. While a value such as a path or nothing is typed, it has to end the line.
    const isWord = /^[A-Za-z][\w-]*$/.test(typed);
    const isWhole = answer.options.some(({label}) => label.toLowerCase() === typed.toLowerCase());
    if (!context.explicit && (!isWord || isWhole)) return null;
    const options = answer.options.map(({info, ...option}) => (
      info ? {...option, info: () => element(info)} : option
    ));
    return {from, to: line.from + answer.end, options, filter: false};
  };

  window.comityEditor = async (editor) => {
    const CM = await import('nicegui-codemirror');
    editor.dispatch({effects: CM.StateEffect.appendConfig.of([
      CM.EditorState.languageData.of(() => [{autocomplete: complete}]),
      CM.hoverTooltip(async (view, pos) => {
        const html = await ask('hover', view, pos);
        return html ? {pos, above: true, create: () => ({dom: element(html)})} : null;
      }),
    ])});
  };
})();
