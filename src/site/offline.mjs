// Keeps the files of the page in the browser: without a network it loads again as it was. With one, what is served counts.
const KEPT = "mantile";
const FILES = "{{ files }}".split(" ");

addEventListener("install", (event) => {
  const kept = caches.open(KEPT).then((cache) => cache.addAll(["./", ...FILES]));
  event.waitUntil(kept.then(() => skipWaiting()));
});

addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  const { request } = event;
  const place = new URL(request.url);
  const own = place.href.startsWith(registration.scope) && ["", ...FILES].includes(place.href.slice(registration.scope.length).replace(/[?#].*/, ""));
  if (request.method === "GET" && own) event.respondWith(served(request));
});

async function served(request) {
  const cache = await caches.open(KEPT);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (fault) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw fault;
  }
}
