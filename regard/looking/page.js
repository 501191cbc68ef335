"use strict";
// Everything here works on what the page already holds. Text from the data only ever becomes text
// nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";
const looks = JSON.parse(document.getElementById("data").textContent).map(unpacked);
const tip = document.getElementById("tip");
const large = document.getElementById("large");
const cursor = element("rect", { class: "cursor" });
let open = null; // what the dialog shows: { look, index }

// ---- data ---------------------------------------------------------------------------------------

function bytes(packed) {
  return Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
}

function unpacked(look) {
  const buffer = bytes(look.weights).buffer;
  look.numbers = look.exact ? new Float32Array(buffer) : new Uint16Array(buffer);
  look.masked = look.hidden === null ? null : bytes(look.hidden);
  look.totals = new Float32Array(bytes(look.sums).buffer);
  look.texts = look.texts.map((text) => ({ ...text, characters: Array.from(text.text) }));
  return look;
}

// Row and column of a map → which weight it is, and what is known of it.
function weightAt(look, map, row, column) {
  const [head, firstQuery, firstKey, queryStep, keyStep, keyAcross] = map.place;
  const query = firstQuery + row * queryStep;
  const key = firstKey + row * keyStep + column * keyAcross;
  const at = (head * look.queries.length + query) * look.keys.length + key;
  const raw = look.numbers[at];
  const value = look.exact ? raw : look.low + (raw / 65535) * (look.high - look.low);
  const masked = look.masked !== null && ((look.masked[at >> 3] >> (7 - (at & 7))) & 1) === 1;
  return { head, query, key, value, masked, sum: look.totals[head * look.queries.length + query] };
}

function digits(look, value) {
  if (value === 0) return "0";
  return look.exact && Math.abs(value) < 0.00005 ? value.toExponential(3) : value.toFixed(4);
}

// ---- the tooltip --------------------------------------------------------------------------------

