// The browser of cases: filters, list, and one case with its tree, made when it is shown.

const VERDICTS = {
  any: ["any", () => true],
  right: ["order right", (place) => orderOf(place, state.set) === true],
  wrong: ["order wrong", (place) => orderOf(place, state.set) === false],
  gained: ["order became right", (place) => orderOf(place, 0) === false && orderOf(place, state.set) === true],
  lost: ["order became wrong", (place) => orderOf(place, 0) === true && orderOf(place, state.set) === false],
  deduction: ["with a deduction error", (place) => countKinds(place, state.set).deduction > 0],
  decomposition: ["with an issue not covered", (place) => countKinds(place, state.set).decomposition > 0],
  faultless: ["every issue right", (place) => { const c = countKinds(place, state.set); return c.right > 0 && !c.deduction && !c.decomposition && !c.unjudged; }],
  cut: ["answer cut off", (place) => answersOf(place).some((answer) => answer.finish === "length")],
  gated: ["turned away by a gate", (place) => answersOf(place).some((answer) => answer.gate)],
  unscored: ["unscored", (place) => answersOf(place).some((answer) => !answer.score)],
};
const SORTS = {
  order: ["as in the file", () => 0],
  gain: ["largest gain", (a, b) => byNumber(changeOf(b), changeOf(a))],
  loss: ["largest loss", (a, b) => byNumber(changeOf(a), changeOf(b))],
  high: ["highest score", (a, b) => byNumber(meanOf(b, state.set, 0), meanOf(a, state.set, 0))],
  low: ["lowest score", (a, b) => byNumber(meanOf(a, state.set, 0), meanOf(b, state.set, 0))],
  issues: ["most issues", (a, b) => state.data.cases[b].issues.length - state.data.cases[a].issues.length],
};
let listed = [];
let allOpen = false;

function byNumber(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return a - b;
}

function orderOf(place, set) {
  const order = meanOf(place, set, 1);
  return order === null ? null : order >= 0.5;
}

function changeOf(place) {
  const [before, after] = [meanOf(place, 0, 0), meanOf(place, state.set, 0)];
  return before === null || after === null ? null : after - before;
}

function holds(place, words) {
  const legalCase = state.data.cases[place];
  const texts = [legalCase.id, legalCase.question, ...legalCase.issues.flatMap((issue) => [issue.summary, issue.conclusion]), ...answersOf(place).map((answer) => answer.text)];
  const all = texts.join("\n").normalize("NFC").toLowerCase();
  return words.every((word) => all.includes(word));
}

function fillList() {
  const words = $("search").value.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean);
  const [difficulty, kind] = [$("difficulty").value, $("kind").value];
  const fits = VERDICTS[$("verdict").value][1];
  listed = state.data.cases.map((_, place) => place).filter((place) => {
    const legalCase = state.data.cases[place];
    return (!difficulty || legalCase.difficulty === difficulty) && (!kind || legalCase.kind === kind) && fits(place) && (!words.length || holds(place, words));
  });
  listed.sort(SORTS[$("sort").value][1]);
  $("count").textContent = listed.length === state.data.cases.length ? `${listed.length} cases` : `${listed.length} of ${state.data.cases.length} cases`;
  $("list").replaceChildren(...listed.map(listItem));
}

function listItem(place) {
  const legalCase = state.data.cases[place];
  const [score, change, order] = [meanOf(place, state.set, 0), changeOf(place), orderOf(place, state.set)];
  const name = make("span", "doc", legalCase.id);
  name.lang = "ko";
  const moved = make("span", `change ${change > 0.005 ? "up" : change < -0.005 ? "down" : ""}`, change === null || state.set === 0 ? "" : signed(change));
  const button = make("button", "", mark(order === null ? "unjudged" : order ? "right" : "deduction"), name, make("span", "num", score === null ? "–" : score.toFixed(2)), moved, sharesBar(place, state.set));
  button.type = "button";
  button.title = `order ${order === null ? "unscored" : order ? "right" : "wrong"}, score, change from ${state.data.sets[0].name}`;
  button.addEventListener("click", () => { show({ case: place, sample: 0, issue: null }, { push: true }); toCase(); });
  const item = make("li", "", button);
  item.dataset.place = place;
  if (place === state.case) item.setAttribute("aria-current", "true");
  return item;
}

function toCase() {
  if (matchMedia("(max-width: 820px)").matches) $("case").scrollIntoView({ block: "start" });
}

