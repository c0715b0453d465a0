"""How the page looks: dark on light, one column on a phone, two beside each other on a desk, calm on paper."""

CSS = """
:root { --ink: #1d2329; --soft: #5a6570; --line: #dfe3e7; --paper: #ffffff; --wash: #f5f7f9; --mark: #0b5cad; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 74rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 2px solid var(--ink); font-size: 1.35rem; line-height: 1.3;
  overflow-wrap: anywhere; }
h3 { margin: 0 0 .25rem; font-size: 1rem; }
p { margin: .5rem 0; max-width: 48rem; overflow-wrap: anywhere; }
a { color: var(--mark); }
.soft, figcaption, .notes { color: var(--soft); }
.finding { font-size: 1.1rem; }
.wide { overflow-x: auto; margin: 1.25rem 0 .75rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .45rem .55rem; text-align: right; white-space: nowrap; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; border-bottom: 1.5px solid var(--ink); font-weight: 600; line-height: 1.25;
  white-space: normal; }
th:first-child, td:first-child, .words { text-align: left; }
tbody th { font-weight: 500; position: sticky; left: 0; background: var(--paper); white-space: normal;
  min-width: 9.5rem; overflow-wrap: anywhere; }
tbody tr.best > * { background: #eef5fc; font-weight: 600; }
tbody td.words { white-space: normal; min-width: 10rem; }
.small { display: block; font-size: .82rem; font-weight: 400; color: var(--soft); }
.swatch { display: inline-block; width: .7em; height: .7em; margin-right: .45em; border-radius: 50%; }
.notes { margin: 0 0 1.5rem; padding-left: 1.1rem; max-width: 52rem; font-size: .92rem; }
.notes li { margin: .2rem 0; overflow-wrap: anywhere; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 2rem 2.5rem; }
figure { margin: 0; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; max-width: 40rem; }
figure svg * { stroke-linejoin: round; }
figure svg text { font-family: inherit !important; }
figcaption { font-size: .88rem; margin-top: .4rem; }
pre { margin: .5rem 0; padding: .8rem 1rem; background: var(--wash); border-radius: 6px; font-size: .85rem;
  line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere; }
.failures { border-left: 4px solid #b3261e; padding-left: 1rem; }
dt { font-weight: 600; margin-top: .7rem; }
dd { margin: 0; max-width: 48rem; }
@media (max-width: 40rem) {
  body { padding: 1.25rem .9rem 3rem; }
  h1 { font-size: 1.5rem; }
  h2 { font-size: 1.2rem; }
  th, td { padding: .4rem .5rem; }
  tbody th { min-width: 8rem; }
}
@media print {
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  .wide { overflow: visible; }
  table { font-size: .85rem; }
  tbody th { min-width: 7rem; }
  th, td { padding: .25rem .35rem; }
  tbody th { position: static; }
  h2, h3, dt { break-after: avoid; }
  tr, pre { break-inside: avoid; }
  .pictures { grid-template-columns: 1fr 1fr; gap: 1.2rem; }
}
"""