function node(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function characters(label) {
  return label[1] === null ? "" : `characters ${label[1]}–${label[2]}`;
}

function describe(look, seen) {
  const query = look.queries[seen.query];
  const key = look.keys[seen.key];
  const pair = document.createElement("div");
  pair.append(node("bdi", query[0]), " → ", node("bdi", key[0]));
  const words = seen.masked ? look.hiddenMeans : digits(look, seen.value);
  const parts = [pair, node("div", words, "weight")];
  const where = [];
  if (look.heads[seen.head]) where.push(look.heads[seen.head]);
  if (look.steps) where.push(`step ${look.steps[seen.query]}`);
  if (look.block[0] * look.block[1] > 1) where.push(`largest of ${look.block.join(" × ")} weights`);
  if (where.length) parts.push(node("small", where.join(" · ")));
  const spots = [characters(query), characters(key)];
  if (spots[0] || spots[1]) parts.push(node("small", spots.map((spot) => spot || "no text").join(" → ")));
  if (Math.abs(seen.sum - 1) > 0.001) parts.push(node("small", `row sums to ${digits(look, seen.sum)}`));
  return parts;
}

function showTip(parts, x, y) {
  (large.open ? large : document.body).append(tip);
  tip.replaceChildren(...parts);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 12 - box.width : x + 16;
  const top = y + 16 + box.height > innerHeight ? y - 12 - box.height : y + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  tip.hidden = true;
  cursor.remove();
  for (const text of document.querySelectorAll(".raw")) text.textContent = text.textContent;
}

// ---- the raw text -------------------------------------------------------------------------------

// Offsets count characters as Python does, not the halves that JavaScript counts.
function markText(look, seen) {
  for (const text of look.texts) {
    const ranges = text.sides.map((side) => {
      const label = side === "query" ? look.queries[seen.query] : look.keys[seen.key];
      return { side, start: label[1], end: label[2] };
    });
    const known = ranges.filter((range) => range.start !== null);
    const ends = known.flatMap((range) => [range.start, range.end]);
    const cuts = [...new Set([0, ...ends, text.characters.length])].sort((a, b) => a - b);
    const pieces = cuts.slice(1).map((end, at) => {
      const inside = known.filter((range) => range.start <= cuts[at] && end <= range.end);
      const piece = text.characters.slice(cuts[at], end).join("");
      return inside.length ? node("mark", piece, inside.map((range) => range.side).join(" ")) : piece;
    });
    document.getElementById(text.id).replaceChildren(...pieces);
  }
}

// ---- maps ---------------------------------------------------------------------------------------

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function between(edges, at) {
  let low = 0;
  let high = edges.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

function bring(group, look, index) {
  const map = look.maps[index];
  const { x, y } = map;
  const size = { width: x.at(-1) - x[0], height: y.at(-1) - y[0] };
  const spot = { row: 0, column: -1 };
  const title = [look.path, look.heads[map.place[0]]].filter(Boolean).join(", ");
  group.append(element("rect", { class: "frame", x: x[0], y: y[0], ...size }));
  group.setAttribute("tabindex", "0");
  group.setAttribute("role", "img");
  const strip = map.place[3] + map.place[4] === 0; // as large as it gets
  const enlarging = strip ? "" : ", Enter enlarges the map";
  group.setAttribute("aria-label", `${title}: arrow keys read the cells${enlarging}`);

  function see(row, column, px, py) {
    spot.row = row;
    spot.column = column;
    const seen = weightAt(look, map, row, column);
    const place = { x: x[column], y: y[row], width: x[column + 1] - x[column], height: y[row + 1] - y[row] };
    for (const [key, value] of Object.entries(place)) cursor.setAttribute(key, value);
    group.append(cursor);
    markText(look, seen);
    const box = cursor.getBoundingClientRect();
    showTip(describe(look, seen), px ?? box.right, py ?? box.bottom);
  }

  group.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(group.getScreenCTM().inverse());
    see(between(y, at.y), between(x, at.x), event.clientX, event.clientY);
  });
  group.addEventListener("pointerleave", hideTip);
  group.addEventListener("blur", hideTip);
  group.addEventListener("click", () => strip || enlarge(look, index));
  group.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter" && !strip) {
      event.preventDefault(); // or the same Enter would press the button that gets the focus
      enlarge(look, index);
    }
    if (event.key === "Escape" && !large.open) hideTip();
    if (!move) return;
    event.preventDefault();
    const row = Math.min(Math.max(spot.row + move[0], 0), y.length - 2);
    see(row, Math.min(Math.max(spot.column + move[1], 0), x.length - 2));
  });
}

// ---- one map, large -----------------------------------------------------------------------------

function label(text, x, y, rotation, end) {
  const [words, , , leftward] = text;
  const shown = Array.from(words);
  const attributes = {
    transform: `translate(${x} ${y}) rotate(${rotation})`, "font-size": 12, dy: "0.35em",
    "text-anchor": end !== Boolean(leftward) ? "end" : "start", "unicode-bidi": "isolate",
  };
  if (leftward) attributes.direction = "rtl";
  return element("text", attributes, shown.length > 28 ? shown.slice(0, 27).join("") + "…" : words);
}

function ink(fill) {
  const shares = [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16) / 255);
  const linear = shares.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.2 ? "#1b1f27" : "#ffffff";
}

function numbers(look, map, cells, scale) {
  const written = element("g", { "font-size": 12, "text-anchor": "middle" });
  const rectangles = cells.querySelectorAll("rect:not(.frame)");
  const [rows, columns] = [map.y.length - 1, map.x.length - 1];
  if (Math.max(rows, columns) > 12 || rectangles.length !== rows * columns) return written;
  rectangles.forEach((rectangle, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    const seen = weightAt(look, map, row, column);
    if (seen.masked) return;
    const x = scale * ((map.x[column] + map.x[column + 1]) / 2 - map.x[0]);
    const y = scale * ((map.y[row] + map.y[row + 1]) / 2 - map.y[0]);
    const fill = Math.abs(seen.value) < 0.005 ? "#8d95a3" : ink(rectangle.getAttribute("fill"));
    const short = seen.value === 0 ? "0" : seen.value.toFixed(2).replace("0.", ".");
    written.append(element("text", { x, y, dy: "0.35em", fill }, short));
  });
  return written;
}