function markCurrent() {
  for (const item of $("list").children) {
    const isCurrent = Number(item.dataset.place) === state.case;
    if (isCurrent) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
    if (isCurrent) {
      const [top, bottom] = [item.offsetTop - $("list").offsetTop, item.offsetTop - $("list").offsetTop + item.offsetHeight];
      if (top < $("list").scrollTop || bottom > $("list").scrollTop + $("list").clientHeight) $("list").scrollTop = top - 60;
    }
  }
}

function showCase() {
  const legalCase = state.data.cases[state.case];
  const answers = answersOf(state.case);
  const answer = answers.find((one) => one.sample === state.sample) ?? answers[0];
  const title = make("h3", "", legalCase.id);
  title.lang = "ko";
  const step = (name, words, by) => {
    const button = make("button", "", name);
    button.type = "button";
    button.setAttribute("aria-label", words);
    button.addEventListener("click", () => move(by));
    return button;
  };
  const numIssues = legalCase.issues.length - 1;
  const chips = [legalCase.difficulty, legalCase.kind === "unnamed" ? null : legalCase.kind, `${numIssues} issue${numIssues === 1 ? "" : "s"}`, legalCase.has_tree ? null : "tree unknown"];
  const head = make("div", "case-head", title, ...chips.filter(Boolean).map((words) => make("span", "chip", words)), step("‹", "previous case", -1), step("›", "next case", 1));

  const strip = make("div", "strip");
  state.data.sets.forEach((graded, set) => {
    const order = orderOf(state.case, set);
    const score = meanOf(state.case, set, 0);
    const button = make("button", "", make("span", "set-name", graded.name), mark(order === null ? "unjudged" : order ? "right" : "deduction"), ` ${score === null ? "–" : score.toFixed(2)}`, sharesBar(state.case, set));
    button.type = "button";
    button.title = `${graded.name}: order ${order === null ? "unscored" : order ? "right" : "wrong"}`;
    button.setAttribute("aria-pressed", String(set === state.set));
    button.addEventListener("click", () => show({ set }));
    strip.append(button);
  });

  const question = make("details", "question", make("summary", "", "Question"), korean(make("div", "prose", legalCase.question)));
  question.open = legalCase.question.length < 1200;
  const wasOpen = document.querySelector("details.question");
  if (wasOpen && wasOpen.dataset.place === String(state.case)) question.open = wasOpen.open;
  question.dataset.place = state.case;
  $("case").replaceChildren(head, strip, question, make("div", "columns", treePane(legalCase, answer), answerPane(answers, answer)));
}

function korean(element) {
  element.lang = "ko";
  return element;
}

function treePane(legalCase, answer) {
  const open = make("button", "", allOpen ? "Close all" : "Open all");
  open.type = "button";
  open.addEventListener("click", toggleAll);
  const children = new Map(legalCase.issues.map((issue) => [issue.id, []]));
  const places = new Map(legalCase.issues.map((issue, place) => [issue.id, place]));
  for (const issue of legalCase.issues) if (issue.parent !== null) children.get(issue.parent).push(issue);
  const branch = (issue) => {
    const below = children.get(issue.id);
    const node = make("li", "node", issueBox(issue, places.get(issue.id), answer));
    if (below.length) node.append(make("ul", "", ...below.map(branch)));
    return node;
  };
  const root = legalCase.issues.find((issue) => issue.parent === null);
  return make("div", "tree-pane", make("div", "pane-title", make("h4", "", "Issue tree with the judge’s rationales"), open), make("ul", "tree", branch(root)));
}

