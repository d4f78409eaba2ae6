// What happens when the page opens, and at the keyboard.

function setTheme(theme) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = theme ?? (dark ? "dark" : "light");
  drawAll();
}

function showSet() {
  const { name } = state.data.sets[state.set];
  $("set").value = state.set;
  $("set").setAttribute("aria-valuetext", name);
  $("set-name").textContent = name;
  for (const label of document.querySelectorAll(".which")) label.textContent = name;
  for (const part of document.querySelectorAll(".for-set")) part.hidden = Number(part.dataset.set) !== state.set;
  for (const row of document.querySelectorAll("tr[data-row]")) row.classList.toggle("shown", Number(row.dataset.row) === state.set);
}

function onKey(event) {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range";
  if (event.key === "Escape" && isTyping) event.target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const last = state.data.sets.length - 1;
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    ArrowRight: () => show({ set: Math.min(state.set + 1, last) }),
    ArrowLeft: () => show({ set: Math.max(state.set - 1, 0) }),
    e: toggleAll,
    "/": () => $("search").focus(),
    "?": () => $("keys").showModal(),
  };
  if (!actions[event.key] || (event.target.type === "range" && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  actions[event.key]();
}

async function start() {
  setTheme();
  if (!("DecompressionStream" in window)) {
    $("loading").textContent = "This browser is too old to unpack the cases (it lacks DecompressionStream).";
    return;
  }
  state.data = JSON.parse(await unpacked("data"));
  state.set = state.data.sets.length - 1;
  const linked = readAddress();
  Object.assign(state, linked ?? {});
  $("loading").hidden = true;
  $("browser").hidden = false;
  performance.mark("unpacked");
  startCases();
  performance.mark("cases shown");
  state.listeners.push(showSet);
  showSet();
  state.addressed = linked !== null;
  $("set").addEventListener("input", () => show({ set: Number($("set").value) }));
  for (const row of document.querySelectorAll("tr[data-row]")) row.addEventListener("click", () => show({ set: Number(row.dataset.row) }));
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => {
    const place = readAddress();
    if (place) { state.addressed = true; show(place); $("cases").scrollIntoView(); }
  });
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  $("help").addEventListener("click", () => $("keys").showModal());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme());
  let themeOnScreen = null;
  addEventListener("beforeprint", () => { themeOnScreen = document.documentElement.dataset.theme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(themeOnScreen));
  if (linked) $("cases").scrollIntoView();
  await new Promise((resolve) => setTimeout(resolve)); // the cases first, then the charts
  await startCharts();
  performance.mark("charts drawn");
  document.documentElement.dataset.ready = "true";
  if (linked) $("cases").scrollIntoView();
}

start();
