// Runs in every document before the page's own scripts. Makes time and chance of the page deterministic and keeps dialogs, pop-ups,
// workers, downloads and ways out from having an effect; all are counted. `__NAME__` is replaced by a name that is new for each browser.
(() => {
  "use strict";
  const above = (() => { try { return window === window.top ? null : window.top["__NAME__"].counts; } catch { return null; } })();
  const counts = above || { dialog: 0, popup: 0, worker: 0, download: 0, network: 0, script_error: 0, timer_storm: 0, left_page: 0 };
  const natives = {
    finish: Animation.prototype.finish,
    pause: Animation.prototype.pause,
    frame: window.requestAnimationFrame.bind(window),
    later: window.setTimeout.bind(window),
    animations: Document.prototype.getAnimations.bind(document),
    Promise,
    floor: Math.floor,
    stringify: JSON.stringify,
  };
  const channel = new MessageChannel();
  const waiting = [];
  channel.port1.onmessage = () => { const go = waiting.shift(); if (go) go(); };
  const breathe = () => new natives.Promise((go) => { waiting.push(go); channel.port2.postMessage(0); });
  const painted = () => new natives.Promise((go) => { natives.frame(() => natives.frame(() => go())); natives.later(go, 200); });

  // ---- time: a clock that moves only when the harness says so -----------------------------------------------------
  const EPOCH = Date.UTC(2024, 0, 15, 12, 0, 0);
  const FRAME = 1000 / 60;
  const MOST_CALLS = 20000;
  let now = 0;
  let serial = 0;
  const timers = new Map();
  const set = (callback, delay, args, every) => {
    if (typeof callback !== "function") { counts.script_error += 1; return 0; }
    const wait = Math.max(Number(delay) || 0, every ? 1 : 0);
    serial += 1;
    timers.set(serial, { time: now + wait, wait, callback, args, every });
    return serial;
  };
  const clear = (id) => { timers.delete(Number(id)); };
  window.setTimeout = (callback, delay, ...args) => set(callback, delay, args, false);
  window.setInterval = (callback, delay, ...args) => set(callback, delay, args, true);
  window.clearTimeout = clear;
  window.clearInterval = clear;
  window.requestAnimationFrame = (callback) => set(() => callback(now), FRAME - (now % FRAME) || FRAME, [], false);
  window.cancelAnimationFrame = clear;
  window.requestIdleCallback = (callback) => set(() => callback({ didTimeout: false, timeRemaining: () => 50 }), 1, [], false);
  window.cancelIdleCallback = clear;
  performance.now = () => now;
  const RealDate = Date;
  const ClockDate = function (...args) {
    if (!new.target) return new RealDate(EPOCH + now).toString();
    return args.length ? new RealDate(...args) : new RealDate(EPOCH + now);
  };
  ClockDate.prototype = RealDate.prototype;
  ClockDate.now = () => natives.floor(EPOCH + now);
  ClockDate.parse = RealDate.parse;
  ClockDate.UTC = RealDate.UTC;
  RealDate.prototype.constructor = ClockDate;
  window.Date = ClockDate;

  // ---- chance ------------------------------------------------------------------------------------------------------
  let seed = 0x9e3779b9;
  const draw = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  Math.random = draw;
  if (window.crypto) {
    Crypto.prototype.getRandomValues = function (array) {
      for (let i = 0; i < array.length; i += 1) array[i] = natives.floor(draw() * 4294967296);
      return array;
    };
  }

  // ---- what a page may not do --------------------------------------------------------------------------------------
  const refuse = (kind, answer) => () => { counts[kind] += 1; return answer; };
  window.alert = refuse("dialog", undefined);
  window.confirm = refuse("dialog", true);
  window.prompt = (text, value) => { counts.dialog += 1; return value === undefined ? "" : value; };
  window.print = refuse("dialog", undefined);
  window.open = refuse("popup", null);
  const Refused = function () { counts.worker += 1; throw new DOMException("workers are switched off", "SecurityError"); };
  window.Worker = Refused;
  window.SharedWorker = Refused;
  const registration = () => { counts.worker += 1; return natives.Promise.reject(new DOMException("service workers are switched off", "SecurityError")); };
  Object.defineProperty(Navigator.prototype, "serviceWorker", {
    configurable: true,
    value: Object.freeze({ register: registration, getRegistrations: () => natives.Promise.resolve([]), addEventListener() {}, controller: null }),
  });
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"]) {
    if (name in window) window[name] = function () { counts.network += 1; throw new DOMException("no network", "SecurityError"); };
  }
  const click = HTMLElement.prototype.click;
  HTMLElement.prototype.click = function () {
    if (this instanceof HTMLAnchorElement && this.hasAttribute("download")) { counts.download += 1; return; }
    click.call(this);
  };
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[download]") : null;
    if (link) { counts.download += 1; event.preventDefault(); }
  }, true);
  document.addEventListener("securitypolicyviolation", (event) => {
    counts[event.effectiveDirective === "worker-src" ? "worker" : "network"] += 1;
  }, true);
  window.addEventListener("error", (event) => {
    if (event instanceof ErrorEvent) counts.script_error += 1;
  }, true);
  window.addEventListener("unhandledrejection", () => { counts.script_error += 1; });

  // A page that leaves is lost by that. It is held back, so that this is known from the event, whatever the machine is doing, and not
  // from a race between the new document and the reading of the old one; nor has the browser to start a process for an error page.
  const home = location.origin;
  const Address = URL;
  const Form = HTMLFormElement;
  if (!above) {
    navigation.addEventListener("navigate", (event) => {
      const { protocol, origin } = new Address(event.destination.url);
      const source = event.sourceElement;
      // Other schemes (file, data, mailto) and forms sent elsewhere lead nowhere: the browser refuses them and the page stays.
      const form = source instanceof Form || Boolean(source && source.form);
      const leaves = protocol === "http:" || protocol === "https:" || protocol === "about:";
      if (leaves && !form && origin !== home) { counts.left_page += 1; event.preventDefault(); }
    });
  }

  // ---- what the harness calls --------------------------------------------------------------------------------------
  const settle = async () => {
    for (let round = 0; round < 4; round += 1) {
      const moving = natives.animations().filter((animation) => animation.playState !== "finished" && animation.playState !== "paused");
      if (!moving.length) break;
      for (const animation of moving) {
        try {
          natives.finish.call(animation);
        } catch {
          natives.pause.call(animation); // an endless animation is shown at its beginning
          animation.currentTime = 0;
        }
      }
      await breathe();
    }
    await painted();
  };
  const advance = async (duration) => {
    const end = now + duration;
    for (let calls = 0; ; calls += 1) {
      let next = null;
      for (const [id, timer] of timers) {
        if (timer.time <= end && (next === null || timer.time < next.timer.time)) next = { id, timer };
      }
      if (next === null) break;
      if (calls >= MOST_CALLS) { counts.timer_storm += 1; timers.clear(); break; }
      now = Math.max(now, next.timer.time);
      if (next.timer.every) next.timer.time = now + next.timer.wait;
      else timers.delete(next.id);
      try { next.timer.callback(...next.timer.args); } catch { counts.script_error += 1; }
      await breathe();
    }
    now = end;
  };
  Object.defineProperty(window, "__NAME__", {
    value: Object.assign(async (duration) => {
      await breathe();
      await settle();
      await advance(duration);
      await settle();
      return natives.stringify(counts);
    }, { counts }),
  });
})();
