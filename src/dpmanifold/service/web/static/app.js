// What pages do beyond forms and links: the slider of a plan, and looking again for what is on its way. Pages work
// without any of it. Every number comes from the server, with its words; nothing is computed here.
"use strict";

const byId = (id) => document.getElementById(id);

// ------------------------------------------------------------------ the plan

function planner() {
  const form = byId("plan");
  const slide = byId("slide");
  if (!form || !slide) return;
  const slider = byId("slider");
  const amounts = slide.dataset.amounts.split(" ");
  let points = null;
  let latest = 0; // number of the last question sent: an answer to an older one is not shown
  let settled = form.elements.amount.value;
  let waiting = 0; // timer
  let pressed = false; // whether a button of the mouse is down

  const live = (name) => document.querySelector(`#result [data-live="${name}"]`);

  function put(name, text, value) {
    const place = live(name);
    if (!place) return;
    place.textContent = text;
    if (value !== undefined) place.dataset.value = JSON.stringify(value);
  }

  function promiseWords(amount) {
    const delta = form.elements.delta ? `, delta ${form.elements.delta.value}` : "";
    return `${slide.dataset.symbol} ${amount}${delta}`;
  }

  // What the slider is said to stand at: the amount that is typed, which need not be one of its own.
  function say() {
    const amount = form.elements.amount.value;
    const point = points && points[slider.value].amount === amount ? points[slider.value] : null;
    slider.setAttribute("aria-valuetext", point ? spoken(point) : promiseWords(amount));
  }

  function spoken(point) {
    const told = point.refused ? "cannot be kept here" : `expected error ${point.error_text}, ${point.share_text}`;
    return `${promiseWords(point.amount)}: ${told}`;
  }

  function move() {
    const amount = amounts[slider.value];
    form.elements.amount.value = amount;
    const point = points && points[slider.value];
    say();
    if (!point) return;
    put("amount", promiseWords(amount));
    put("error", point.error_text, point.error);
    put("share", point.share_text, point.of_radius);
    put("mechanism", point.mechanism);
    put("verdict", point.refused || point.verdict);
    const share = point.of_radius === null ? 0 : point.of_radius;
    const disc = live("disc");
    if (disc) disc.setAttribute("r", Math.min(share, 10) * Number(disc.dataset.scale));
    const band = live("band");
    if (band) band.setAttribute("width", Math.min(share, 1) * Number(band.dataset.scale));
  }

  // Keys move a slider step by step: only where it comes to rest is asked about.
  function settleSoon() {
    byId("content").setAttribute("aria-busy", "true");
    clearTimeout(waiting);
    waiting = setTimeout(settle, 120);
  }

  // What is being clicked is not taken away: the click would be lost.
  function released() {
    return new Promise((done) => {
      if (!pressed) done();
      else addEventListener("pointerup", () => setTimeout(done), { once: true });
    });
  }

  // The server is asked for the page of what is typed now, and what follows from it is put in place.
  async function settle() {
    clearTimeout(waiting);
    const question = ++latest;
    const asked = form.elements.amount.value;
    const query = new URLSearchParams(new FormData(form));
    const address = `${form.getAttribute("action")}?${query}`;
    const main = byId("content");
    main.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (answer.redirected) { location.assign(address); return; }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      await released();
      if (question !== latest) return;
      const parts = ["result", "cost", "below", "problem", "need"];
      if (parts.some((id) => !page.getElementById(id))) { location.assign(address); return; }
      const confirming = document.activeElement && document.activeElement.getAttribute("formaction");
      for (const id of parts) byId(id).replaceWith(document.adoptNode(page.getElementById(id)));
      if (confirming) { const again = document.querySelector("#cost [formaction]"); if (again) again.focus(); }
      const links = document.querySelectorAll("nav .choices a");
      page.querySelectorAll("nav .choices a").forEach((link, place) => {
        if (links[place]) links[place].setAttribute("href", link.getAttribute("href"));
      });
      history.replaceState(null, "", address);
      settled = asked;
      if (form.elements.amount.value !== asked) move(); // it was moved on in the meantime
      // An amount that was typed has its place on the slider, too: the nearest.
      else if (amounts[slider.value] !== asked) slider.value = page.getElementById("slider").value;
      say();
      const curve = page.getElementById("slide").dataset.curve;
      if (curve !== slide.dataset.curve) { slide.dataset.curve = curve; load(); }
    } catch { // offline: the form still works
    } finally {
      if (question === latest) main.removeAttribute("aria-busy");
    }
  }

  async function load() {
    points = null;
    const wanted = slide.dataset.curve;
    if (!wanted) return;
    try {
      const answer = await fetch(wanted);
      const found = answer.ok ? (await answer.json()).points : null;
      if (wanted !== slide.dataset.curve) return;
      points = found;
      if (points) { say(); slide.dataset.ready = "yes"; }
      // The slider may have been moved while the curve was on its way.
      if (points && form.elements.amount.value !== settled) move();
    } catch { points = null; }
  }

  slider.addEventListener("input", move);
  slider.addEventListener("change", settleSoon);
  addEventListener("pointerdown", () => { pressed = true; }, true);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = false; }, true);
  for (const control of form.elements) {
    if (control !== slider && control.name && control.type !== "hidden") control.addEventListener("change", settle);
  }
  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.hasAttribute("formaction")) {
      latest++; // the page is being left: an answer that comes now would stop that
      return;
    }
    event.preventDefault();
    settle();
  });
  slide.hidden = false;
  say();
  load();
}

