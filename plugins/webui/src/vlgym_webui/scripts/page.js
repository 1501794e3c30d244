// Runs in every document before the page's own scripts, in the page's own world, and leaves nothing of ours there.
// The browser's virtual time gives the page its clock (Date, Intl, Temporal, timers, lastModified), V8 its random
// numbers, the emulation its time zone and language. This holds back what these do not reach: times of frames and of
// the network, which come from other processes, tasks that cost no virtual time, and names that are new every time.
(() => {
  "use strict";
  const later = window.setTimeout.bind(window);
  const forget = window.clearTimeout.bind(window);
  const call = Function.prototype.call.bind(Function.prototype.call);
  const clock = performance.now.bind(performance);
  const { floor, round } = Math;
  const now = () => round(clock());
  const define = (owner, name, value) => {
    if (owner && name in owner) Object.defineProperty(owner, name, { value, writable: true, configurable: true });
  };
  const answer = (owner, name, get) => {
    if (owner && name in owner) Object.defineProperty(owner, name, { get, set: undefined, enumerable: true, configurable: true });
  };
  const getter = (owner, name) => Object.getOwnPropertyDescriptor(owner, name).get;

  // Frames: they are drawn in real time; a page is told of sixty in a second of its own.
  const FRAME = 1000 / 60;
  const frame = (callback) => {
    const next = Math.ceil((floor((now() + 1) / FRAME) + 1) * FRAME);
    return later(() => callback(next), next - now());
  };
  define(window, "requestAnimationFrame", frame);
  define(window, "webkitRequestAnimationFrame", frame);
  define(window, "cancelAnimationFrame", forget);
  define(window, "webkitCancelAnimationFrame", forget);
  define(window, "requestIdleCallback", (callback) => later(() => callback({ didTimeout: false, timeRemaining: () => 50 }), 1));
  define(window, "cancelIdleCallback", forget);
  answer(AnimationTimeline.prototype, "currentTime", () => now());
  answer(Animation.prototype, "startTime", () => null);
  const seen = new WeakMap();
  answer(Event.prototype, "timeStamp", function () {
    if (!seen.has(this)) seen.set(this, now());
    return seen.get(this);
  });

  // The performance clock: Chromium blurs it differently in each process.
  const Timing = Performance.prototype;
  const origin = round(performance.timeOrigin);
  define(Timing, "now", () => now());
  answer(Timing, "timeOrigin", () => origin);
  answer(Timing, "memory", () => undefined);
  answer(Timing, "timing", () => undefined);
  answer(Timing, "navigation", () => undefined);
  answer(Timing, "eventCounts", () => undefined);
  define(Timing, "toJSON", () => ({ timeOrigin: origin }));
  const own = (entries) => entries.filter((entry) => entry instanceof PerformanceMark || entry instanceof PerformanceMeasure);
  for (const name of ["getEntries", "getEntriesByName", "getEntriesByType"]) {
    const list = Timing[name];
    define(Timing, name, function (...wanted) { return own(call(list, this, ...wanted)); });
  }
  for (const name of ["startTime", "duration"]) {
    const read = getter(PerformanceEntry.prototype, name);
    answer(PerformanceEntry.prototype, name, function () { return round(call(read, this)); });
  }
  define(PerformanceObserver.prototype, "observe", () => undefined);

  // Tasks that cost no virtual time would run as often as the machine is fast: each message takes a millisecond.
  const delay = (owner, name) => {
    const send = owner && owner[name];
    if (send) define(owner, name, function (...message) { later(() => call(send, this, ...message), 1); });
  };
  delay(window, "postMessage");
  delay(MessagePort.prototype, "postMessage");
  if (window.BroadcastChannel) delay(BroadcastChannel.prototype, "postMessage");
  if (window.Scheduler) {
    const post = Scheduler.prototype.postTask;
    define(Scheduler.prototype, "postTask", function (task, options = {}) {
      return call(post, this, task, { ...options, delay: Math.max(1, Number(options.delay) || 0) });
    });
    define(Scheduler.prototype, "yield", () => new Promise((go) => later(go, 1)));
  }

  // A blob is read by another process, in real time, while the page's clock runs on: here it stands still meanwhile.
  const Bytes = Uint8Array, Parts = Blob, Decoder = TextDecoder, Asking = XMLHttpRequest;
  const name_blob = URL.createObjectURL.bind(URL), forget_blob = URL.revokeObjectURL.bind(URL);
  const own_size = getter(Blob.prototype, "size"), answer_of = getter(Asking.prototype, "responseText");
  const { open, overrideMimeType, send } = Asking.prototype;
  const { charCodeAt } = String.prototype, { decode } = Decoder.prototype;
  const read_blob = (blob) => {
    const bytes = new Bytes(call(own_size, blob));  // a TypeError where it is no blob
    const address = name_blob(new Parts(["-", blob])), asking = new Asking();  // a byte order mark in front would be obeyed
    call(open, asking, "GET", address, false);
    call(overrideMimeType, asking, "text/plain; charset=x-user-defined");  // which leaves every byte in a character of its own
    try { call(send, asking); } finally { forget_blob(address); }
    const text = call(answer_of, asking);
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = call(charCodeAt, text, i + 1);
    return bytes;
  };
  const decoder = new Decoder();
  define(Blob.prototype, "text", async function () { return call(decode, decoder, read_blob(this)); });
  define(Blob.prototype, "arrayBuffer", async function () { return read_blob(this).buffer; });
  define(Blob.prototype, "bytes", async function () { return read_blob(this); });

  // Chance that V8 does not draw, and states of the machine.
  let seed = 0x9e3779b9;
  const draw = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const fill = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), "byteLength").get;
  define(Crypto.prototype, "getRandomValues", (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, call(fill, array));
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = draw();
    return array;
  });
  define(URL, "createObjectURL", undefined);
  answer(Navigator.prototype, "connection", () => undefined);
  answer(Navigator.prototype, "serviceWorker", () => undefined);
  for (const name of [
    "indexedDB", "AudioContext", "webkitAudioContext", "RTCPeerConnection",
    "webkitRTCPeerConnection", "WebTransport",
  ]) define(window, name, undefined);
})();
