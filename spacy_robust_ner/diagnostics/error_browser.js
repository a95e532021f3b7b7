"use strict";
// Everything is made with textContent, so that no text of a corpus can become markup.
(function () {
  const STEP = 25;
  const SIGNS = {
    correct: "✓",
    missed: "✗ missed",
    spurious: "✗ spurious",
    "wrong label": "≠ label",
    "wrong boundaries": "↔ boundaries",
    recovered: "★ recovered",
    "not recovered": "✗ not recovered",
  };
  const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u;
  const data = JSON.parse(document.getElementById("error-data").textContent);
  const form = document.getElementById("error-filters");
  const list = document.getElementById("error-list");
  const status = document.getElementById("error-status");
  const more = document.getElementById("error-more");
  const kindBoxes = [...form.querySelectorAll("input[name=kind]")];
  const lowered = new Map();
  let found = [];
  let shown = 0;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function textOf(number) {
    if (!lowered.has(number)) lowered.set(number, data.texts[number].join("").toLowerCase());
    return lowered.get(number);
  }

  function filters() {
    const label = form.elements.label.value;
    return {
      run: data.runs[Number(form.elements.run.value)],
      kinds: new Set(
        kindBoxes.filter((box) => box.checked).map((box) => data.kinds.indexOf(box.value)),
      ),
      label: label === "" ? null : Number(label),
      text: form.elements.text.value.trim().toLowerCase(),
    };
  }

  function update() {
    const wanted = filters();
    const counts = new Map();
    found = [];
    wanted.run.items.forEach((item) => {
      const [text, , , , marks] = item;
      if (wanted.text && !textOf(text).includes(wanted.text)) return;
      const own = new Set();
      marks.forEach(([, , , label, kind]) => {
        if (wanted.label === null || wanted.label === label) own.add(kind);
      });
      own.forEach((kind) => counts.set(kind, (counts.get(kind) || 0) + 1));
      if ([...own].some((kind) => wanted.kinds.has(kind))) found.push(item);
    });
    kindBoxes.forEach((box) => {
      const count = counts.get(data.kinds.indexOf(box.value)) || 0;
      box.parentElement.querySelector(".number").textContent = "(" + count + ")";
    });
    const [test, train] = wanted.run.left;
    const left = [];
    if (test) left.push(test + " of the test text");
    if (train) left.push(train + " of the training text");
    status.textContent =
      found.length + (found.length === 1 ? " passage" : " passages") +
      (left.length ? "; left out of this run: " + left.join(", ") : "");
    list.replaceChildren();
    shown = 0;
    extend();
  }

  function extend() {
    const lang = filters().run.lang;
    const batch = document.createDocumentFragment();
    found.slice(shown, shown + STEP).forEach((item) => batch.append(passage(item, lang)));
    shown = Math.min(found.length, shown + STEP);
    list.append(batch);
    more.hidden = shown >= found.length;
    more.textContent = "Show more (" + (found.length - shown) + ")";
  }

  function passage([text, split, before, after, marks], lang) {
    const tokens = data.texts[text];
    const item = element("li");
    if (split === 1) item.append(element("span", "split", "training text"));
    [["gold", 0], ["predicted", 1]].forEach(([name, side]) => {
      layers(marks.filter((mark) => mark[0] === side)).forEach((own) => {
        const line = element("div", "line");
        line.append(element("span", "side", name));
        const words = element("div", "words");
        words.dir = direction(tokens);
        if (lang) words.lang = lang;
        if (before) words.append("… ");
        let place = 0;
        own.forEach((mark) => {
          words.append(tokens.slice(place, mark[1]).join(""));
          words.append(entity(tokens, mark));
          place = mark[2];
        });
        words.append(tokens.slice(place).join(""));
        if (after) words.append(" …");
        line.append(words);
        item.append(line);
      });
    });
    return item;
  }

  // That of the first letter. The browser's own choice would heed the labels as well.
  function direction(tokens) {
    const letter = /\p{L}/u.exec(tokens.join(""));
    return letter && RIGHT_TO_LEFT.test(letter[0]) ? "rtl" : "ltr";
  }

  // Entities that overlap can't stand in one line: each goes into the first that has room.
  function layers(marks) {
    const lines = [[]];
    marks.forEach((mark) => {
      const room = lines.find((line) => !line.length || line[line.length - 1][2] <= mark[1]);
      if (room) room.push(mark);
      else lines.push([mark]);
    });
    return lines;
  }

  function entity(tokens, [, start, end, label, kind, masked, score]) {
    const name = data.kinds[kind];
    const made = element("mark", "entity " + (name === "correct" ? "right" : "wrong"));
    if (name === "recovered") made.className = "entity found";
    if (masked) made.classList.add("masked");
    made.classList.add("colour" + (label % 8));
    const words = tokens.slice(start, end).join("");
    made.append(element("bdi", "", words.trimEnd()));
    const tag = element("span", "tag");
    tag.append(element("span", "label", data.labels[label]));
    const notes = [SIGNS[name]];
    if (masked && name !== "recovered" && name !== "not recovered") notes.push("masked");
    if (score !== null) notes.push(score.toFixed(2));
    tag.append(" ", element("span", "note", notes.join(" · ")));
    made.append(" ", tag);
    const around = document.createDocumentFragment();
    around.append(made);
    if (words !== words.trimEnd()) around.append(" ");
    return around;
  }

  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", extend);
  update();
})();