// The lines of hatching stay as fine as they were.
function hatching(cells, scale) {
  const made = element("defs", {});
  const hatched = [...cells.querySelectorAll("rect")].filter((part) => part.getAttribute("fill").startsWith("url("));
  for (const part of hatched) {
    if (!made.firstChild) {
      const pattern = document.getElementById(part.getAttribute("fill").slice(5, -1)).cloneNode(true);
      pattern.id = "large-hatch";
      pattern.setAttribute("patternTransform", `scale(${1 / scale})`);
      made.append(pattern);
    }
    part.setAttribute("fill", "url(#large-hatch)");
  }
  return made;
}

function enlarge(look, index) {
  const map = look.maps[index];
  const [rows, columns] = [map.y.length - 1, map.x.length - 1];
  const pitch = { x: map.x[1] - map.x[0], y: map.y[1] - map.y[0] };
  const target = Math.max(13, Math.min(44, 760 / Math.max(rows, columns)));
  const scale = Math.max(1, target / Math.min(pitch.x, pitch.y));
  const cells = document.getElementById(map.id).cloneNode(true);
  cells.removeAttribute("id");
  cells.querySelectorAll(".frame, .cursor").forEach((part) => part.remove());
  cells.setAttribute("transform", `scale(${scale}) translate(${-map.x[0]} ${-map.y[0]})`);
  const all = element("g", {});
  all.append(hatching(cells, scale), cells, numbers(look, map, cells, scale));
  if (map.place[3] === 1) {
    const slant = scale * pitch.x >= 17 ? -45 : -90;
    for (let row = 0; row < rows; row++) all.append(label(look.queries[row], -6, scale * pitch.y * (row + 0.5), 0, true));
    for (let column = 0; column < columns; column++)
      all.append(label(look.keys[column], scale * pitch.x * (column + 0.5), -6, slant, false));
  }
  const sheet = element("svg", { fill: "#1b1f27" });
  sheet.append(all);
  document.getElementById("large-map").replaceChildren(sheet);
  hideTip();
  if (!large.open) large.showModal();
  const box = all.getBBox();
  sheet.setAttribute("viewBox", `${box.x - 4} ${box.y - 4} ${box.width + 8} ${box.height + 8}`);
  sheet.setAttribute("width", box.width + 8);
  sheet.setAttribute("height", box.height + 8);
  bring(cells, look, index);
  choose(look, index);
  open = { look, index };
}

function choose(look, index) {
  document.getElementById("large-title").textContent = look.path;
  const list = document.getElementById("large-list");
  list.replaceChildren(...look.maps.map((map) => node("option", map.title || "map")));
  list.selectedIndex = index;
  list.hidden = look.maps.length < 2;
  for (const id of ["large-before", "large-after"]) document.getElementById(id).hidden = list.hidden;
}

function turn(step) {
  const count = open.look.maps.length;
  enlarge(open.look, (open.index + step + count) % count);
}

document.getElementById("large-before").addEventListener("click", () => turn(-1));
document.getElementById("large-after").addEventListener("click", () => turn(1));
document.getElementById("large-close").addEventListener("click", () => large.close());
document.getElementById("large-list").addEventListener("change", (event) => enlarge(open.look, event.target.selectedIndex));
large.addEventListener("click", (event) => event.target === large && large.close());
large.addEventListener("close", () => {
  hideTip();
  document.getElementById(open.look.maps[open.index].id).focus();
});
for (const look of looks) look.maps.forEach((map, index) => bring(document.getElementById(map.id), look, index));