function issueBox(issue, place, answer) {
  const isRoot = issue.parent === null;
  const verdict = answer?.verdicts[place];
  const kind = answer ? outcome(verdict, isRoot) : "unjudged";
  const past = make("span", "past");
  past.title = `through the sets: ${state.data.sets.map((graded) => graded.name).join(", ")}`;
  if (state.data.sets.length > 1) {
    state.data.sets.forEach((_, set) => {
      const then = answersOf(state.case, set).find((one) => one.sample === (answer?.sample ?? 0)) ?? answersOf(state.case, set)[0];
      const sign = mark(then ? outcome(then.verdicts[place], isRoot) : "unjudged");
      if (set === state.set) sign.classList.add("now");
      past.append(sign);
    });
  }
  const summary = korean(make("span", "summary", isRoot ? "주문 · order" : issue.summary || issue.claims[0]?.[1] || ""));
  const button = make("button", "", mark(kind), make("span", "id", issue.id || "root"), summary, past);
  button.type = "button";
  const more = korean(make("dl", "more"));
  const fact = (term, ...words) => { if (words.length) more.append(make("dt", "", term), ...words.map((word) => make("dd", "", word))); };
  fact(isRoot ? "the court's order" : "the court's conclusion", issue.conclusion);
  if (issue.claims.length) {
    more.append(make("dt", "", isRoot ? "purposes of claim" : "claims"));
    for (const [claimer, content] of issue.claims) more.append(make("dd", "", make("span", "who", claimer), content));
  }
  fact("law", ...issue.law);
  more.hidden = !(allOpen || issue.id === state.issue || isRoot);
  button.setAttribute("aria-expanded", String(!more.hidden));
  button.addEventListener("click", () => {
    more.hidden = !more.hidden;
    button.setAttribute("aria-expanded", String(!more.hidden));
    state.issue = more.hidden ? null : issue.id;
    show({}, {});
  });
  const said = verdict ? verdict[2] || `(no rationale) ${WORDS[kind]}` : answer ? "The judge gave no verdict." : "No answer in this set.";
  const box = make("div", `issue ${kind}${issue.id === state.issue ? " aim" : ""}`, button, korean(make("p", "rationale", said)), more);
  return box;
}

function answerPane(answers, answer) {
  const title = make("div", "pane-title", make("h4", "", "Response"));
  const pane = make("div", "answer", title);
  if (!answer) {
    pane.append(make("p", "note", "This set has no response to the case."));
    return pane;
  }
  if (answers.length > 1) {
    const select = make("select");
    select.setAttribute("aria-label", "Sample");
    for (const one of answers) select.append(new Option(`sample ${one.sample + 1}: ${one.score ? one.score[0].toFixed(2) : "unscored"}`, one.sample));
    select.value = answer.sample;
    select.addEventListener("change", () => show({ sample: Number(select.value) }));
    title.append(select);
  }
  const [score, order, coverage, correctness] = answer.score ?? [];
  title.append(make("span", "chip", answer.score ? `score ${score.toFixed(2)}` : "unscored"));
  if (answer.finish === "length") title.append(make("span", "chip bad", "cut off"));
  if (answer.gate) title.append(make("span", "chip bad", `gate: ${answer.gate}`));
  if (answer.extra) title.append(make("span", "chip", `${answer.extra} extra issue${answer.extra > 1 ? "s" : ""}`));
  if (answer.score) pane.append(make("p", "note", `order ${order.toFixed(2)} · coverage ${coverage.toFixed(2)} · correctness ${correctness.toFixed(2)} · ${answer.text.length.toLocaleString("en")} characters`));
  if (answer.thinking) {
    const thinking = make("details", "thinking", make("summary", "", `Thinking, ${answer.thinking.length.toLocaleString("en")} characters`));
    thinking.addEventListener("toggle", () => { if (thinking.open && thinking.children.length === 1) thinking.append(korean(make("div", "prose", answer.thinking))); });
    pane.append(thinking);
  }
  pane.append(korean(make("div", "prose", answer.text || "(empty)")));
  return pane;
}

function toggleAll() {
  allOpen = !allOpen;
  showCase();
}

function move(by) {
  const place = listed.indexOf(state.case) + by;
  if (place >= 0 && place < listed.length) show({ case: listed[place], sample: 0, issue: null });
}

function startCases() {
  const options = (id, entries) => { for (const [value, words] of entries) $(id).append(new Option(words, value)); $(id).parentElement.hidden = entries.length < 3; };
  const values = (key) => [...new Set(state.data.cases.map((legalCase) => legalCase[key]).filter(Boolean))];
  const rank = ["easy", "medium", "hard"];
  options("difficulty", [["", "any"], ...values("difficulty").sort((a, b) => rank.indexOf(a) - rank.indexOf(b)).map((name) => [name, name])]);
  options("kind", [["", "any"], ...values("kind").map((name) => [name, name])]);
  options("verdict", Object.entries(VERDICTS).map(([name, [words]]) => [name, words]));
  options("sort", Object.entries(SORTS).map(([name, [words]]) => [name, words]));
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["search", "difficulty", "kind", "verdict", "sort"]) $(id).addEventListener("input", fillList);
  state.listeners.push((before) => {
    if (before.set !== state.set) fillList();
    else markCurrent();
    showCase();
  });
  fillList();
  markCurrent();
  showCase();
}
