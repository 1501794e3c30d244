// Statements that try to see clock, chance, machine or another episode, one a line; `say` adds words to
// the page, `show` replaces those of a name.
const words = [], named = {};
const put = () => {
  document.querySelector('p').textContent = [...words, ...Object.entries(named).flat()].join(' | ');
};
const say = (...values) => { words.push(values.join(', ')); put(); };
const show = (name, value) => { named[name] = value; put(); };

say(Intl.DateTimeFormat('en', {dateStyle: 'full', timeStyle: 'full'}).format())
say(Intl.DateTimeFormat().resolvedOptions().timeZone, Intl.DateTimeFormat().resolvedOptions().locale)
say(typeof Temporal === 'undefined' ? 'none' : Temporal.Now.instant().toString())
say(new Date().toString(), Date.now(), new (Date.bind(null))().getTime())
say(document.lastModified)
say(new File(['x'], 'x').lastModified)
say(new Event('x').timeStamp); addEventListener('click', e => say(e.timeStamp, e.isTrusted), true)
say(performance.timeOrigin, Performance.prototype.now.call(performance))
say(JSON.stringify(performance.timing), JSON.stringify(performance))
say(performance.getEntries().length); performance.mark('m'); say(performance.getEntriesByName('m')[0].startTime)
try { say(URL.createObjectURL(new Blob(['x']))) } catch (e) { say(e.name) }
say(navigator.connection ? [navigator.connection.rtt, navigator.connection.downlink] : 'none')
say(performance.memory ? performance.memory.usedJSHeapSize : 'none')
say(Math.random(), Math.random())
say(crypto.getRandomValues(new Uint32Array(2)).join())
say(typeof crypto.randomUUID === 'function' ? crypto.randomUUID() : 'none')
{ const c = new MessageChannel(); let n = 0; c.port1.onmessage = () => { n += 1; show('channel', n); c.port2.postMessage(0); }; c.port2.postMessage(0); }
{ let n = 0; addEventListener('message', () => { n += 1; show('message', n); postMessage(0, '*'); }); postMessage(0, '*'); }
{ let n = 0; (function again() { n += 1; show('timers', n); setTimeout(again, 0); })(); }
{ let n = 0; (function again(t) { n += 1; show('frames', n + ' ' + Math.round(t)); requestAnimationFrame(again); })(0); }
if (window.scheduler) { let n = 0; (function again() { n += 1; show('tasks', n); scheduler.postTask(again); })(); }
{ const begun = Date.now(); let n = 0; while (n < 300000) n += 1; say(Date.now() - begun); }
try { const w = new Worker('data:text/javascript,postMessage(Date.now())'); w.onmessage = e => say(e.data); w.onerror = () => say('refused') } catch (e) { say(e.name) }
{ const f = document.createElement('iframe'); document.body.append(f); const w = f.contentWindow; say(new w.Date().getTime(), w.performance.now(), w.Math.random(), w.crypto.getRandomValues(new w.Uint8Array(2)).join()); f.remove(); }
{ const a = document.body.animate([{opacity: 0.9}, {opacity: 1}], 3000); setTimeout(() => say(a.currentTime, document.timeline.currentTime, a.startTime, getComputedStyle(document.body).opacity), 250); }
fetch('script.js').then(r => r.text()).then(t => say('fetched', t.length > 0, performance.now()))
{ const i = new Image(); i.onload = i.onerror = e => say(e.type, Math.round(performance.now())); i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs='; }
document.fonts.ready.then(() => say('fonts'))
say(localStorage.length, sessionStorage.length, document.cookie, window.name, history.length); localStorage.a = 1; document.cookie = 'a=1; max-age=9999'; window.name = 'kept';
document.body.insertAdjacentHTML('beforeend', '<a href="#">here</a> <a href="/other">there</a>'); history.replaceState(0, '', '/other'); history.replaceState(0, '', '/');
say(screen.width, screen.height, devicePixelRatio, navigator.language, navigator.languages, document.hasFocus())
requestIdleCallback(d => say('idle', d.timeRemaining(), d.didTimeout))
{ const o = new PerformanceObserver(l => say('observed', l.getEntries().length)); try { o.observe({type: 'paint', buffered: true}) } catch (e) { say(e.name) } }
new Blob(['abc']).text().then(t => say(t, performance.now()))
