// Light, dark or system theme. Loaded before the page is drawn, to avoid a flash.
(() => {
  "use strict";
  const root = document.documentElement;
  const order = ["auto", "light", "dark"];
  const words = { auto: "system", light: "light", dark: "dark" };
  const icons = { auto: "◐", light: "○", dark: "●" };

  const read = () => {
    try {
      return order.includes(localStorage.getItem("bursar/theme")) ? localStorage.getItem("bursar/theme") : "auto";
    } catch {
      return "auto";
    }
  };

  let theme = read();
  const apply = () => {
    if (theme === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    const button = document.getElementById("theme");
    if (!button) return;
    button.textContent = icons[theme];
    button.setAttribute("aria-label", `Theme: ${words[theme]}. Change`);
    button.title = `Theme: ${words[theme]}`;
  };

  apply();
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme")?.addEventListener("click", () => {
      theme = order[(order.indexOf(theme) + 1) % order.length];
      try {
        localStorage.setItem("bursar/theme", theme);
      } catch {
        // not stored: it lasts as long as the page
      }
      apply();
      dispatchEvent(new CustomEvent("themechange", { detail: theme }));
    });
  });
  addEventListener("storage", (event) => {
    if (event.key !== "bursar/theme") return;
    theme = read();
    apply();
    dispatchEvent(new CustomEvent("themechange", { detail: theme }));
  });
})();
