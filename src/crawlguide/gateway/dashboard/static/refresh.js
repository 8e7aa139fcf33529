"use strict";
// Puts a newer <main> in the place of the old one every two seconds, unless nobody looks or somebody selects text.
// Without it the page reloads itself.

const EVERY_MS = 2000;

async function renew() {
  const reply = await fetch(location.href, { cache: "no-store" });
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const newer = page.querySelector("main");
  if (!newer) throw new Error("no page");
  const focused = document.activeElement?.closest("main a")?.getAttribute("href");
  document.querySelector("main").replaceWith(document.adoptNode(newer));
  document.querySelector("nav").replaceWith(document.adoptNode(page.querySelector("nav")));
  document.title = page.title;
  if (focused) document.querySelector(`main a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

async function tick() {
  if (!document.hidden && getSelection().isCollapsed) {
    try {
      await renew();
      document.body.classList.remove("lost");
    } catch {
      document.body.classList.add("lost");
    }
  }
  setTimeout(tick, EVERY_MS);
}

setTimeout(tick, EVERY_MS);
