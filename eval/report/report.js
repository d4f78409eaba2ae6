"use strict";
// What all parts of the page share: the data, the one state (which set, which case), and how to make elements.
// Text of policies and judges reaches the page as textContent only.

const $ = (id) => document.getElementById(id);

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function decoded(coded) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(coded);
  const letters = atob(coded); // older browsers
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function unpacked(id) {
  const stream = new Blob([decoded($(id).textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const KINDS = ["right", "deduction", "decomposition", "unjudged"]; // in the order of data.outcomes
const MARKS = { right: "✓", deduction: "✗", decomposition: "○", unjudged: "?" };
const SIGNS = {
  right: "M3 8.5 6.5 12 13 4.5",
  deduction: "M4 4 12 12M12 4 4 12",
  decomposition: "M8 3.2a4.8 4.8 0 1 0 .01 0",
  unjudged: "M5.4 5.6a2.7 2.7 0 1 1 3.9 2.4q-1.3.7-1.3 2.1M8 13.2v.01",
};
const WORDS = {
  right: "covered and rightly decided",
  deduction: "covered, wrongly decided",
  decomposition: "not covered",
  unjudged: "no verdict",
};
const state = { data: null, set: 0, case: 0, sample: 0, issue: null, listeners: [] };

function outcome(verdict, isRoot) {
  if (!verdict) return "unjudged";
  const [covered, correct] = verdict;
  if (correct >= 0.5 && (covered >= 0.5 || isRoot)) return "right";
  return covered >= 0.5 ? "deduction" : "decomposition";
}

// Drawn, not typed: fonts disagree on the width of such signs.
function mark(kind) {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", SIGNS[kind]);
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.append(path);
  const sign = make("i", `mark ${kind}`, drawing);
  sign.title = WORDS[kind];
  sign.setAttribute("role", "img");
  sign.setAttribute("aria-label", WORDS[kind]);
  return sign;
}

// Every change of state goes through here, so that the slider, the tables, the charts, the case and the address agree.
function show(change, { push = false } = {}) {
  const before = { set: state.set, case: state.case };
  Object.assign(state, change);
  for (const listener of state.listeners) listener(before);
  const { data } = state;
  const address = new URLSearchParams({ case: data.cases[state.case].id, set: data.sets[state.set].name });
  if (state.sample) address.set("sample", state.sample);
  if (state.issue !== null) address.set("issue", state.issue);
  const place = `#${address}`;
  try {
    if (push) history.pushState(null, "", place);
    else if (state.addressed) history.replaceState(null, "", place);
  } catch { /* a page within a frame may not write its address */ }
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  if (!address.has("case")) return null;
  const found = state.data.cases.findIndex((legalCase) => legalCase.id === address.get("case"));
  const set = state.data.sets.findIndex((graded) => graded.name === address.get("set"));
  return {
    case: Math.max(found, 0),
    set: set < 0 ? state.set : set,
    sample: Number(address.get("sample")) || 0,
    issue: address.get("issue"),
  };
}

function answersOf(place, set = state.set) {
  return state.data.answers[place][set];
}

function meanOf(place, set, column) {
  const scores = answersOf(place, set).map((answer) => answer.score).filter(Boolean);
  return scores.length ? scores.reduce((sum, score) => sum + score[column], 0) / scores.length : null;
}

function countKinds(place, set) {
  const counts = { right: 0, deduction: 0, decomposition: 0, unjudged: 0 };
  const { issues } = state.data.cases[place];
  for (const answer of answersOf(place, set)) {
    answer.verdicts.forEach((verdict, i) => {
      if (issues[i].id !== "") counts[outcome(verdict, false)]++;
    });
  }
  return counts;
}

function sharesBar(place, set) {
  const counts = countKinds(place, set);
  const bar = make("span", "shares");
  for (const kind of KINDS) {
    if (!counts[kind]) continue;
    const piece = make("i", kind);
    piece.style.setProperty("--n", counts[kind]);
    bar.append(piece);
  }
  bar.title = KINDS.filter((kind) => counts[kind]).map((kind) => `${counts[kind]} ${WORDS[kind]}`).join(", ");
  return bar;
}

function signed(value, digits = 2) {
  return `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(digits)}`;
}
