// What the pages do by themselves: light or dark, the menu on narrow screens, the search results' box.
(function () {
  "use strict";
  var root = document.documentElement;
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  document.querySelector(".theme").addEventListener("click", function () {
    var now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch (none) { /* it lasts for this page, then */ }
  });

  var menu = document.querySelector(".menu");
  menu.addEventListener("click", function () {
    var open = document.body.classList.toggle("menu-open");
    menu.setAttribute("aria-expanded", String(open));
  });

  var query = document.getElementById("mkdocs-search-query");
  var results = document.getElementById("mkdocs-search-results");
  function fold() { results.hidden = query.value.length < 3; }
  query.addEventListener("input", fold);
  query.addEventListener("focus", fold);
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { results.hidden = true; query.blur(); }
    if (event.key === "/" && document.activeElement.tagName !== "INPUT") { event.preventDefault(); query.focus(); }
  });
  document.addEventListener("click", function (event) {
    if (!event.target.closest(".search")) { results.hidden = true; }
  });

  // Wide tables scroll by themselves, so that the page does not.
  document.querySelectorAll("main table").forEach(function (table) {
    if (table.closest(".scroll") || table.closest(".highlighttable")) { return; }
    var box = document.createElement("div");
    box.className = "scroll";
    table.replaceWith(box);
    box.appendChild(table);
  });

  // The heading that is being read, in the list beside it.
  var links = new Map();
  document.querySelectorAll(".contents a").forEach(function (link) { links.set(link.hash.slice(1), link); });
  if (links.size && "IntersectionObserver" in window) {
    var watch = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (!entry.isIntersecting) { return; }
        links.forEach(function (link) { link.classList.remove("here"); });
        links.get(entry.target.id).classList.add("here");
      });
    }, { rootMargin: "-70px 0px -70% 0px" });
    links.forEach(function (_, id) { var heading = document.getElementById(id); if (heading) { watch.observe(heading); } });
  }
})();
