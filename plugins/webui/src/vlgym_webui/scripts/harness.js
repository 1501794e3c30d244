// Runs in a world of its own, which the page's scripts cannot reach or change: it finds, measures and reads elements.
(() => {
  "use strict";
  const nodes = new WeakMap();
  let serial = 0;
  const number = (element) => {
    if (!nodes.has(element)) nodes.set(element, (serial += 1));
    return nodes.get(element);
  };
  const digest = (text) => {
    let high = 0xdeadbeef, low = 0x41c6ce57;
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      high = Math.imul(high ^ code, 2654435761);
      low = Math.imul(low ^ code, 1597334677);
    }
    return (high >>> 0).toString(16) + "-" + (low >>> 0).toString(16) + "-" + text.length.toString(16);
  };
  // A form's properties may be replaced by its inputs of that name, so nothing is taken for a string unseen.
  const string = (value) => (typeof value === "string" ? value : "");
  const displayed = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  // Where a pointer has to go to reach the first displayed element of a selector, or why it cannot.
  const locate = (selector) => {
    const element = [...document.querySelectorAll(selector)].find(displayed);
    if (!element) return { problem: document.querySelector(selector) ? "hidden" : "not_found" };
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const box = element.getBoundingClientRect();
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    if (!(box.width > 0 && box.height > 0)) return { problem: "hidden" };
    const hit = document.elementFromPoint(x, y);
    const labels = element.labels instanceof NodeList ? [...element.labels] : [];
    const near = hit && (hit === element || element.contains(hit) || labels.some((label) => label.contains(hit)));
    return near ? { x, y } : { problem: "covered" };
  };

  // Every displayed element of the body as a row of the element table.
  const read = (properties, most, annotated) => {
    const where = location.origin;
    if (!document.body) return { where, rows: [], left_out: 0 };
    const all = [...document.body.querySelectorAll("*")];
    const inside = new Map();
    for (let i = all.length - 1; i >= 0; i -= 1) {
      const parent = all[i].parentElement;
      inside.set(parent, (inside.get(parent) || 0) + (inside.get(all[i]) || 0) + 1);
    }
    const rows = [];
    let left_out = 0;
    for (const element of all) {
      const box = element.getBoundingClientRect();
      if (!(box.width * box.height > 0.1) || !displayed(element)) continue;
      if (rows.length >= most) { left_out += 1; continue; }
      const computed = getComputedStyle(element);
      const styles = {};
      for (const name of properties) styles[name] = computed.getPropertyValue(name);
      styles.text = string(element.innerText).trim().replace(/\s+/g, " ").slice(0, 2000);
      styles.class = string(element.getAttribute("class")).trim();
      styles.placeholder = string(element.placeholder);
      styles.value = string(element.value).slice(0, 2000);
      styles.src = string(element.currentSrc) || string(element.src);
      styles.type = string(element.type);
      rows.push({
        node: number(element), tag: element.localName, displayed: true, descendants: inside.get(element) || 0,
        box: [box.left + scrollX, box.top + scrollY, box.width, box.height].map((value) => Math.round(value * 1000) / 1000),
        styles, html: annotated ? digest(element.outerHTML) : "",
        filter_by: annotated ? (element.dataset && element.dataset.filterBy || "").trim() : "",
        eval_by: annotated ? (element.dataset && element.dataset.evalby || "").split("|").map((m) => m.trim()).filter(Boolean) : [],
      });
    }
    return { where, rows, left_out };
  };
  globalThis.vlgymHarness = { locate, read };
})();
