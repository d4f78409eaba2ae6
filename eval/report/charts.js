// The curves, drawn by Vega-Lite in the colours of the page.

const PANELS = ["order", "coverage", "correctness", "score"];
const LINES = ["#2b6cb0", "#d97706", "#0f8a6a", "#a0439b", "#7a5c3e", "#c43d5b", "#4a5568", "#0891b2"];
const LINES_DARK = ["#7fb2f0", "#f5b04d", "#4fd1a5", "#dd8fdc", "#c9a37c", "#f28aa0", "#b8bfca", "#5fd0e4"];
const GROUPINGS = {
  all: "all cases", difficulty: "by difficulty", kind: "by kind of case", depth: "by depth of the issue",
  place: "by place in the tree", length: "by length of the answer", truncation: "by truncation",
};
const views = new Map();

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function chartConfig() {
  const [soft, line, font] = [colour("soft"), colour("line"), colour("sans")];
  const axis = { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal", titlePadding: 6, labelPadding: 5, ticks: false };
  return { font, background: "transparent", view: { stroke: null }, axis, text: { font, color: colour("ink") }, legend: { labelColor: soft, labelFontSize: 12, titleColor: soft } };
}

// One chart in its element. Charts name the set of each mark in `set`, so that a click can show it, and the set that
// is shown in the parameter `shown`, so that they follow the slider without being drawn anew.
async function draw(element, spec) {
  views.get(element)?.finalize();
  const whole = {
    ...spec, width: "container", height: "container", autosize: { type: "fit", contains: "padding" }, config: chartConfig(),
    params: [{ name: "shown", value: state.set }],
  };
  const dark = document.documentElement.dataset.theme === "dark";
  const { view } = await window.vegaEmbed(element, whole, { actions: false, renderer: "svg", ast: true, tooltip: { theme: dark ? "dark" : "light" } });
  views.set(element, view);
  view.addEventListener("click", (_, item) => { if (item?.datum?.set !== undefined) show({ set: item.datum.set }); });
}

function steps() {
  const { sets } = state.data;
  const hasSteps = sets.length > 1 && sets.every((graded) => graded.step !== null);
  return { hasSteps, x: sets.map((graded) => (hasSteps ? graded.step : graded.name)) };
}

function groupNames(grouping) {
  if (grouping === "all") return ["all cases"];
  return [...new Set(state.data.sets.flatMap((graded) => graded.slices.filter((cut) => cut.by === grouping).map((cut) => cut.name)))];
}

function points(part, grouping) {
  const { x } = steps();
  return state.data.sets.flatMap((graded, set) => {
    const cuts = grouping === "all" ? [{ name: "all cases", parts: graded.parts }] : graded.slices.filter((cut) => cut.by === grouping);
    return cuts.filter((cut) => cut.parts[part]).map((cut) => {
      const [value, low, high] = cut.parts[part];
      return { set, name: graded.name, x: x[set], group: cut.name, value, low, high, interval: `${low.toFixed(2)} to ${high.toFixed(2)}` };
    });
  });
}

function drawCurves() {
  const grouping = $("grouping").value;
  const names = groupNames(grouping);
  const palette = names.length === 1 ? [colour("accent")] : document.documentElement.dataset.theme === "dark" ? LINES_DARK : LINES;
  const range = names.map((_, i) => palette[i % palette.length]);
  $("legend").replaceChildren(...(names.length > 1 ? names : []).map((name, i) => {
    const swatch = make("i");
    swatch.style.setProperty("--swatch", range[i]);
    return make("li", "", swatch, name);
  }));
  const parts = PANELS.filter((part) => points(part, grouping).length);
  $("panels").replaceChildren(...parts.map((part) => make("div", "", make("h3", "", part), make("div", "chart"))));
  return Promise.all(parts.map((part, i) => draw($("panels").children[i].lastChild, curve(points(part, grouping), names, range, part === "score" ? 10 : 1))));
}

function curve(values, names, range, top) {
  const { hasSteps, x } = steps();
  const at = { field: "x", type: hasSteps ? "quantitative" : "nominal", sort: null, title: hasSteps ? "step" : null };
  if (hasSteps) at.scale = { zero: false, nice: false, padding: 8 };
  at.axis = hasSteps ? { values: x.length < 9 ? x : undefined, format: "d", labelOverlap: "greedy", labelSeparation: 4 } : { labelAngle: x.length > 2 ? -30 : 0, labelLimit: 110 };
  const y = (field) => ({ field, type: "quantitative", title: null, scale: { domain: [0, top] }, axis: { tickCount: 5 } });
  const color = { field: "group", type: "nominal", scale: { domain: names, range }, legend: null };
  const apart = hasSteps ? {} : { xOffset: { field: "group", sort: null } };
  const tooltip = [{ field: "name", title: "set" }, ...(names.length > 1 ? [{ field: "group", title: "group" }] : []), { field: "value", format: ".2f" }, { field: "interval", title: "95 %" }];
  const band = hasSteps
    ? { mark: { type: "area", opacity: names.length > 3 ? 0.1 : 0.17 }, encoding: { x: at, y: y("low"), y2: { field: "high" }, color } }
    : { mark: { type: "rule", strokeWidth: 2, opacity: 0.6 }, encoding: { x: at, ...apart, y: y("low"), y2: { field: "high" }, color } };
  const line = { mark: { type: "line", strokeWidth: 2.5 }, encoding: { x: at, y: y("value"), color } };
  const dot = {
    mark: { type: "point", filled: true, opacity: 1, cursor: "pointer", stroke: colour("paper"), strokeWidth: 1.5 },
    encoding: { x: at, ...apart, y: y("value"), color, tooltip, size: { condition: { test: "datum.set == shown", value: 130 }, value: 60 } },
  };
  const shown = { transform: [{ filter: "datum.set == shown" }], mark: { type: "rule", strokeDash: [2, 4], color: colour("soft"), strokeWidth: 1 }, encoding: { x: at } };
  return { data: { values }, layer: hasSteps ? [band, shown, line, dot] : [band, dot] };
}

function drawPath() {
  const values = state.data.sets.map((graded, set) => ({ graded, set })).filter(({ graded }) => graded.parts.coverage).map(({ graded, set }) => {
    const [[x, left, right], [y, low, high]] = [graded.parts.coverage, graded.parts.correctness];
    return { set, name: graded.name, label: graded.step === null ? graded.name : `${graded.step}`, x, left, right, y, low, high };
  });
  const axis = (field, title) => ({ field, type: "quantitative", title, scale: { zero: false, nice: true }, axis: { tickCount: 6 } });
  const [x, y] = [axis("x", "coverage"), axis("y", "correctness")];
  const bar = { type: "rule", color: colour("accent"), opacity: 0.35 };
  const isRun = values.every((value) => state.data.sets[value.set].step !== null);
  return draw($("path-chart"), {
    data: { values },
    layer: [
      { mark: bar, encoding: { x: axis("left", "coverage"), x2: { field: "right" }, y } },
      { mark: bar, encoding: { y: axis("low", "correctness"), y2: { field: "high" }, x } },
      ...(isRun ? [{ mark: { type: "line", color: colour("accent"), strokeWidth: 2 }, encoding: { x, y, order: { field: "set" } } }] : []),
      {
        mark: { type: "point", filled: true, opacity: 1, color: colour("accent"), cursor: "pointer", stroke: colour("surface"), strokeWidth: 1.5 },
        encoding: { x, y, size: { condition: { test: "datum.set == shown", value: 190 }, value: 70 }, tooltip: [{ field: "name", title: "set" }, { field: "x", title: "coverage", format: ".2f" }, { field: "y", title: "correctness", format: ".2f" }] },
      },
      { mark: { type: "text", align: "left", dx: 8, dy: -9, fontSize: 11 }, encoding: { x, y, text: { field: "label" } } },
    ],
  });
}

function drawOutcomes() {
  const { sets, outcomes } = state.data;
  const whole = 55 / $("outcome-chart").clientWidth; // the share that a label fits into
  const values = sets.flatMap((graded, set) => {
    let from = 0;
    return KINDS.map((kind, i) => {
      const share = graded.outcomes[i]?.[0] ?? 0;
      from += share;
      return { set, name: graded.name, kind, words: outcomes[i], share, from: from - share, to: from, middle: from - share / 2, label: share > whole ? `${MARKS[kind]} ${Math.round(100 * share)} %` : share > whole / 3 ? MARKS[kind] : "" };
    });
  }).filter((value) => value.share > 0);
  const y = { field: "name", type: "nominal", sort: null, title: null, axis: { domain: false, labelLimit: 140 }, scale: { paddingInner: 0.3 } };
  const x = (field) => ({ field, type: "quantitative", title: null, axis: { format: ".0%", tickCount: 5 }, scale: { domain: [0, 1] } });
  const ink = document.documentElement.dataset.theme === "dark" ? "#14161a" : "#ffffff";
  return draw($("outcome-chart"), {
    data: { values },
    layer: [
      {
        mark: { type: "bar", cornerRadius: 2, cursor: "pointer", stroke: colour("surface"), strokeWidth: 1.5 },
        encoding: {
          y, x: x("from"), x2: { field: "to" },
          color: { field: "kind", type: "nominal", legend: null, scale: { domain: KINDS, range: [colour("right"), colour("deduction"), colour("line"), colour("unjudged")] } },
          tooltip: [{ field: "name", title: "set" }, { field: "words", title: "issues" }, { field: "share", format: ".1%" }],
        },
      },
      { mark: { type: "text", fontSize: 11, fontWeight: 600 }, encoding: { y, x: x("middle"), text: { field: "label" }, color: { condition: { test: "datum.kind == 'decomposition'", value: colour("ink") }, value: ink } } },
    ],
  });
}

function drawPhases() {
  const { phases, bars } = state.data;
  if (!bars.length) return null; // no log of a run: no place for it either
  const names = Object.keys(phases);
  const values = bars.flatMap(({ first, last, seconds }) => {
    const whole = seconds.reduce((sum, part) => sum + part, 0);
    const edge = 0.5 - 0.05 * (last - first + 1);
    let from = 0;
    return names.map((phase, i) => {
      from += seconds[i];
      return { phase, steps: first === last ? `${first}` : `${first}–${last}`, left: first - edge, right: last + edge, seconds: seconds[i], share: seconds[i] / whole, from: from - seconds[i], to: from };
    });
  });
  const x = { field: "left", type: "quantitative", title: "step", scale: { zero: false, nice: false }, axis: { format: "d", tickMinStep: 1, grid: false } };
  const y = { field: "from", type: "quantitative", title: "seconds a step", axis: { tickCount: 5 } };
  return draw($("phase-chart"), {
    data: { values },
    mark: "rect",
    encoding: {
      x, x2: { field: "right" }, y, y2: { field: "to" },
      color: { field: "phase", type: "nominal", legend: null, scale: { domain: names, range: Object.values(phases) } },
      tooltip: [{ field: "steps" }, { field: "phase" }, { field: "seconds", title: "seconds a step", format: ".2f" }, { field: "share", format: ".1%" }],
    },
  });
}

function drawAll() {
  return window.vegaEmbed ? Promise.all([drawCurves(), drawPath(), drawOutcomes(), drawPhases()]) : null;
}

async function startCharts() {
  const script = document.createElement("script");
  script.textContent = await unpacked("vega");
  document.head.append(script);
  const kinds = new Set(state.data.sets.flatMap((graded) => graded.slices.map((cut) => cut.by)));
  for (const [name, words] of Object.entries(GROUPINGS)) {
    if (name === "all" || kinds.has(name)) $("grouping").append(new Option(words, name));
  }
  $("grouping").addEventListener("change", drawCurves);
  await drawAll();
  state.listeners.push((before) => {
    if (before.set !== state.set) for (const view of views.values()) view.signal("shown", state.set).runAsync();
  });
}
