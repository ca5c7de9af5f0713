// Two things that a frame in Airflow's page needs, and nothing else.
"use strict";

// Follow the theme that was chosen in Airflow, which may differ from the system's.
const outer = (() => {
  try {
    return window.parent !== window && window.parent.document.documentElement;
  } catch {
    return null;
  }
})();

function followTheme() {
  const chosen = ["dark", "light"].find((name) => outer.classList.contains(name));
  if (chosen) document.documentElement.dataset.theme = chosen;
}

if (outer) {
  followTheme();
  new MutationObserver(followTheme).observe(outer, { attributes: true, attributeFilter: ["class"] });
}

// The frame may not replace the page around it, and Airflow inside Airflow helps nobody: hand the address over.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-airflow]");
  if (!link || !outer || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  window.parent.history.pushState(null, "", link.href);
  window.parent.dispatchEvent(new PopStateEvent("popstate", { state: null }));
});
