"""How a map looks, for the page that it is put into; and a script that keeps its middle in sight as it is enlarged.

Colours are those of the map alone, so that it looks the same on every page.
"""

STYLE = """
.geo { --geo-paper: #fbfbf9; --geo-line: #dfe0da; --geo-ink: #1a1d1f; --geo-soft: #575d61; --geo-edge: #85887f;
  --geo-4: #0b5f5a; --geo-4-ink: #ffffff; --geo-3: #7cc4bb; --geo-3-ink: #10201f; --geo-2: #d5d9d6;
  --geo-2-ink: #1a1d1f; --geo-1: #fbfbf9; --geo-right: #0b6b66; --geo-wrong: #b3261e; --geo-sign: #ffffff;
  --geo-estimate: #a83e00; --geo-truth: #5b2fb0; margin: 0; min-width: 0; container-type: inline-size; }
@media (prefers-color-scheme: dark) {
  .geo { --geo-paper: #14181a; --geo-line: #2a3134; --geo-ink: #edf0f0; --geo-soft: #a9b2b5; --geo-edge: #757f83;
    --geo-4: #67d6c8; --geo-4-ink: #08201d; --geo-3: #24726a; --geo-3-ink: #ffffff; --geo-2: #434c50;
    --geo-2-ink: #f4f6f6; --geo-1: #14181a; --geo-right: #67d6c8; --geo-wrong: #ff9c92; --geo-sign: #14181a;
    --geo-estimate: #ffb061; --geo-truth: #c9b3ff; }
}
.geo-body { display: grid; gap: .8rem; }
.geo-side { display: grid; gap: .8rem; align-content: start; }
.geo-key { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; font-size: .85rem; color: var(--geo-soft); margin: 0;
  padding: 0; list-style: none; }
@container (min-width: 44rem) {
  .geo-body { grid-template-columns: minmax(0, 40rem) minmax(13rem, 1fr); gap: 1.5rem; }
  .geo-key { flex-direction: column; }
}
.geo-key li { display: inline-flex; align-items: center; gap: .4rem; }
.geo-key svg { width: 18px; height: 18px; flex: none; overflow: visible; }
.geo-zoom { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem; align-items: center;
  font-size: .8rem; color: var(--geo-soft); }
.geo-zoom legend { float: left; padding: 0; margin-right: .2rem; }
.geo-zoom label { position: relative; cursor: pointer; }
.geo-zoom input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.geo-zoom span { display: grid; place-items: center; min-width: 2.1rem; min-height: 2.2rem; border-radius: 8px;
  border: 1px solid var(--geo-edge); background: var(--geo-paper); color: var(--geo-ink); }
.geo-zoom input:checked + span { background: var(--geo-ink); color: var(--geo-paper); border-color: var(--geo-ink); }
.geo-zoom input:focus-visible + span { outline: 3px solid var(--geo-right); outline-offset: 2px; }
.geo-frame { overflow: auto; border: 1px solid var(--geo-line); border-radius: 12px; background: var(--geo-paper);
  aspect-ratio: 4 / 3; position: relative; scrollbar-width: thin; }
.geo-map { display: block; width: 100%; aspect-ratio: 4 / 3; overflow: hidden; }
.geo:has(.geo-2:checked) .geo-map { width: 200%; }
.geo:has(.geo-4:checked) .geo-map { width: 400%; }
.geo:has(.geo-8:checked) .geo-map { width: 800%; }
.geo-map svg { overflow: visible; }
.geo-map text { font: 500 11px/1 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif;
  fill: var(--geo-soft); }
.geo-map .geo-words { paint-order: stroke; stroke: var(--geo-paper); stroke-width: 4px; stroke-linejoin: round; }
.geo-map .geo-grid { stroke: var(--geo-line); stroke-width: 1; }
.geo-map .geo-bar { stroke: var(--geo-ink); stroke-width: 2; fill: none; }
.geo-map .geo-north { fill: var(--geo-soft); }
.geo-mark circle, .geo-mark rect { stroke: var(--geo-paper); stroke-width: 1; }
.geo-mark text { font-weight: 650; text-anchor: middle; }
.geo-mark a { cursor: pointer; }
.geo .geo-mark .geo-dot { fill: var(--geo-soft); stroke: none; }
.geo-leader { stroke: var(--geo-soft); stroke-width: 1.2; }
.geo-ray { fill: var(--geo-soft); stroke: var(--geo-paper); stroke-width: 1; }
.geo .very-likely circle { fill: var(--geo-4); } .geo .very-likely text { fill: var(--geo-4-ink); }
.geo .likely circle { fill: var(--geo-3); stroke: var(--geo-edge); } .geo .likely text { fill: var(--geo-3-ink); }
.geo .unlikely circle, .geo .answer circle { fill: var(--geo-2); stroke: var(--geo-edge); stroke-width: 1; }
.geo .unlikely text, .geo .answer text { fill: var(--geo-2-ink); }
.geo .very-unlikely circle { fill: var(--geo-1); stroke: var(--geo-edge); stroke-width: 1; }
.geo .very-unlikely text { fill: var(--geo-ink); }
.geo .right circle { fill: var(--geo-right); } .geo .wrong rect { fill: var(--geo-wrong); }
.geo .right text, .geo .wrong text { fill: var(--geo-sign); }
.geo .open circle { fill: var(--geo-paper); stroke: var(--geo-edge); stroke-width: 1.5; }
.geo .estimate circle { fill: var(--geo-estimate); stroke: var(--geo-paper); stroke-width: 2; }
.geo .guess circle { fill: var(--geo-paper); stroke: var(--geo-estimate); stroke-width: 3; }
.geo .geo-circle { fill: var(--geo-estimate); fill-opacity: .13; stroke: var(--geo-estimate); stroke-width: 1.5; }
.geo .geo-circle.guess { fill-opacity: .05; stroke-dasharray: 5 4; }
.geo .truth .geo-ray { fill: var(--geo-truth); stroke: var(--geo-paper); stroke-width: 1; }
.geo .truth path:not(.geo-ray) { fill: none; stroke: var(--geo-truth); stroke-width: 3.5; stroke-linecap: round; }
.geo .truth path.geo-casing { stroke: var(--geo-paper); stroke-width: 7; }
.geo .geo-mark:hover circle, .geo .geo-mark:hover rect { stroke: var(--geo-ink); stroke-width: 2.5; }
.geo figcaption { color: var(--geo-ink); font-size: .95rem; font-weight: 400; padding: 0; max-width: 40rem; }
.geo-credit { font-size: .8rem; color: var(--geo-soft); margin: 0; }
.geo-table { overflow-x: auto; }
.geo-table table { max-width: none; width: 100%; }
.geo-table th, .geo-table td { white-space: nowrap; text-align: left; padding: .35rem 1rem .35rem 0; }
.geo-table td:nth-child(2) { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.geo details { border: 0; margin: 0; }
.geo summary { padding: .7rem 0 .2rem; min-height: 2.2rem; }
@container (min-width: 44rem) { .geo-table td:nth-child(2) { min-width: 15rem; } }
@media print { .geo-zoom { display: none; } }
"""

SCRIPT = """
for (const map of document.querySelectorAll(".geo")) {
  const frame = map.querySelector(".geo-frame");
  let x = Number(frame.dataset.x), y = Number(frame.dataset.y);
  frame.addEventListener("scroll", () => {
    x = (frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth;
    y = (frame.scrollTop + frame.clientHeight / 2) / frame.scrollHeight;
  });
  const keep = () => frame.scrollTo(
    x * frame.scrollWidth - frame.clientWidth / 2, y * frame.scrollHeight - frame.clientHeight / 2);
  map.addEventListener("change", keep);
  window.addEventListener("resize", keep);
}
"""