// ------------------------------------------------------------------ what is on its way

function watcher() {
  const place = document.querySelector("[data-poll]");
  if (!place) return;
  const counted = place.querySelector("[data-countdown]");
  const said = place.querySelector("[data-said]");
  let seconds = place.dataset.seconds ? Number(place.dataset.seconds) : null;
  let from = performance.now();

  function left() { return seconds === null ? null : Math.max(0, seconds - (performance.now() - from) / 1000); }

  function words(time) {
    const whole = Math.ceil(time);
    if (whole < 100) return `${whole} ${whole === 1 ? "second" : "seconds"}`;
    const minutes = Math.ceil(whole / 60);
    return minutes < 100 ? `${minutes} minutes` : `${Math.ceil(whole / 3600)} hours`;
  }

  function tick() {
    if (counted && left() !== null) counted.textContent = left() > 0 ? words(left()) : "any moment now";
  }

  async function look() {
    let wait = 2000;
    try {
      const answer = await fetch(place.dataset.poll);
      if (answer.redirected || answer.status === 404) { location.reload(); return; }
      const found = answer.ok ? await answer.json() : null;
      if (found && found.state !== "pending") { location.reload(); return; }
      if (found && found.seconds !== null) { seconds = found.seconds; from = performance.now(); }
      if (said) said.textContent = "";
    } catch {
      if (said) said.textContent = "The service does not answer at the moment; the page keeps trying.";
      wait = 5000;
    }
    const time = left();
    setTimeout(look, time === null ? wait : Math.max(500, Math.min(time * 1000 + 150, 10000)));
  }

  tick();
  setInterval(tick, 500);
  setTimeout(look, left() === null ? 1500 : Math.max(400, Math.min(left() * 1000 + 150, 10000)));
}

// Picture and report come a moment after the numbers: the page is loaded again once both are there. After a minute it
// is left to whoever reads it.
function follower() {
  const place = document.querySelector("[data-follow]");
  if (!place) return;
  let looks = 30;

  async function look() {
    try {
      const answer = await fetch(place.dataset.follow);
      if (answer.redirected) return;
      if (answer.ok && (await answer.json()).complete) { location.reload(); return; }
    } catch { // it is tried again
    }
    if (--looks > 0) setTimeout(look, 2000);
  }

  setTimeout(look, 1000);
}

// ------------------------------------------------------------------ forms

// A second click while the first is on its way does nothing; the key would make it free in any case.
function once() {
  for (const form of document.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", () => {
      for (const button of form.querySelectorAll("button")) setTimeout(() => { button.disabled = true; });
    });
  }
  addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("form[data-once] button")) button.disabled = false;
  });
}

// What was refused is read out and shown first.
function problems() {
  const found = document.querySelector('main [role="alert"]');
  if (found && found.tabIndex === -1) found.focus();
}

planner();
watcher();
follower();
once();
problems();
